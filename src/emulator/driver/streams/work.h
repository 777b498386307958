// Work that can be put into a stream or a graph's node: launches, copies, sets, calls of host functions,
// events.
//
// Every function of the API that enqueues something only describes it in one of these forms. So a graph holds
// the descriptions that a stream executes, and capture only changes where the description goes.
#pragma once

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "emulator/driver/context.h"
#include "emulator/grids/grid.h"
#include "emulator/machine/machine.h"

namespace klap::emulator::driver {

class Process;

struct Empty {};

struct KernelLaunch {
  CUfunction function = nullptr;  // as the program named it: perhaps a CUkernel
  Launch launch;
  bool dependent = false;  // programmatic: may begin before the kernel ahead of it is complete
};

// A box of bytes, rows of `width` bytes; for a plain copy one row.
struct Copy {
  uint64_t to = 0, from = 0;
  size_t width = 0, height = 1, depth = 1;
  size_t to_pitch = 0, to_slice = 0, from_pitch = 0, from_slice = 0;
  // Where the bytes come from host memory that the program may change at once, they are taken at once.
  std::shared_ptr<const std::vector<std::byte>> staged;
};

struct Fill {
  uint64_t to = 0;
  uint32_t value = 0, element_bytes = 1;
  size_t width = 0, height = 1, pitch = 0;  // width in elements, pitch in bytes
};

struct HostCall {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

struct RecordEvent {
  CUevent event = nullptr;
};

struct WaitForEvent {
  CUevent event = nullptr;
};

struct GraphPlan;  // a graph within a graph
struct ChildGraph {
  std::shared_ptr<const GraphPlan> plan;
  CUgraph graph = nullptr;  // the node's own copy
};

using Work = std::variant<Empty, KernelLaunch, Copy, Fill, HostCall, RecordEvent, WaitForEvent, ChildGraph>;

// The description of a box as the program gives it, and back.
Copy copy_of(Process& process, const CUDA_MEMCPY3D& description);
CUDA_MEMCPY3D description_of(const Copy& copy);

// Fails unless all that is copied or set lies in memory that there is.
void validate(Process& process, const Copy& copy);
void validate(Process& process, const Fill& fill);

}  // namespace klap::emulator::driver
