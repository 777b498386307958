#include "klap_ptx/tune/search.h"

#include <algorithm>

#include "klap_ptx/tune/choice.h"

namespace klap::tool {
namespace {

constexpr size_t kDrawnFirst = 20;          // as many random ones, before there is a model
constexpr size_t kDrawnEach = 4;            // then every fourth
constexpr size_t kPatience = 6;             // proposals of the model without a gain, after which it is over
constexpr double kNoGain = kLeastGain / 3;  // less cannot be told from chance
constexpr size_t kConsidered = 1'000;       // configurations that the model is asked about at a time

}  // namespace

void Search::measured(const Configuration& configuration, double ms) {
  if (ms > 0) times_[configuration].push_back(ms);
}

void Search::failed(const Configuration& configuration) { failed_.insert(configuration); }

bool Search::is_known(const Configuration& configuration) const {
  return times_.contains(configuration) || failed_.contains(configuration);
}

bool Search::has_failed_setting(const Configuration& configuration) const {
  return std::ranges::any_of(configuration, [this](size_t setting) { return failed_.contains({setting}); });
}

std::optional<double> Search::middle_ms(const Configuration& configuration) const {
  const auto found = times_.find(configuration);
  if (found == times_.end() || failed_.contains(configuration)) return std::nullopt;
  return middle(found->second);
}

std::vector<Sample> Search::samples() const {
  std::vector<Sample> out;
  for (const auto& [configuration, times] : times_)
    if (const auto ms = middle_ms(configuration)) out.push_back({configuration, *ms});
  std::ranges::sort(out, {}, &Sample::ms);
  return out;
}

std::optional<Sample> Search::best() const {
  std::optional<Sample> best;
  const std::vector<Sample> all = samples();
  for (const Sample& sample : all) {
    const bool is_as_fast = (1 - kNoGain) * sample.ms <= all.front().ms;
    if (!best || (is_as_fast && sample.configuration.size() < best->configuration.size())) best = sample;
  }
  return best;
}

// Each subject has the default in half of all draws, else one of its values. A kernel that is left as it is
// has no other settings.
Configuration Search::draw() {
  std::map<std::string_view, std::vector<size_t>> subjects;
  for (size_t i = 0; i < tried_.size(); ++i)
    if (!tried_[i].is_original()) subjects[tried_[i].subject()].push_back(i);
  Configuration out;
  for (const auto& [subject, values] : subjects) {
    const size_t drawn = std::uniform_int_distribution<size_t>(0, 2 * values.size() - 1)(random_);
    if (drawn < values.size()) out.push_back(values[drawn]);
  }
  std::ranges::sort(out);
  return out;
}

std::optional<Configuration> Search::draw_unknown() {
  constexpr int kDraws = 200;  // so many known ones in a row, and there are hardly others
  for (int i = 0; i < kDraws; ++i)
    if (Configuration drawn = draw(); !is_known(drawn) && !has_failed_setting(drawn)) return drawn;
  return std::nullopt;
}

// The model is asked about many that are drawn, and about those that have one value more or fewer than the
// best.
std::optional<Configuration> Search::most_promising() {
  const std::vector<Sample> so_far = samples();
  if (so_far.empty()) return std::nullopt;
  const TimeModel model(settings_table(so_far, tried_));
  std::optional<Configuration> best;
  double best_ms = 0;
  const auto consider = [&](const Configuration& configuration) {
    if (is_known(configuration) || has_failed_setting(configuration)) return;
    const double ms = model.predict(settings_row(configuration, tried_.size()));
    if (best && ms >= best_ms) return;
    best = configuration;
    best_ms = ms;
  };
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (tried_[i].is_original()) continue;
    Configuration near = so_far.front().configuration;
    const bool had_it = std::erase(near, i) > 0;
    std::erase_if(near, [&](size_t other) {
      return tried_[other].is_original() || (!had_it && tried_[other].subject() == tried_[i].subject());
    });
    if (!had_it) near.push_back(i);
    std::ranges::sort(near);
    consider(near);
  }
  for (size_t i = 0; i < kConsidered; ++i) consider(draw());
  return best;
}

std::optional<Configuration> Search::next() {
  auto proposed = is_over_ ? std::nullopt : propose();
  is_over_ = !proposed;
  if (proposed) ++returned_;
  return proposed;
}

std::optional<Configuration> Search::propose() {
  const size_t number = proposed_++;
  if (number < kDrawnFirst || (number - kDrawnFirst) % kDrawnEach == kDrawnEach - 1) return draw_unknown();
  const std::vector<Sample> so_far = samples();
  const double best_ms = so_far.empty() ? 0 : so_far.front().ms;
  const bool has_gained = gained_at_ == 0 || best_ms < (1 - kNoGain) * gained_at_;
  without_gain_ = has_gained ? 0 : without_gain_ + 1;
  if (has_gained) gained_at_ = best_ms;
  return without_gain_ < kPatience ? most_promising() : std::nullopt;
}

Combinations Search::combinations() const {
  std::set<size_t> failed_alone;
  for (size_t i = 0; i < tried_.size(); ++i)
    if (failed_.contains({i})) failed_alone.insert(i);
  return {tried_, failed_alone};
}

std::optional<Configuration> Search::next_untried() {
  if (!untried_) untried_ = combinations();
  while (auto next = untried_->next())
    if (!is_known(*next)) return next;
  return std::nullopt;
}

Search::Coverage Search::coverage() const {
  const Combinations all = combinations();
  Coverage out = {0, all.count()};
  std::set<Configuration> known = failed_;
  for (const auto& [configuration, times] : times_) known.insert(configuration);
  for (const Configuration& configuration : known)
    if (all.contains(configuration)) ++out.tried;
  return out;
}

}  // namespace klap::tool
