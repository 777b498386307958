// The functions that code compiled with `--default-stream per-thread` calls: the same, where stream 0 is the
// calling thread's own.
#include <cuda_runtime_api.h>

#include "driver.h"

using klap::cudart::PerThreadDefault;

// nvcc's header alone declares it.
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                          size_t shared_bytes, cudaStream_t stream);

#define KLAP_PER_THREAD(name, suffix, parameters, arguments) \
  extern "C" cudaError_t name##suffix parameters;            \
  extern "C" cudaError_t name##suffix parameters {           \
    const PerThreadDefault scope;                            \
    return name arguments;                                   \
  }

KLAP_PER_THREAD(__cudaLaunchKernel, _ptsz,
                (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream),
                (kernel, grid, block, arguments, shared, stream))
KLAP_PER_THREAD(cudaLaunchKernel, _ptsz,
                (const void* entry, dim3 grid, dim3 block, void** arguments, size_t shared,
                 cudaStream_t stream),
                (entry, grid, block, arguments, shared, stream))
KLAP_PER_THREAD(cudaLaunchKernelExC, _ptsz,
                (const cudaLaunchConfig_t* config, const void* entry, void** arguments),
                (config, entry, arguments))
KLAP_PER_THREAD(cudaMemcpy, _ptds, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
                (to, from, bytes, kind))
KLAP_PER_THREAD(cudaMemcpyAsync, _ptsz,
                (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
                (to, from, bytes, kind, stream))
KLAP_PER_THREAD(cudaMemset, _ptds, (void* memory, int value, size_t bytes), (memory, value, bytes))
KLAP_PER_THREAD(cudaMemsetAsync, _ptsz, (void* memory, int value, size_t bytes, cudaStream_t stream),
                (memory, value, bytes, stream))
KLAP_PER_THREAD(cudaMemcpyToSymbol, _ptds,
                (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind),
                (symbol, from, bytes, offset, kind))
KLAP_PER_THREAD(cudaMemcpyFromSymbol, _ptds,
                (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
                (to, symbol, bytes, offset, kind))
KLAP_PER_THREAD(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (stream))
KLAP_PER_THREAD(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream))
KLAP_PER_THREAD(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), (event, stream))
