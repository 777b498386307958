// The values that the links of chains read, and the width of their blocks: common to the cases of
// cases/chain*.cu.
#pragma once

#include "case.h"

KLAP_SHARED inline int chain_value(int i) {
  return static_cast<int>(static_cast<unsigned>(i) * 2654435761U >> 8) % 1000;
}

constexpr int kWidth = 64;  // threads of most chains' blocks

#ifdef __CUDACC__

// Has the value computed here, not where the compiler finds it first used.
__device__ __forceinline__ void here(int& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void here(unsigned& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void here(long long& value) { asm volatile("" : "+l"(value)); }
__device__ __forceinline__ void here(unsigned long long& value) { asm volatile("" : "+l"(value)); }
__device__ __forceinline__ void here(float& value) { asm volatile("" : "+f"(value)); }

#else

inline std::vector<int> chain_values(int count) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(chain_value(i));
  return values;
}

#endif
