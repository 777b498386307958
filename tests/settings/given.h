// Settings for a request of the pipeline, as a test wants them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "settings/launch_options.h"

namespace klap::test {

using GivenValues = std::map<std::string, std::string, std::less<>>;

// For jit::Request::setting: these values by key, for every launch. Remarks name the place, if there is one.
inline auto given(GivenValues values, const std::string& place = "") {
  return [values = std::move(values), place](std::string_view key, const std::string& /*parent*/,
                                             const std::string& /*child*/) -> std::optional<settings::Given> {
    const auto found = values.find(key);
    if (found == values.end()) return std::nullopt;
    return settings::Given{found->second, place};
  };
}

}  // namespace klap::test
