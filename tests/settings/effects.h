// Tests that a setting does something: one for each place it can be given in (a variable, [defaults],
// [[kernel]]), which shows a program or a tool behave differently for it.
//
// Each of the files *_effects_test.cpp has a table of its places and tests. effects_test.cpp compares all of
// them with the table of settings, so a new row without a test fails.
#pragma once

#include <gmock/gmock.h>

#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "preloaded.h"

namespace klap::settings_test {

class Effects : public Preloaded, public testing::WithParamInterface<std::string> {
 protected:
  const std::string parent_table_ = "[[kernel]]\nname = \"parent(*\"\n";
  // The value in force for the parent, as klap-ptx says.
  std::string in_force(const std::string& key, const std::vector<std::string>& environment) {
    const auto result = klap_ptx({"config", "--json", "_Z6parentPii"}, environment);
    const nlohmann::json printed = result.json();
    for (const nlohmann::json& row : printed["settings"]) {
      if (row["key"] == key) return row["value"];
    }
    return "";
  }
  // In how many slices the parent's one launch ran.
  static int slices(const Outcome& outcome) {
    EXPECT_TRUE(outcome.redirected());
    const nlohmann::json& sliced = outcome.stats["launches"]["sliced"];
    return sliced.contains("_Z6parentPii") ? sliced["_Z6parentPii"]["slices"].get<int>() : 1;
  }
  // What explain says of a program whose child begins with a comparison.
  std::string flattening(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-error-query.golden");
    const std::string file = write("guarded.ptx", golden.substr(golden.find(".version")));
    return explanation({file}, {setting});
  }
  // What explain knows of each site, and the number of those that are rewritten.
  std::string explanation(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
    arguments.insert(arguments.begin(), {"explain", "--json"});
    const nlohmann::json sites = klap_ptx(arguments, environment).json()["sites"];
    std::string text;
    int rewritten = 0;
    for (const nlohmann::json& site : sites) {
      const std::string verdict = site["verdict"];
      rewritten += verdict == "rewritten" ? 1 : 0;
      text += "from " + site["parent_demangled"].get<std::string>() + " " + verdict + ": " +
              site["detail"].get<std::string>() + "\n";
      for (const std::string note : site["notes"]) text += note + "\n";
    }
    return text + std::to_string(rewritten) + " rewritten\n";
  }
};

template <class Effect>
std::vector<std::string> places_of(const std::map<std::string, Effect>& table) {
  std::vector<std::string> places;
  for (const auto& [place, effect] : table) places.push_back(place);
  return places;
}

inline std::string name_of_place(const testing::TestParamInfo<std::string>& place) {
  std::string name;
  for (const char c : place.param) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

// The places that have a test, by file.
std::vector<std::string> launch_places();
std::vector<std::string> optimisation_places();
std::vector<std::string> process_places();

}  // namespace klap::settings_test
