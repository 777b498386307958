// The findings of klap doctor: what it looked at, and in which state that is.
#pragma once

#include <string>
#include <vector>

namespace klap::tool {

enum class State { Fine, Broken, NotChecked };

struct Finding {
  std::string what;  // "driver"
  State state = State::Fine;
  std::string text;
  std::string fix;  // what to do; empty: nothing
};

using Findings = std::vector<Finding>;

}  // namespace klap::tool
