// "Did you mean ...?" for misspelt settings.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace klap::settings {

// The candidate with the fewest single-character edits from `word`, the first of equals. Nothing when even
// that one differs in more than a third of its characters (at least 2): a wild guess would only mislead.
std::optional<std::string_view> nearest(std::string_view word,
                                        const std::vector<std::string_view>& candidates);

}  // namespace klap::settings
