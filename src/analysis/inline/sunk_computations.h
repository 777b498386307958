// Computations that a compiler has moved into the scope of a call.
//
// nvcc puts every call in a scope of its own, which stores the parameters, calls and loads the result. Where
// a parameter is computed from values that do not change in a loop, its computation may stand between the
// stores:
//
//     {
//     .param .align 4 .b8 param1[12];
//     add.s32 %r13, %r11, 1;
//     st.param.b32 [param1+0], %r13;
//
// A rewrite that replaces the scope would lose the computation, so a launch is understood only without it
// (calls.h). A computation that is found here may as well stand in front of the scope: it names nothing that
// the scope declares, and nothing in front of it in the scope reads or writes its results.
#pragma once

#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

struct SunkComputation {
  const ptx::Statement* scope = nullptr;
  const ptx::Statement* instruction = nullptr;
};

// Returns the computations of a function, in text order.
std::vector<SunkComputation> find_sunk_computations(const ptx::Module& module, const ptx::Function& function);

}  // namespace klap::analysis
