// Which settings a kernel gets, from how long its launches took with each.
//
// A setting is tried for all kernels at once, because the time of each kernel is known by itself. A kernel's
// time is that of a launch and of its children. All runs of one setting give several times; the middle one
// counts, as other work on the machine makes some of them longer.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace klap::tool {

// The milliseconds that a launch of each parent took in a run, with its children, by its mangled name.
using ParentTimes = std::map<std::string, double>;

// The times of all right runs with one setting.
using SettingTimes = std::vector<ParentTimes>;

// The middle one; 0 if there is none.
double middle(std::vector<double> values);

// The middle time of the parent's launches; nothing where no run made one.
std::optional<double> middle_ms(const SettingTimes& times, const std::string& parent);

struct Choice {
  std::string parent;
  double default_ms = 0;
  std::optional<size_t> setting;  // the number of the setting that is better than the default
  double best_ms = 0;
  // The best one of another key that is better than the default, too. It is chosen as well if both together
  // are better than the first alone.
  std::optional<size_t> second{};
};

// For each parent of the default's runs, by name. A setting is chosen if it saves at least so much. `keys`
// are those of the settings: two of one key cannot be chosen together, and one with an empty key not with
// any.
constexpr double kLeastGain = 0.03;
std::vector<Choice> choose(const SettingTimes& defaults, const std::vector<SettingTimes>& settings,
                           const std::vector<std::string>& keys);

// Gives up the second settings that save nothing more in runs with both.
void keep_pairs(std::vector<Choice>& choices, const SettingTimes& both);

// Gives up the choices that do not save as much in other runs, at the default and with all choices. The best
// of many settings is often one whose runs were lucky.
void confirm(std::vector<Choice>& choices, const SettingTimes& defaults, const SettingTimes& chosen);

}  // namespace klap::tool
