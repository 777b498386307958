// Streams and events as the program holds them. Capture and work look into them; stream.h has what is done
// with them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "emulator/driver/api.h"
#include "emulator/machine/machine.h"

namespace klap::emulator::driver {
struct Capture;
}  // namespace klap::emulator::driver

struct CUstream_st {
  uint64_t id = 0;
  CUctx_st* context = nullptr;
  klap::emulator::StreamId stream = 0;
  unsigned flags = 0;
  int priority = 0;
  bool is_default = false;  // the legacy stream or a thread's: not to be destroyed
  std::map<CUstreamAttrID, CUstreamAttrValue> attributes;

  // While it is captured:
  std::shared_ptr<klap::emulator::driver::Capture> capture;
  std::vector<CUgraphNode> last;  // nodes that the next node will depend on
};

struct CUevent_st {
  CUctx_st* context = nullptr;
  klap::emulator::EventId event = 0;
  unsigned flags = 0;
  bool is_recorded = false;
  std::shared_ptr<uint64_t> moment = std::make_shared<uint64_t>(0);  // of the last record that was reached

  // Recorded in a captured stream: nodes of a graph and not a moment.
  std::shared_ptr<klap::emulator::driver::Capture> capture;
  std::vector<CUgraphNode> captured;
};
