// Functions: their attributes, and how many blocks of them fit.
#include <algorithm>

#include "emulator/driver/context.h"
#include "emulator/driver/images/module.h"
#include "emulator/driver/process.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

const DeviceShape& device(const Process& process) { return process.settings.machine.executor.device; }

uint32_t blocks_that_fit(const Process& process, const CUfunc_st& function, int threads, size_t shared) {
  return Executor::occupancy(device(process), *function.function, static_cast<uint32_t>(threads),
                             static_cast<uint32_t>(shared));
}

struct BlockChoice {
  int threads = 0, blocks = 0;
};

// The block size that keeps the most threads on a multiprocessor, of equal ones the largest.
BlockChoice best_block(const Process& process, const CUfunc_st& function, CUoccupancyB2DSize shared_of,
                       size_t shared, int limit) {
  constexpr int kWarp = 32;
  const int most = get_attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  const int largest = limit > 0 ? std::min(limit, most) : most;
  BlockChoice best;
  for (int threads = largest; threads > 0; threads -= threads % kWarp == 0 ? kWarp : threads % kWarp) {
    const size_t bytes = shared_of != nullptr ? shared_of(threads) : shared;
    const auto blocks = static_cast<int>(blocks_that_fit(process, function, threads, bytes));
    if (blocks * threads > best.blocks * best.threads) best = {threads, blocks};
  }
  return best;
}

}  // namespace

KLAP_DRIVER_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return call("cuFuncGetAttribute", [&](Process& process) {
    require(value != nullptr);
    *value = get_attribute(resolve(process, function), attribute);
  });
}

KLAP_DRIVER_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return call("cuFuncSetAttribute",
              [&](Process& process) { set_attribute(resolve(process, function), attribute, value); });
}

KLAP_DRIVER_API cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return call("cuFuncSetCacheConfig",
              [&](Process& process) { resolve(process, function).cache_config = config; });
}

// All have had the same banks for long.
KLAP_DRIVER_API cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return call("cuFuncSetSharedMemConfig", [&](Process& process) { resolve(process, function); });
}

KLAP_DRIVER_API cuFuncGetModule(CUmodule* module, CUfunction function) {
  return call("cuFuncGetModule", [&](Process& process) {
    require(module != nullptr);
    *module = resolve(process, function).module;
  });
}

KLAP_DRIVER_API cuFuncGetName(const char** name, CUfunction function) {
  return call("cuFuncGetName", [&](Process& process) {
    require(name != nullptr);
    *name = resolve(process, function).function->name.c_str();
  });
}

KLAP_DRIVER_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return call("cuFuncGetParamInfo", [&](Process& process) {
    const Function& code = *resolve(process, function).function;
    require(offset != nullptr && index < code.parameter_offsets.size());
    *offset = code.parameter_offsets[index];
    if (bytes != nullptr) *bytes = code.parameter_sizes[index];
  });
}

KLAP_DRIVER_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return call("cuFuncIsLoaded", [&](Process& process) {
    require(state != nullptr);
    resolve(process, function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}

KLAP_DRIVER_API cuFuncLoad(CUfunction function) {
  return call("cuFuncLoad", [&](Process& process) { resolve(process, function); });
}

KLAP_DRIVER_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                     int threads, size_t shared, unsigned) {
  return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Process& process) {
    require(blocks != nullptr && threads > 0);
    *blocks = static_cast<int>(blocks_that_fit(process, resolve(process, function), threads, shared));
  });
}

KLAP_DRIVER_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                            size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

KLAP_DRIVER_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                          CUoccupancyB2DSize shared_of, size_t shared,
                                                          int limit, unsigned) {
  return call("cuOccupancyMaxPotentialBlockSize", [&](Process& process) {
    require(grid != nullptr && block != nullptr && limit >= 0);
    const BlockChoice best = best_block(process, resolve(process, function), shared_of, shared, limit);
    *block = best.threads;
    *grid = best.blocks * static_cast<int>(device(process).multiprocessors);
  });
}

KLAP_DRIVER_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                 CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

KLAP_DRIVER_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks,
                                                        int threads) {
  return call("cuOccupancyAvailableDynamicSMemPerBlock", [&](Process& process) {
    require(bytes != nullptr && blocks > 0 && threads > 0);
    const CUfunc_st& asked = resolve(process, function);
    const uint32_t most = asked.module->context->machine->dynamic_shared_limit(*asked.function);
    const uint32_t share = device(process).shared_per_multiprocessor / static_cast<uint32_t>(blocks);
    const uint32_t fixed = asked.function->shared_bytes;
    *bytes = std::min(most, share > fixed ? share - fixed : 0);
  });
}
