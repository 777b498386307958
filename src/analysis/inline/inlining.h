// This file decides which calls a kernel is analysed and rewritten without.
//
// Some called functions launch, or ask where their thread stands. They cannot be rewritten where they are,
// because a function is compiled once, for all its callers. So such a function is first inlined in the
// kernels that call it (transform/text/inliner.h). This file finds the reasons against that, and
// inlinable_calls.h those of a single call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/inline/inlinable_calls.h"
#include "ptx/tree.h"

namespace klap::analysis {

// The calls of one kernel that are to be inlined, at any depth.
struct InlinedKernel {
  const ptx::Function* kernel = nullptr;
  // The calls by the block around them, in the kernel and in the functions that are inlined there.
  std::map<const ptx::Statement*, InlinableCall> calls;
};

// The kernels of a module that are to be rewritten with their calls inlined, given the kernels that others
// launch. Kernels that launch inline functions that launch or ask the device runtime. Launched kernels inline
// functions that ask for their place.
using KernelNames = std::set<std::string, std::less<>>;
std::vector<InlinedKernel> kernels_to_inline(const ptx::Module& module, const KernelNames& launched);
// False if the module's words show that no kernel calls a function of its unit, so that nothing can be
// inlined.
bool may_inline(const ptx::Module& module);

// Adds the kernels that bodies of the module name, because these may launch them.
void add_launched(const ptx::Module& module, KernelNames& launched);

// The functions that kernels, visible functions or variables of the module come to, by calls or by address.
std::set<std::string_view> functions_in_use(const ptx::Module& module);
// Its kernels and variables come to these functions: what is needed if no other unit calls its functions.
std::set<std::string_view> functions_of_kernels(const ptx::Module& module);

// "; it cannot be made part of a kernel: ..." for a function that a kernel still calls; else empty.
std::string not_inlined_text(const ptx::Module& module, const ptx::Function& callee);

}  // namespace klap::analysis
