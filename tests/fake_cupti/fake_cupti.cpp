// A libcupti for tests, which counts nothing.
//
// It checks that its functions are called in the order that CUPTI wants, and writes each call as a line to
// the file FAKE_CUDA_LOG, between those of the fake driver. The value of each metric is the number of the
// range, from 1 on. Names of metrics say how they behave:
//
//   unknown...  there is no such metric
//   heavy...    takes 8 passes
//   wide...     shares a pass with no other wide one
//   empty...    has no value
//
// FAKE_CUPTI_FAIL is "cuptiRangeProfilerStart=7@2+,...": that function returns that code, every time, only
// the second time (@2), or from the second time on (@2+).
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct CUpti_Profiler_Host_Object {
  std::vector<std::string> metrics;
};

struct CUpti_RangeProfiler_Object {
  uint8_t* data = nullptr;  // that is configured
  bool is_started = false, is_pushed = false, has_range = false;
};

namespace {

constexpr size_t kDataBytes = sizeof(double);  // the number of the range, 0 without one
double ranges = 0;
int enabled = 0;

bool is(const std::string& metric, const char* kind) { return metric.rfind(kind, 0) == 0; }

void write_log(const std::string& line) {
  const char* const name = std::getenv("FAKE_CUDA_LOG");
  FILE* const file = name != nullptr ? std::fopen(name, "a") : nullptr;
  if (file == nullptr) return;
  (void)std::fputs((line + "\n").c_str(), file);
  (void)std::fclose(file);
}

// The code that FAKE_CUPTI_FAIL gives for this call.
CUptiResult scripted(const std::string& function) {
  static std::map<std::string, int> calls;
  const int call = ++calls[function];
  const char* const script = std::getenv("FAKE_CUPTI_FAIL");
  const std::string list = std::string(",") + (script != nullptr ? script : "");
  const size_t at = list.find("," + function + "=");
  if (at == std::string::npos) return CUPTI_SUCCESS;
  int code = 0, when = 0;
  char behind = 0;
  const int read = std::sscanf(list.c_str() + at + function.size() + 2, "%d@%d%c", &code, &when, &behind);
  const bool fails = read < 2 || call == when || (read == 3 && behind == '+' && call > when);
  return fails ? static_cast<CUptiResult>(code) : CUPTI_SUCCESS;
}

// What every function begins with. `is_right`: CUPTI would take the call now.
CUptiResult called(const char* function, bool is_right = true, const std::string& detail = "") {
  write_log(function + detail);
  if (const CUptiResult failure = scripted(function); failure != CUPTI_SUCCESS) return failure;
  return is_right ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

}  // namespace

#define BEGIN(...)                                                                                     \
  if (const CUptiResult result = called(__func__ __VA_OPT__(, ) __VA_ARGS__); result != CUPTI_SUCCESS) \
  return result

EXPORT CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* /*p*/) {
  BEGIN();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
  BEGIN();
  p->pChipName = "GH100";
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* p) {
  BEGIN();
  p->counterAvailabilityImageSize = 16;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  BEGIN(std::strcmp(p->pChipName, "GH100") == 0 && p->pCounterAvailabilityImage != nullptr);
  p->pHostObject = new CUpti_Profiler_Host_Object;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* p) {
  BEGIN();
  delete p->pHostObject;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
  BEGIN();
  for (size_t i = 0; i < p->numMetrics; ++i) {
    p->pHostObject->metrics.emplace_back(p->ppMetricNames[i]);
    if (is(p->ppMetricNames[i], "unknown")) return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return CUPTI_SUCCESS;
}

// The image is the number of passes.
EXPORT CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  BEGIN();
  p->configImageSize = 1;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* p) {
  BEGIN(p->configImageSize == 1);
  uint8_t wide = 0, passes = 1;
  for (const std::string& metric : p->pHostObject->metrics) {
    if (is(metric, "wide")) ++wide;
    if (is(metric, "heavy")) passes = 8;
  }
  *p->pConfigImage = std::max(wide, passes);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
  BEGIN(p->configImageSize == 1);
  p->numOfPasses = *p->pConfigImage;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  BEGIN(p->rangeIndex == 0 && p->numMetrics == p->pHostObject->metrics.size());
  double range = 0;
  std::memcpy(&range, p->pCounterDataImage, sizeof range);
  for (size_t i = 0; i < p->numMetrics; ++i)
    p->pMetricValues[i] = is(p->ppMetricNames[i], "empty") ? std::nan("") : range;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* p) {
  BEGIN(enabled == 0 && p->ctx != nullptr);
  ++enabled;
  p->pRangeProfilerObject = new CUpti_RangeProfiler_Object;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* p) {
  BEGIN(!p->pRangeProfilerObject->is_started);
  --enabled;
  delete p->pRangeProfilerObject;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* p) {
  BEGIN(p->numMetrics != 0 && p->maxNumOfRanges == 1 && p->maxNumRangeTreeNodes >= 1);
  p->counterDataSize = kDataBytes;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params* p) {
  BEGIN(p->counterDataSize == kDataBytes);
  std::memset(p->pCounterData, 0, kDataBytes);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* p) {
  BEGIN(!p->pRangeProfilerObject->is_started && *p->pConfig == 1 && p->range == CUPTI_UserRange &&
        p->replayMode == CUPTI_UserReplay && p->passIndex == 0);
  p->pRangeProfilerObject->data = p->pCounterDataImage;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* p) {
  BEGIN(!p->pRangeProfilerObject->is_started && p->pRangeProfilerObject->data != nullptr);
  p->pRangeProfilerObject->is_started = true;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* p) {
  BEGIN(p->pRangeProfilerObject->is_started && !p->pRangeProfilerObject->is_pushed);
  p->pRangeProfilerObject->is_started = false;
  p->isAllPassSubmitted = 1;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* p) {
  BEGIN(p->pRangeProfilerObject->is_started && !p->pRangeProfilerObject->is_pushed);
  p->pRangeProfilerObject->is_pushed = true;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* p) {
  BEGIN(p->pRangeProfilerObject->is_pushed);
  p->pRangeProfilerObject->is_pushed = false;
  p->pRangeProfilerObject->has_range = true;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* p) {
  BEGIN(!p->pRangeProfilerObject->is_started && p->pRangeProfilerObject->has_range);
  p->pRangeProfilerObject->has_range = false;
  ++ranges;
  std::memcpy(p->pRangeProfilerObject->data, &ranges, sizeof ranges);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* p) {
  BEGIN(p->counterDataImageSize == kDataBytes);
  double range = 0;
  std::memcpy(&range, p->pCounterDataImage, sizeof range);
  p->numTotalRanges = range > 0 ? 1 : 0;
  return CUPTI_SUCCESS;
}
