#include "klap_ptx/tune/time_model.h"

#include <dlib/random_forest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace klap::tool {
namespace {

using Features = dlib::matrix<double, 0, 1>;
using Trainer = dlib::random_forest_regression_trainer<dlib::dense_feature_extractor>;

constexpr unsigned kTrees = 200;
constexpr size_t kFewestToTest = 10, kHeldOut = 5;

Features features(const Configuration& configuration, size_t candidates) {
  Features out = dlib::zeros_matrix<double>(static_cast<long>(candidates), 1);
  for (const size_t i : configuration) out(static_cast<long>(i)) = 1;
  return out;
}

}  // namespace

struct TimeModel::Forest {
  size_t candidates;
  Trainer::trained_function_type predict;
};

TimeModel::TimeModel(const std::vector<Sample>& samples, const std::vector<Candidate>& tried) {
  std::vector<Features> inputs;
  std::vector<double> outputs;
  for (const Sample& sample : samples) {
    inputs.push_back(features(sample.configuration, tried.size()));
    outputs.push_back(std::log(sample.ms));
  }
  Trainer trainer;
  trainer.set_num_trees(kTrees);
  trainer.set_min_samples_per_leaf(1);
  trainer.set_feature_subsampling_fraction(0.6);
  trainer.set_seed("klap-ptx tune");
  std::vector<double> out_of_bag;
  forest_ = std::make_unique<Forest>(Forest{tried.size(), trainer.train(inputs, outputs, out_of_bag)});
}

TimeModel::~TimeModel() = default;
TimeModel::TimeModel(TimeModel&&) noexcept = default;

double TimeModel::predict(const Configuration& configuration) const {
  return std::exp(forest_->predict(features(configuration, forest_->candidates)));
}

HeldOut test_model(const std::vector<Sample>& samples, const std::vector<Candidate>& tried) {
  HeldOut out;
  if (samples.size() < kFewestToTest) return out;
  std::vector<Sample> mixed = samples;
  std::ranges::shuffle(mixed, std::mt19937(1));
  const auto others = mixed.begin() + static_cast<ptrdiff_t>(mixed.size() / kHeldOut);
  const TimeModel model({others, mixed.end()}, tried);
  std::vector<double> errors;
  for (auto sample = mixed.begin(); sample != others; ++sample) {
    const double predicted = model.predict(sample->configuration);
    out.pairs.push_back({sample->configuration, sample->ms, predicted});
    errors.push_back(std::abs(predicted - sample->ms) / sample->ms);
  }
  std::ranges::sort(errors);
  out.median_error = errors[(errors.size() - 1) / 2];
  out.error_of_nine_in_ten = errors[(errors.size() - 1) * 9 / 10];
  return out;
}

namespace {

// The mean square of the errors of logarithms, with the given configurations in place of the samples' own.
double error_with(const TimeModel& model, const std::vector<Sample>& samples,
                  const std::vector<Configuration>& configurations) {
  double sum = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double error = std::log(model.predict(configurations[i]) / samples[i].ms);
    sum += error * error;
  }
  return sum / static_cast<double>(samples.size());
}

// Each configuration with the values of `subject` that another one has.
std::vector<Configuration> shuffled(const std::vector<Sample>& samples, const std::vector<Candidate>& tried,
                                    std::string_view subject, std::mt19937& random) {
  std::vector<size_t> from(samples.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = i;
  std::ranges::shuffle(from, random);
  std::vector<Configuration> out;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto is_of_it = [&](size_t candidate) { return tried[candidate].subject() == subject; };
    Configuration mixed;
    std::ranges::copy_if(samples[i].configuration, std::back_inserter(mixed), std::not_fn(is_of_it));
    std::ranges::copy_if(samples[from[i]].configuration, std::back_inserter(mixed), is_of_it);
    std::ranges::sort(mixed);
    out.push_back(std::move(mixed));
  }
  return out;
}

}  // namespace

std::map<std::string, double> importance(const std::vector<Sample>& samples,
                                         const std::vector<Candidate>& tried) {
  // Each shuffle asks about all samples, so that many samples need few shuffles.
  constexpr size_t kEnough = 6'000;
  const size_t shuffles = std::clamp<size_t>(kEnough / samples.size(), 2, 20);
  const TimeModel model(samples, tried);
  std::vector<Configuration> own;
  for (const Sample& sample : samples) own.push_back(sample.configuration);
  const double before = error_with(model, samples, own);
  std::map<std::string, double> out;
  std::mt19937 random(1);
  double all = 0;
  for (const Candidate& candidate : tried) {
    const auto [entry, is_new] = out.emplace(candidate.subject(), 0);
    if (!is_new) continue;
    for (size_t i = 0; i < shuffles; ++i)
      entry->second += error_with(model, samples, shuffled(samples, tried, candidate.subject(), random));
    entry->second = std::max(0.0, entry->second / static_cast<double>(shuffles) - before);
    all += entry->second;
  }
  for (auto& [subject, share] : out) share = all > 0 ? share / all : 0;
  return out;
}

}  // namespace klap::tool
