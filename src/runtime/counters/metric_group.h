// Metrics that the GPU can count at the same time.
//
// A GPU has fewer counters than metrics need, so profilers run a kernel several times, in passes. A launch of
// the program cannot be repeated, since it changes the program's memory. So metrics are counted in groups of
// one pass, and the launches of a kernel take turns. A metric that needs several passes by itself is left
// out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/counters/cupti_api.h"

namespace klap::runtime {

struct Chip {
  std::string name;                   // "GH100"
  std::vector<uint8_t> availability;  // of its counters, as CUPTI describes it
};

class MetricGroup {
 public:
  // Throws Error(Unsupported) if a metric is not known for this chip, else Error(Driver).
  MetricGroup(const Cupti& cupti, const Chip& chip, std::vector<std::string> metrics);

  [[nodiscard]] const std::vector<std::string>& metrics() const { return metrics_; }
  [[nodiscard]] std::vector<const char*> names() const;
  // How the counters are to be set up.
  [[nodiscard]] const std::vector<uint8_t>& config_image() const { return config_image_; }
  [[nodiscard]] size_t passes() const { return passes_; }
  // The metrics' values in the last range of what was counted; a value that does not exist is not finite.
  // Throws Error(Driver).
  [[nodiscard]] std::vector<double> evaluate(const std::vector<uint8_t>& counter_data) const;

 private:
  struct EndHost {
    const Cupti& cupti;
    void operator()(CUpti_Profiler_Host_Object* host) const noexcept;
  };

  const Cupti& cupti_;
  std::vector<std::string> metrics_;
  std::unique_ptr<CUpti_Profiler_Host_Object, EndHost> host_;
  std::vector<uint8_t> config_image_;
  size_t passes_ = 0;
};

using MetricGroups = std::vector<std::unique_ptr<const MetricGroup>>;

// All metrics in as few groups as the first fit gives. Adds a line to `problems` for each that is left out.
// Throws Error(Driver).
MetricGroups metric_groups(const Cupti& cupti, const Chip& chip, const std::vector<std::string>& metrics,
                           std::vector<std::string>& problems);

}  // namespace klap::runtime
