// The settings of kernels that tuning tries, one at a time; at the end the two best of a kernel together.
#pragma once

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
};

// Settings that change how launches are grouped come first, since they change the most. Settings that give up
// an order, or that say something about the program, are not among them: no measurement can tell whether they
// are right.
const std::vector<Candidate>& candidates();

}  // namespace klap::tool
