// Functions that a unit only declares, with others in their place.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ptx/tree.h"

namespace klap::transform {

struct ReplacedFunction {
  std::string name;
  std::string body;  // with its braces, for a function of the unit; empty for one that is declared as before
};

// The unit's text with functions replaced, by the names that they have there.
std::string with_replaced_functions(const ptx::Module& unit,
                                    const std::map<std::string_view, ReplacedFunction>& replaced);

}  // namespace klap::transform
