#include "runtime/counters/metric_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "support/error.h"

namespace klap::runtime {
namespace {

CUpti_Profiler_Host_Object* begin_host(const Cupti& cupti, const Chip& chip) {
  CUpti_Profiler_Host_Initialize_Params begin{};
  begin.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  begin.pChipName = chip.name.c_str();
  begin.pCounterAvailabilityImage = chip.availability.empty() ? nullptr : chip.availability.data();
  cupti.host_begin(begin);
  return begin.pHostObject;
}

}  // namespace

void MetricGroup::EndHost::operator()(CUpti_Profiler_Host_Object* host) const noexcept {
  CUpti_Profiler_Host_Deinitialize_Params end{};
  end.structSize = cupti.host_end.bytes;
  end.pHostObject = host;
  (void)cupti.host_end.function(&end);  // nothing can be done if it fails
}

MetricGroup::MetricGroup(const Cupti& cupti, const Chip& chip, std::vector<std::string> metrics)
    : cupti_(cupti), metrics_(std::move(metrics)), host_(begin_host(cupti, chip), {cupti}) {
  std::vector<const char*> all = names();
  CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
  add.pHostObject = host_.get();
  add.ppMetricNames = all.data();
  add.numMetrics = all.size();
  try {
    cupti_.add_metrics(add);
  } catch (const Error& error) {
    throw Error(ErrorCode::Unsupported, error.reason());
  }

  CUpti_Profiler_Host_GetConfigImageSize_Params size{};
  size.pHostObject = host_.get();
  cupti_.config_size(size);
  config_image_.resize(size.configImageSize);
  CUpti_Profiler_Host_GetConfigImage_Params image{};
  image.pHostObject = host_.get();
  image.configImageSize = config_image_.size();
  image.pConfigImage = config_image_.data();
  cupti_.config_image(image);

  CUpti_Profiler_Host_GetNumOfPasses_Params passes{};
  passes.configImageSize = config_image_.size();
  passes.pConfigImage = config_image_.data();
  cupti_.passes(passes);
  passes_ = passes.numOfPasses;
}

std::vector<const char*> MetricGroup::names() const {
  std::vector<const char*> out;
  for (const std::string& metric : metrics_) out.push_back(metric.c_str());
  return out;
}

std::vector<double> MetricGroup::evaluate(const std::vector<uint8_t>& counter_data) const {
  CUpti_RangeProfiler_GetCounterDataInfo_Params info{};
  info.pCounterDataImage = counter_data.data();
  info.counterDataImageSize = counter_data.size();
  cupti_.data_info(info);
  if (info.numTotalRanges == 0) throw Error(ErrorCode::Driver, "CUPTI has counted nothing");
  std::vector<const char*> all = names();
  std::vector<double> values(all.size());
  CUpti_Profiler_Host_EvaluateToGpuValues_Params evaluate{};
  evaluate.pHostObject = host_.get();
  evaluate.pCounterDataImage = counter_data.data();
  evaluate.counterDataImageSize = counter_data.size();
  evaluate.rangeIndex = info.numTotalRanges - 1;
  evaluate.ppMetricNames = all.data();
  evaluate.numMetrics = all.size();
  evaluate.pMetricValues = values.data();
  cupti_.evaluate(evaluate);
  return values;
}

MetricGroups metric_groups(const Cupti& cupti, const Chip& chip, const std::vector<std::string>& metrics,
                           std::vector<std::string>& problems) {
  MetricGroups groups;
  const auto group_of = [&](std::vector<std::string> names) {
    return std::make_unique<const MetricGroup>(cupti, chip, std::move(names));
  };
  // Finds the first group that has room for the metric.
  const auto place = [&](const std::string& metric) {
    for (auto& group : groups) {
      std::vector<std::string> more = group->metrics();
      more.push_back(metric);
      auto larger = group_of(std::move(more));
      if (larger->passes() != 1) continue;
      group = std::move(larger);
      return;
    }
    groups.push_back(group_of({metric}));
  };
  for (const std::string& metric : metrics) {
    try {
      const size_t passes = group_of({metric})->passes();
      if (passes == 1) {
        place(metric);
      } else {
        problems.push_back(
            fmt::format("{} is left out: it takes {} passes, and a launch is made once (fix: take metrics of "
                        "one pass, such as those that it is computed from)",
                        metric, passes));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unsupported) throw;
      problems.push_back(
          fmt::format("{} is left out, as {} does not have it in this form: {} (fix: take a "
                      "name that ncu --query-metrics lists, with a suffix such as .sum)",
                      metric, chip.name, error.reason()));
    }
  }
  return groups;
}

}  // namespace klap::runtime
