// The functions of CUPTI that read performance counters, as a table of pointers into its library.
//
// CUPTI is part of the CUDA toolkit. It is never linked, and opened only if counters are asked for, because
// it loads more libraries and attaches itself to the driver.
#pragma once

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include <cstddef>

namespace klap::runtime {

// Throws Error(Driver), which says how to help it, unless the result is a success.
void check_cupti(const char* function, CUptiResult result);

// A function of CUPTI. Each takes one structure, which begins with its size. A call throws Error(Driver) if
// the function fails.
template <typename Params>
struct CuptiFunction {
  const char* name;
  size_t bytes;  // of the structure, without the padding at its end
  CUptiResult (*function)(Params*) = nullptr;

  void operator()(Params& params) const {
    params.structSize = bytes;
    check_cupti(name, function(&params));
  }
};

// X(member, function, structure)
#define KLAP_CUPTI_FUNCTIONS(X)                                                                      \
  X(initialize, cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params)                           \
  X(chip_name, cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params)                              \
  X(availability, cuptiProfilerGetCounterAvailability, CUpti_Profiler_GetCounterAvailability_Params) \
  X(host_begin, cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params)                  \
  X(host_end, cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params)                \
  X(add_metrics, cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params)     \
  X(config_size, cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params) \
  X(config_image, cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params)        \
  X(passes, cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params)              \
  X(evaluate, cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params)  \
  X(enable, cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable_Params)                             \
  X(disable, cuptiRangeProfilerDisable, CUpti_RangeProfiler_Disable_Params)                          \
  X(data_size, cuptiRangeProfilerGetCounterDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params)  \
  X(clear_data, cuptiRangeProfilerCounterDataImageInitialize,                                        \
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params)                                          \
  X(set_config, cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params)                   \
  X(start, cuptiRangeProfilerStart, CUpti_RangeProfiler_Start_Params)                                \
  X(stop, cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params)                                   \
  X(push, cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params)                         \
  X(pop, cuptiRangeProfilerPopRange, CUpti_RangeProfiler_PopRange_Params)                            \
  X(decode, cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params)                     \
  X(data_info, cuptiRangeProfilerGetCounterDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params)

struct Cupti {
#define X(member, symbol, type) CuptiFunction<type> member = {#symbol, type##_STRUCT_SIZE};
  KLAP_CUPTI_FUNCTIONS(X)
#undef X

  // Opens the library at the first call. Throws Error(Toolchain).
  static const Cupti& get();
};

}  // namespace klap::runtime
