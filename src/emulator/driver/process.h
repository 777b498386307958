// All that the driver keeps for the process.
//
// The objects of the program are handles here, whose types other headers declare. So every file of the driver
// can look into the process, and the process knows none of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/driver/api.h"
#include "emulator/driver/handles.h"
#include "emulator/driver/settings.h"

// A memory pool (pool_api.cpp).
struct CUmemPoolHandle_st {
  int device = 0;
  std::map<CUmemPool_attribute, bool> switches;  // that were set or asked for
  cuuint64_t release_threshold = 0;
};

namespace klap::emulator::driver {

struct PrimaryContext {
  CUcontext context = nullptr;
  unsigned uses = 0, flags = 0;
};

// Device launches and the like of contexts that are gone.
struct Totals {
  DeviceLaunchCounts launches;
  uint64_t steps = 0;
  uint64_t heap_allocations = 0, heap_kept = 0;
};

class Process {
 public:
  bool is_initialised = false;
  Settings settings;
  std::vector<PrimaryContext> primary;  // by device
  uint64_t last_id = 0;                 // of contexts, streams, allocations: none is given twice
  Totals gone;
  uint64_t findings = 0;

  Handles<CUctx_st> contexts;
  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUmod_st> modules;
  Handles<CUfunc_st> functions;
  Handles<CUlib_st> libraries;
  Handles<CUkern_st> kernels;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> executables;
  Handles<CUlinkState_st> links;
  Handles<CUmemPoolHandle_st> pools;
};

// The device's compute capability: 90 means sm_90.
inline uint32_t capability(const Process& process) {
  return process.settings.machine.executor.device.compute_capability;
}

// The calling thread's stack of contexts, the current one last.
std::vector<CUcontext>& context_stack();

void require_device(const Process& process, CUdevice device);

}  // namespace klap::emulator::driver
