// Errors that outlive the call they are returned by.
#pragma once

#include <cuda.h>

namespace klap::runtime {

// Whether an earlier kernel has left this error in the context: every call returns it from then on.
bool is_of_context(CUresult result);

}  // namespace klap::runtime
