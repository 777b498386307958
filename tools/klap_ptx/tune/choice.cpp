#include "klap_ptx/tune/choice.h"

#include <algorithm>
#include <set>
#include <utility>

namespace klap::tool {

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

std::optional<double> middle_ms(const SettingTimes& times, const std::string& parent) {
  std::vector<double> found;
  for (const ParentTimes& run : times) {
    if (const auto of_parent = run.find(parent); of_parent != run.end()) found.push_back(of_parent->second);
  }
  if (found.empty()) return std::nullopt;
  return middle(std::move(found));
}

std::vector<Choice> choose(const SettingTimes& defaults, const std::vector<SettingTimes>& settings) {
  std::set<std::string> parents;
  for (const ParentTimes& run : defaults) {
    for (const auto& [parent, ms] : run) parents.insert(parent);
  }
  std::vector<Choice> choices;
  for (const std::string& parent : parents) {
    const double default_ms = *middle_ms(defaults, parent);
    Choice choice{parent, default_ms, std::nullopt, default_ms};
    for (size_t i = 0; i < settings.size(); ++i) {
      const auto ms = middle_ms(settings[i], parent);
      if (!ms || *ms > (1 - kLeastGain) * choice.default_ms || *ms >= choice.best_ms) continue;
      choice.best_ms = *ms;
      choice.setting = i;
    }
    choices.push_back(choice);
  }
  return choices;
}

void confirm(std::vector<Choice>& choices, const SettingTimes& defaults, const SettingTimes& chosen) {
  for (Choice& choice : choices) {
    if (!choice.setting) continue;
    const auto before = middle_ms(defaults, choice.parent), after = middle_ms(chosen, choice.parent);
    if (before) choice.default_ms = *before;
    if (after) choice.best_ms = *after;
    if (before && after && *after <= (1 - kLeastGain) * *before) continue;
    choice.setting.reset();
    choice.best_ms = choice.default_ms;
  }
}

}  // namespace klap::tool
