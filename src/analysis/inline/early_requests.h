// Launches whose argument buffer is asked for long before it is filled.
//
// nvcc asks for a launch's buffer and tests it for null before it computes the arguments. Where an argument
// needs a branch or a loop, control flow stands between the two calls of the launch:
//
//     { ... call.uni (retval0), __cudaCDP2GetParameterBufferV2, ...; ld.param.b64 %rd2, [retval0+0]; }
//     setp.eq.s64 %p3, %rd2, 0;
//     @%p3 bra $none;
//     ...                               // a loop that computes %r47
//   $behind:
//     st.u32 [%rd2], %r47;
//     { ... call.uni (retval0), __cudaCDP2LaunchDeviceV2, ... }
//
// A launch is understood only if straight-line code stands between its calls (launches/sites.h). So the first
// call and the test are moved behind the computation (transform/text/moved_requests.h), into the block that
// fills the buffer. A call of a function may also stand between two stores into the buffer; then the stores
// in front of it are moved, too. This file finds the launches for which nothing can tell the difference:
//
// - Control gets from the test to that block and nowhere else, and gets there only from the test.
// - What is in between computes and loads, and so do the functions that it calls. It has no other effect and
//   waits for nobody. So it does not matter that a thread without a buffer does it, too.
// - It neither changes what the first call is given nor touches the buffer's address or the test's result.
// - A thread without a buffer reads none of the registers that it changes.
#pragma once

#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

struct EarlyRequest {
  const ptx::Statement* scope = nullptr;      // around the first call
  const ptx::Statement* test = nullptr;       // of the buffer
  const ptx::Statement* branch = nullptr;     // by the test's result
  const ptx::Statement* to = nullptr;         // they may stand in front of this statement
  std::vector<const ptx::Statement*> stores;  // to the buffer, which are moved with them, in text order
  // A thread without a buffer goes on here, if that is behind the branch and not where it leads.
  const ptx::Statement* without_buffer = nullptr;
};

// Returns those of a function, in text order. Throws Error(Parse) as ControlFlow does.
std::vector<EarlyRequest> find_early_requests(const ptx::Module& module, const ptx::Function& function);

}  // namespace klap::analysis
