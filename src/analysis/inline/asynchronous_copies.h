// Asynchronous copies to shared memory (`cp.async`) of kernels that are launched from kernels.
//
// They may be done at the moment at which they are asked for: nothing says that they take longer, and nobody
// may look at their memory before a wait. So they are read as a load and a store, and all rules about these
// hold for them. Copies of other kinds (bulk, or counted by an mbarrier) stay what they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/inline/inlining.h"
#include "ptx/tree.h"

namespace klap::analysis {

// One copy, or an instruction that only waits for copies.
struct AsynchronousCopy {
  const ptx::Statement* statement = nullptr;
  uint32_t bytes = 0;  // 4, 8 or 16; 0 for one that waits
  Address to, from;
  // How many bytes are copied; the others become zero. A number, or a register of 32 bits.
  std::string copied;
};

// Finds the copies of the kernels in `launched` that the module defines, and of the functions that these
// call. A function that also has copies of another kind keeps all of its copies.
std::vector<AsynchronousCopy> find_asynchronous_copies(const ptx::Module& module,
                                                       const KernelNames& launched);

}  // namespace klap::analysis
