#include "runtime/counters/range_profiler.h"

#include "support/error.h"

namespace klap::runtime {
namespace {

// A structure of CUPTI's for a profiler.
template <typename Params>
Params of(CUpti_RangeProfiler_Object* object) {
  Params params{};
  params.pRangeProfilerObject = object;
  return params;
}

}  // namespace

Chip chip_of(const Cupti& cupti, CUcontext context, CUdevice device) {
  CUpti_Profiler_Initialize_Params initialize{};
  cupti.initialize(initialize);
  CUpti_Device_GetChipName_Params name{};
  name.deviceIndex = static_cast<size_t>(device);
  cupti.chip_name(name);
  Chip chip{name.pChipName, {}};
  CUpti_Profiler_GetCounterAvailability_Params availability{};
  availability.ctx = context;
  cupti.availability(availability);  // tells the size first
  chip.availability.resize(availability.counterAvailabilityImageSize);
  availability.pCounterAvailabilityImage = chip.availability.data();
  cupti.availability(availability);
  return chip;
}

RangeProfiler::RangeProfiler(const Cupti& cupti, CUcontext context) : cupti_(cupti) {
  CUpti_RangeProfiler_Enable_Params enable{};
  enable.ctx = context;
  cupti_.enable(enable);
  object_ = enable.pRangeProfilerObject;
}

RangeProfiler::~RangeProfiler() {
  // Nothing can be done about what fails here.
  const auto quietly = [this]<typename Params>(const CuptiFunction<Params>& function) {
    Params params = of<Params>(object_);
    params.structSize = function.bytes;
    (void)function.function(&params);
  };
  if (is_pushed_) quietly(cupti_.pop);
  if (is_started_) quietly(cupti_.stop);
  quietly(cupti_.disable);
}

// Makes the counter data as large as one range of the group needs, and empties it.
void RangeProfiler::make_room(const MetricGroup& group) {
  std::vector<const char*> names = group.names();
  auto size = of<CUpti_RangeProfiler_GetCounterDataSize_Params>(object_);
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = 1;
  size.maxNumRangeTreeNodes = 1;
  cupti_.data_size(size);
  counter_data_.assign(size.counterDataSize, 0);
  auto clear = of<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>(object_);
  clear.counterDataSize = counter_data_.size();
  clear.pCounterData = counter_data_.data();
  cupti_.clear_data(clear);
}

void RangeProfiler::begin(const MetricGroup& group) {
  make_room(group);
  auto config = of<CUpti_RangeProfiler_SetConfig_Params>(object_);
  config.configSize = group.config_image().size();
  config.pConfig = group.config_image().data();
  config.counterDataImageSize = counter_data_.size();
  config.pCounterDataImage = counter_data_.data();
  config.range = CUPTI_UserRange;
  config.replayMode = CUPTI_UserReplay;  // one pass, so nothing is replayed
  config.maxRangesPerPass = 1;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  config.targetNestingLevel = 1;
  cupti_.set_config(config);
  auto start = of<CUpti_RangeProfiler_Start_Params>(object_);
  cupti_.start(start);
  is_started_ = true;
  auto push = of<CUpti_RangeProfiler_PushRange_Params>(object_);
  push.pRangeName = "launch";
  cupti_.push(push);
  is_pushed_ = true;
}

std::vector<double> RangeProfiler::end(const MetricGroup& group) {
  auto pop = of<CUpti_RangeProfiler_PopRange_Params>(object_);
  is_pushed_ = false;
  cupti_.pop(pop);
  auto stop = of<CUpti_RangeProfiler_Stop_Params>(object_);
  is_started_ = false;
  cupti_.stop(stop);
  if (stop.isAllPassSubmitted == 0) throw Error(ErrorCode::Driver, "CUPTI wants another pass of the launch");
  auto decode = of<CUpti_RangeProfiler_DecodeData_Params>(object_);
  cupti_.decode(decode);
  return group.evaluate(counter_data_);
}

}  // namespace klap::runtime
