// Advice for the author and the user of a program, on a launch that is left as it is.
#pragma once

#include <string>
#include <string_view>

namespace klap::tool {

struct Advice {
  std::string meaning;  // of the reason
  std::string help;     // a sentence or two
  // There is nothing to do, since this is right as it is.
  [[nodiscard]] bool is_fine() const { return help.starts_with("Nothing"); }
};

// By a reason's name. The meaning is the one that klap reasons prints. A name that is not known, as one of
// another version, has the name as its meaning.
Advice site_advice(std::string_view reason);
Advice launch_advice(std::string_view reason);

}  // namespace klap::tool
