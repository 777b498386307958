// CUDA error handling of the benchmark programs; see cuda_check.h.
#include "cuda_check.h"

#include <cstdio>
#include <cstdlib>

namespace bench {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %s (CUDA error %d)\n", what, cudaGetErrorString(error),
               static_cast<int>(error));
  std::exit(3);
}

void require_device(const char* program) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return;
  std::fprintf(stderr, "%s: no usable CUDA device: %s\n", program,
               error == cudaSuccess ? "the driver reports none" : cudaGetErrorString(error));
  std::exit(3);
}

}  // namespace bench
