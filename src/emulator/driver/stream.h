// Streams and events, and the way of all work into a stream.
#pragma once

#include <memory>
#include <vector>

#include "emulator/driver/work.h"

namespace klap::emulator::driver {
struct Capture;
class Process;
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

namespace klap::emulator::driver {

// The stream of a program's stream handle, the special handles included. Fails for an unknown handle.
CUstream_st& resolve(Process& process, CUstream stream);

// Puts work into a stream, or a node for it into the graph that the stream is captured to.
void submit(Process& process, CUstream_st& stream, Work work);
// Waits for the stream. Fails while it is captured.
void synchronise(Process& process, CUstream_st& stream);

void record_event(Process& process, CUevent_st& event, CUstream_st& stream);
void wait_event(Process& process, CUstream_st& stream, CUevent_st& event);

}  // namespace klap::emulator::driver
