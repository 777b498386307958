// Which configurations of a kernel to try next, from the times of those that were tried.
//
// Some are drawn at random first, since a model learns from what differs in many ways. Then a model
// (time_model.h) of all times so far names the one that it expects to be the fastest, and every fourth is
// drawn again, so that a wrong model finds out. The search is over when the model's choices no longer win.
// All others can be tried then, to see what the model has missed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "klap_ptx/tune/candidates.h"
#include "klap_ptx/tune/combinations.h"
#include "klap_ptx/tune/time_model.h"

namespace klap::tool {

class Search {
 public:
  // `tried` outlives the search.
  explicit Search(const std::vector<Candidate>& tried) : tried_(tried) {}

  // A time of a launch, in milliseconds. One configuration may have several.
  void measured(const Configuration& configuration, double ms);
  // A run with it was wrong: it is neither proposed again nor among the best. If it is a single setting, no
  // other configuration with that is proposed, either.
  void failed(const Configuration& configuration);

  // Nothing, from then on: no other is expected to be better, or there is no other.
  std::optional<Configuration> next();
  // How many next() has returned.
  [[nodiscard]] size_t proposals() const { return returned_; }

  // Any configuration that was not tried, without asking the model; nothing once all were. Settings that
  // failed alone have no part in it.
  std::optional<Configuration> next_untried();
  struct Coverage {
    uint64_t tried = 0, all = 0;
  };
  // How many of the configurations that next_untried() is about were tried, by whichever way.
  [[nodiscard]] Coverage coverage() const;

  // The middle of its times; nothing if it has none or failed.
  [[nodiscard]] std::optional<double> middle_ms(const Configuration& configuration) const;
  // All configurations with times, the fastest first.
  [[nodiscard]] std::vector<Sample> samples() const;
  // The one with the fewest settings of those that are about as fast as the fastest; nothing without times.
  [[nodiscard]] std::optional<Sample> best() const;

 private:
  [[nodiscard]] std::optional<Configuration> propose();
  [[nodiscard]] bool is_known(const Configuration& configuration) const;
  [[nodiscard]] bool has_failed_setting(const Configuration& configuration) const;
  [[nodiscard]] Configuration draw();
  [[nodiscard]] std::optional<Configuration> draw_unknown();
  [[nodiscard]] std::optional<Configuration> most_promising();
  [[nodiscard]] Combinations combinations() const;

  const std::vector<Candidate>& tried_;
  std::map<Configuration, std::vector<double>> times_;
  std::set<Configuration> failed_;
  std::optional<Combinations> untried_;  // those that next_untried() has not returned
  std::mt19937 random_{1};
  bool is_over_ = false;
  size_t proposed_ = 0, returned_ = 0;
  double gained_at_ = 0;  // the best time when a proposal of the model had made it shorter, or the first one
  size_t without_gain_ = 0;  // proposals of the model since then
};

}  // namespace klap::tool
