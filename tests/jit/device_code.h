// Definitions that device code needs to be compiled as C++ of the host.
#pragma once

#include <bit>

// NOLINTBEGIN(bugprone-reserved-identifier): they are CUDA's
#define __device__
#define __forceinline__ inline
[[maybe_unused]] static int __clz(int value) { return std::countl_zero(static_cast<unsigned int>(value)); }
// NOLINTEND(bugprone-reserved-identifier)
