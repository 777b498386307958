#include "klap_ptx/tune/choice.h"

#include <algorithm>
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

void confirm(std::vector<Choice>& choices, const SettingTimes& defaults, const SettingTimes& chosen) {
  for (Choice& choice : choices) {
    if (choice.best.empty()) continue;
    const auto before = middle_ms(defaults, choice.parent), after = middle_ms(chosen, choice.parent);
    if (before) choice.default_ms = *before;
    if (after) choice.best_ms = *after;
    if (before && after && *after <= (1 - kLeastGain) * *before) continue;
    choice.best.clear();
    choice.best_ms = choice.default_ms;
  }
}

}  // namespace klap::tool
