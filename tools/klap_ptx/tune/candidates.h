// The settings of kernels that tuning tries, and what several of them are together.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace klap::tool {

// A key of the config file with a value, and the environment variable that sets it for all kernels.
struct Candidate {
  std::string_view variable, key, value;

  // Launches are left as they are.
  [[nodiscard]] bool is_original() const;
  // The environment of a run that tries it. A kernel that is left by its granularity is not known to
  // the library and has no time, so its original is run in place of its variant.
  [[nodiscard]] std::map<std::string, std::string> environment() const;
  [[nodiscard]] std::string text() const;
  // Candidates of one subject exclude each other: the key, or the optimisation that is switched.
  [[nodiscard]] std::string_view subject() const;
};

// Settings that change how launches are grouped come first, since they change the most. Settings that give up
// an order, or that say something about the program, are not among them: no measurement can tell whether they
// are right.
const std::vector<Candidate>& candidates();

// Candidates that are in force together, by their numbers in ascending order; none: the default. No two have
// the same subject.
using Configuration = std::vector<size_t>;

// The values by key, as a config file has them. Several optimisations become one value.
std::map<std::string, std::string> values(const Configuration& configuration,
                                          const std::vector<Candidate>& tried);

// "threshold = 64 and optimise = unroll=8"; "the default" for none.
std::string text(const Configuration& configuration, const std::vector<Candidate>& tried);

}  // namespace klap::tool
