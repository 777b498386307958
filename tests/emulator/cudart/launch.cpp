// Kernel launches and what is asked about kernels.
#include <vector>

#include "call.h"
#include "registry.h"

namespace klap::cudart {
namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

// What <<<...>>> pushes and the kernel's stub takes.
thread_local std::vector<Configuration> configurations;

// The driver takes a kernel's handle wherever it takes a function of the current context.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

bool is_legal(dim3 grid, dim3 block) {
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y < 65536 && grid.z < 65536 && block.x > 0 &&
         block.y > 0 && block.z > 0 && block.z <= 64 &&
         static_cast<size_t>(block.x) * block.y * block.z <= 1024;
}

// What the driver calls an invalid value has a number of its own if the launch configuration is it.
cudaError_t launch_error(CUresult result, dim3 grid, dim3 block) {
  const bool configuration = result == CUDA_ERROR_INVALID_VALUE && !is_legal(grid, block);
  return configuration ? cudaErrorInvalidConfiguration : runtime_error(result);
}

cudaError_t launch(const Driver& cu, CUkernel kernel, const Configuration& how, void** arguments) {
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const dim3 &grid = how.grid, &block = how.block;
  const CUresult result =
      cu.launch_kernel(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                       static_cast<unsigned>(how.shared_bytes), how.stream, arguments, nullptr);
  return launch_error(result, grid, block);
}

// Runs `body(driver, kernel)` for a kernel that is given by its host function.
template <class Body>
cudaError_t with_kernel(const void* entry, Body body) {
  return in_context([&](const Driver& cu) {
    CUkernel kernel = nullptr;
    const cudaError_t error = find_kernel(entry, kernel);
    return error == cudaSuccess ? body(cu, kernel) : error;
  });
}

CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
  // The attributes are the same structures under other names.
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  CUlaunchConfig result{};
  result.gridDimX = config.gridDim.x;
  result.gridDimY = config.gridDim.y;
  result.gridDimZ = config.gridDim.z;
  result.blockDimX = config.blockDim.x;
  result.blockDimY = config.blockDim.y;
  result.blockDimZ = config.blockDim.z;
  result.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  result.hStream = config.stream;
  result.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  result.numAttrs = config.numAttrs;
  return result;
}

}  // namespace
}  // namespace klap::cudart

using namespace klap::cudart;

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): nvcc's names
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  if (configurations.empty()) return note(cudaErrorMissingConfiguration);
  const Configuration& last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}

// nvcc's stubs ask once for each kernel and keep the answer.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* entry) {
  CUkernel found = nullptr;
  const cudaError_t error = note(find_kernel(entry, found));
  *kernel = found;
  return error;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return in_context([&](const Driver& cu) {
    return launch(cu, kernel, {grid, block, shared_bytes, stream}, arguments);
  });
}

// NOLINTEND(bugprone-reserved-identifier)

cudaError_t cudaLaunchKernel(const void* entry, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return with_kernel(entry, [&](const Driver& cu, CUkernel kernel) {
    return launch(cu, kernel, {grid, block, shared_bytes, stream}, arguments);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* entry, void** arguments) {
  return with_kernel(entry, [&](const Driver& cu, CUkernel kernel) {
    const CUlaunchConfig how = driver_config(*config);
    const CUresult result = cu.launch_kernel_ex(&how, as_function(kernel), arguments, nullptr);
    return launch_error(result, config->gridDim, config->blockDim);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* entry, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  return with_kernel(entry, [&](const Driver& cu, CUkernel kernel) {
    const CUresult result =
        cu.launch_cooperative_kernel(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared_bytes), stream, arguments);
    return launch_error(result, grid, block);
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* entry) {
  return with_kernel(entry, [&](const Driver& cu, CUkernel kernel) {
    CUresult worst = CUDA_SUCCESS;
    const auto get = [&](CUfunction_attribute attribute) {
      int value = 0;
      const CUresult result = cu.kernel_get_attribute(&value, attribute, kernel, current_device());
      if (result != CUDA_SUCCESS) worst = result;
      return value;
    };
    *attributes = {};
    attributes->sharedSizeBytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes->constSizeBytes = get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    attributes->localSizeBytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return runtime_error(worst);
  });
}

cudaError_t cudaFuncSetAttribute(const void* entry, cudaFuncAttribute attribute, int value) {
  return with_kernel(entry, [&](const Driver& cu, CUkernel kernel) {
    return runtime_error(cu.kernel_set_attribute(static_cast<CUfunction_attribute>(attribute), value, kernel,
                                                 current_device()));
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* entry,
                                                                   int block_size, size_t shared_bytes,
                                                                   unsigned flags) {
  return with_kernel(entry, [&](const Driver& cu, CUkernel kernel) {
    CUfunction function = nullptr;
    CUresult result = cu.kernel_get_function(&function, kernel);
    if (result == CUDA_SUCCESS) result = cu.occupancy(blocks, function, block_size, shared_bytes, flags);
    return runtime_error(result);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* entry, int block_size,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, entry, block_size, shared_bytes, 0);
}

}  // extern "C"
