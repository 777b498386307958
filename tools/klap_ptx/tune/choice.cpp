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

namespace {

// The best of the settings that save enough for the parent and that `may_be` allows.
template <typename MayBe>
std::optional<size_t> best_setting(const Choice& of, const std::vector<SettingTimes>& settings,
                                   const MayBe& may_be) {
  double best_ms = (1 - kLeastGain) * of.default_ms;
  std::optional<size_t> best;
  for (size_t i = 0; i < settings.size(); ++i) {
    const auto ms = middle_ms(settings[i], of.parent);
    if (!ms || !may_be(i) || *ms > best_ms || (best && *ms >= best_ms)) continue;
    best_ms = *ms;
    best = i;
  }
  return best;
}

}  // namespace

std::vector<Choice> choose(const SettingTimes& defaults, const std::vector<SettingTimes>& settings,
                           const std::vector<std::string>& keys) {
  std::set<std::string> parents;
  for (const ParentTimes& run : defaults) {
    for (const auto& [parent, ms] : run) parents.insert(parent);
  }
  std::vector<Choice> choices;
  for (const std::string& parent : parents) {
    const double default_ms = *middle_ms(defaults, parent);
    Choice& choice = choices.emplace_back(Choice{parent, default_ms, std::nullopt, default_ms});
    choice.setting = best_setting(choice, settings, [](size_t) { return true; });
    if (!choice.setting) continue;
    choice.best_ms = *middle_ms(settings[*choice.setting], parent);
    const std::string& key = keys.at(*choice.setting);
    const auto goes_with_it = [&](size_t i) { return !keys.at(i).empty() && keys.at(i) != key; };
    if (!key.empty()) choice.second = best_setting(choice, settings, goes_with_it);
  }
  return choices;
}

void keep_pairs(std::vector<Choice>& choices, const SettingTimes& both) {
  for (Choice& choice : choices) {
    if (!choice.second) continue;
    const auto ms = middle_ms(both, choice.parent);
    if (ms && *ms <= (1 - kLeastGain) * choice.best_ms) {
      choice.best_ms = *ms;
    } else {
      choice.second.reset();
    }
  }
}

void confirm(std::vector<Choice>& choices, const SettingTimes& defaults, const SettingTimes& chosen) {
  for (Choice& choice : choices) {
    if (!choice.setting) continue;
    const auto before = middle_ms(defaults, choice.parent), after = middle_ms(chosen, choice.parent);
    if (before) choice.default_ms = *before;
    if (after) choice.best_ms = *after;
    if (before && after && *after <= (1 - kLeastGain) * *before) continue;
    choice.setting.reset();
    choice.second.reset();
    choice.best_ms = choice.default_ms;
  }
}

}  // namespace klap::tool
