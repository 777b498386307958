// Which settings a kernel gets, from how long its launches took with each.
//
// One run tries other settings for each kernel, because the time of each kernel is known by itself. A
// kernel's time is that of a launch and of its children. All runs with the same settings give several times;
// the middle one counts, as other work on the machine makes some of them longer.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "klap_ptx/tune/candidates.h"

namespace klap::tool {

// The milliseconds that a launch of each parent took in a run, with its children, by its mangled name.
using ParentTimes = std::map<std::string, double>;

// The times of all right runs with the same settings.
using SettingTimes = std::vector<ParentTimes>;

// The middle one; 0 if there is none.
double middle(std::vector<double> values);

// The middle time of the parent's launches; nothing where no run made one.
std::optional<double> middle_ms(const SettingTimes& times, const std::string& parent);

struct Choice {
  std::string parent;
  double default_ms = 0;
  Configuration best;  // empty: the default
  double best_ms = 0;
};

// A choice saves at least so much.
constexpr double kLeastGain = 0.03;

// Gives up the choices that do not save as much in other runs, at the default and with all choices. The best
// of many settings is often one whose runs were lucky.
void confirm(std::vector<Choice>& choices, const SettingTimes& defaults, const SettingTimes& chosen);

}  // namespace klap::tool
