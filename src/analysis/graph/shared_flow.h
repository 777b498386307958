// Values that go through shared memory: what one thread of a block stores there, all others may load.
//
// Analyses that follow values through registers lose them at a store. For global memory they say so, each in
// its own way; shared memory is different because it is the usual way to tell the rest of the block what one
// thread has found: `if (tid == 0) found = atomicAdd(flag, 0); barrier; if (found) break;`. No address is
// compared here. If a store to shared memory can come after an instruction, whatever is loaded from shared
// memory may depend on that instruction: by the value that was stored, or by whether it was stored at all.
//
// A kernel has shared memory only if its code, or a function that it may call, names some. Other kernels of
// the module do not count: their shared memory is gone when they have ended, and a kernel without any has
// none at those addresses either.
#pragma once

#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"

namespace klap::analysis {

class SharedFlow {
 public:
  SharedFlow(const ptx::Module& module, const ControlFlow& flow);

  // True if `instruction` loads, stores or updates memory that may be shared: by its space, or because its
  // address is generic and there is shared memory.
  [[nodiscard]] bool may_touch(const ptx::Statement& instruction) const;
  // Loads from what may be shared memory, if a store there can follow one of `sources`; else nothing.
  [[nodiscard]] std::vector<uint32_t> loads_after(const std::vector<uint32_t>& sources) const;

 private:
  const ptx::Module& module_;
  const ControlFlow& flow_;
  std::vector<uint32_t> loads_, stores_;
  bool has_shared_ = false;
};

}  // namespace klap::analysis
