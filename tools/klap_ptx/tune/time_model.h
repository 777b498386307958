// A model of how long a kernel's launches take with settings that were not tried: a random forest.
//
// Zhang et al. (Adaptive kernel aggregation, CF 2018, section 4) let a forest predict times from sampled
// configurations, since the effects of settings depend on each other: fewer threads pay only where iterations
// are not unrolled, say. It learns the logarithm of the time, so that an error of a tenth counts the same for
// short and long kernels. A setting is one number, 1 where it is in force.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "klap_ptx/tune/candidates.h"

namespace klap::tool {

struct Sample {
  Configuration configuration;
  double ms = 0;  // of a launch, with its children
};

class TimeModel {
 public:
  // `samples` must not be empty. The same samples give the same model.
  TimeModel(const std::vector<Sample>& samples, const std::vector<Candidate>& tried);
  ~TimeModel();
  TimeModel(TimeModel&&) noexcept;
  TimeModel& operator=(TimeModel&&) = delete;

  // In milliseconds.
  [[nodiscard]] double predict(const Configuration& configuration) const;

 private:
  struct Forest;
  std::unique_ptr<const Forest> forest_;
};

// How well a model of the other samples predicts every fifth one.
struct HeldOut {
  struct Pair {
    Configuration configuration;
    double measured_ms = 0, predicted_ms = 0;
  };
  std::vector<Pair> pairs;
  // Parts of the measured time; 0 without pairs.
  double median_error = 0, error_of_nine_in_ten = 0;
};

// Without pairs where there are fewer than ten samples.
HeldOut test_model(const std::vector<Sample>& samples, const std::vector<Candidate>& tried);

// The share of each subject (Candidate::subject) in what the time depends on: how much worse the model
// predicts if the values of this subject are shuffled among the samples. They add up to 1, or are all 0 if
// nothing matters.
std::map<std::string, double> importance(const std::vector<Sample>& samples,
                                         const std::vector<Candidate>& tried);

}  // namespace klap::tool
