// Declarations of the toolkit's headers that the sources need, for clang. It cannot read the headers of a
// toolkit newer than itself.
#pragma once
#include <__clang_cuda_builtin_vars.h>
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
static __device__ inline int __popc(unsigned x) { return __builtin_popcount(x); }
static __device__ inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static __device__ inline int __syncthreads_or(int x) { return __nvvm_bar0_or(x); }
static __device__ inline void __syncwarp(unsigned mask = ~0u) { __nvvm_bar_warp_sync(mask); }
