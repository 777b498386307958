// A model of how long a kernel's launches take: a random forest.
//
// Zhang et al. (Adaptive kernel aggregation, CF 2018, section 4) let a forest predict times from sampled
// configurations, since the effects of settings depend on each other: fewer threads pay only where iterations
// are not unrolled, say. Another forest, of performance counters, tells which of these go with the time. Both
// learn the logarithm of the time, so that an error of a tenth counts the same for short and long kernels.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "klap_ptx/tune/sample_table.h"

namespace klap::tool {

class TimeModel {
 public:
  // There must be samples. The same table gives the same model.
  explicit TimeModel(const SampleTable& table);
  ~TimeModel();
  TimeModel(TimeModel&&) noexcept;
  TimeModel& operator=(TimeModel&&) = delete;

  // In milliseconds, from the values of all variables.
  [[nodiscard]] double predict(const std::vector<double>& row) const;

 private:
  struct Forest;
  std::unique_ptr<const Forest> forest_;
};

// How well a model of the other samples predicts every fifth one.
struct HeldOut {
  struct Pair {
    size_t sample = 0;
    double measured_ms = 0, predicted_ms = 0;
  };
  std::vector<Pair> pairs;
  // Parts of the measured time; 0 without pairs.
  double median_error = 0, error_of_nine_in_ten = 0;
};

// Without pairs where there are fewer than ten samples.
HeldOut test_model(const SampleTable& table);

// The share of each subject in what the time depends on: how much worse the model predicts if the values of
// this subject are shuffled among the samples. They add up to 1, or are all 0 if nothing matters.
std::map<std::string, double> importance(const SampleTable& table);

}  // namespace klap::tool
