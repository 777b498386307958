// Calls of the driver's functions for graphs, which all have to succeed.
#pragma once

#include <cuda.h>
#include <fmt/format.h>

#include "runtime/driver.h"
#include "support/error.h"

namespace klap::runtime {

// Throws Error for any other result than success.
inline void require(CUresult result, const char* function) {
  if (result == CUDA_SUCCESS) return;
  throw Error(ErrorCode::Driver, fmt::format("{} failed ({})", function, error_name(result)));
}

}  // namespace klap::runtime
