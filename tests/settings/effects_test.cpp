// Every setting of the table has a test of its effect in each place it can be given in (effects.h).
#include "effects.h"

#include <gmock/gmock.h>

#include "settings/table.h"

namespace klap::settings_test {
namespace {

// "KLAP_LOG", "[defaults] granularity", "[[kernel]] name".
std::vector<std::string> all_places() {
  std::vector<std::string> places;
  for (const settings::Setting& setting : settings::table()) {
    const bool is_switch = setting.kind == settings::Kind::Optimisation;
    const std::string key = (is_switch ? "optimise " : "") + std::string(setting.key);
    if (is_switch) places.push_back("KLAP_OPTIMISE " + std::string(setting.key));
    if (!setting.variable.empty()) places.emplace_back(setting.variable);
    for (const settings::Section section : setting.sections) {
      places.push_back(std::string(to_string(section)) + " " + key);
    }
  }
  return places;
}

std::vector<std::string> tested_places() {
  std::vector<std::string> places = launch_places();
  for (const auto& more : {optimisation_places(), process_places()})
    places.insert(places.end(), more.begin(), more.end());
  return places;
}

TEST(EffectsTable, HasATestForEveryPlace) {
  const std::vector<std::string> tested = tested_places();
  for (const std::string& place : all_places())
    EXPECT_THAT(tested, testing::Contains(place)) << place << " has no test: add one that shows what it does";
}

TEST(EffectsTable, NamesOnlyWhatExists) {
  for (const std::string& place : tested_places()) EXPECT_THAT(all_places(), testing::Contains(place));
}

}  // namespace
}  // namespace klap::settings_test
