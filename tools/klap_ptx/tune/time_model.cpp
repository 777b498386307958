#include "klap_ptx/tune/time_model.h"

#include <dlib/random_forest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace klap::tool {
namespace {

using Features = dlib::matrix<double, 0, 1>;
using Trainer = dlib::random_forest_regression_trainer<dlib::dense_feature_extractor>;

constexpr unsigned kTrees = 200;
constexpr size_t kFewestToTest = 10, kHeldOut = 5;

Features features(const std::vector<double>& row) {
  Features out(static_cast<long>(row.size()));
  std::ranges::copy(row, out.begin());
  return out;
}

// Some samples of a table.
SampleTable part_of(const SampleTable& table, const std::vector<size_t>& samples) {
  SampleTable out = {table.names, {}, {}, table.subjects};
  for (const size_t i : samples) {
    out.rows.push_back(table.rows[i]);
    out.times.push_back(table.times[i]);
  }
  return out;
}

std::vector<size_t> in_any_order(size_t count, std::mt19937& random) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), size_t{0});
  std::ranges::shuffle(out, random);
  return out;
}

}  // namespace

struct TimeModel::Forest {
  Trainer::trained_function_type predict;
};

TimeModel::TimeModel(const SampleTable& table) {
  std::vector<Features> inputs;
  std::vector<double> outputs;
  for (const std::vector<double>& row : table.rows) inputs.push_back(features(row));
  for (const double ms : table.times) outputs.push_back(std::log(ms));
  Trainer trainer;
  trainer.set_num_trees(kTrees);
  trainer.set_min_samples_per_leaf(1);
  trainer.set_feature_subsampling_fraction(0.6);
  trainer.set_seed("klap-ptx tune");
  std::vector<double> out_of_bag;
  forest_ = std::make_unique<Forest>(Forest{trainer.train(inputs, outputs, out_of_bag)});
}

TimeModel::~TimeModel() = default;
TimeModel::TimeModel(TimeModel&&) noexcept = default;

double TimeModel::predict(const std::vector<double>& row) const {
  return std::exp(forest_->predict(features(row)));
}

HeldOut test_model(const SampleTable& table) {
  HeldOut out;
  if (table.rows.size() < kFewestToTest) return out;
  std::mt19937 random(1);
  const std::vector<size_t> mixed = in_any_order(table.rows.size(), random);
  const auto others = mixed.begin() + static_cast<ptrdiff_t>(mixed.size() / kHeldOut);
  const TimeModel model(part_of(table, {others, mixed.end()}));
  std::vector<double> errors;
  for (auto sample = mixed.begin(); sample != others; ++sample) {
    const double measured = table.times[*sample], predicted = model.predict(table.rows[*sample]);
    out.pairs.push_back({*sample, measured, predicted});
    errors.push_back(std::abs(predicted - measured) / measured);
  }
  std::ranges::sort(errors);
  out.median_error = errors[(errors.size() - 1) / 2];
  out.error_of_nine_in_ten = errors[(errors.size() - 1) * 9 / 10];
  return out;
}

namespace {

// The mean square of the errors of logarithms.
double error_with(const TimeModel& model, const SampleTable& table) {
  double sum = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const double error = std::log(model.predict(table.rows[i]) / table.times[i]);
    sum += error * error;
  }
  return sum / static_cast<double>(table.rows.size());
}

// Each sample with the values of `subject` that another one has.
SampleTable shuffled(const SampleTable& table, const std::string& subject, std::mt19937& random) {
  const std::vector<size_t> from = in_any_order(table.rows.size(), random);
  SampleTable out = table;
  for (size_t i = 0; i < from.size(); ++i)
    for (size_t column = 0; column < table.subjects.size(); ++column)
      if (table.subjects[column] == subject) out.rows[i][column] = table.rows[from[i]][column];
  return out;
}

}  // namespace

std::map<std::string, double> importance(const SampleTable& table) {
  // Each shuffle asks about all samples, so that many samples need few shuffles.
  constexpr size_t kEnough = 6'000;
  const size_t shuffles = std::clamp<size_t>(kEnough / table.rows.size(), 2, 20);
  const TimeModel model(table);
  const double before = error_with(model, table);
  std::map<std::string, double> out;
  std::mt19937 random(1);
  double all = 0;
  for (const std::string& subject : table.subjects) {
    const auto [entry, is_new] = out.emplace(subject, 0);
    if (!is_new) continue;
    for (size_t i = 0; i < shuffles; ++i)
      entry->second += error_with(model, shuffled(table, subject, random));
    entry->second = std::max(0.0, entry->second / static_cast<double>(shuffles) - before);
    all += entry->second;
  }
  for (auto& [subject, share] : out) share = all > 0 ? share / all : 0;
  return out;
}

}  // namespace klap::tool
