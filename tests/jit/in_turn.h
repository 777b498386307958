// Tests do not do everything for each file, but take turns by the file's name.
#pragma once

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace klap::test {

inline size_t turn_of(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  return std::accumulate(name.begin(), name.end(), size_t{0});
}

// All of these in the full run, else one, for every file another one.
template <class What>
std::vector<What> in_turn(const std::filesystem::path& file, const std::vector<What>& all) {
  return KLAP_FULL_TESTS ? all : std::vector<What>{all[turn_of(file) % all.size()]};
}

}  // namespace klap::test
