// The settings on which code depends, by the keys under which the pipeline asks for them.
//
// Every question goes through given_setting(), which refuses a key that is not in the list, and the keys of
// both caches are made from the same list. So a setting that decides about code cannot be missing in a key.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jit/data/request.h"

namespace klap::jit {

// Asked for each launch; `kHeapKey` is asked once for the whole program.
std::span<const std::string_view> launch_keys();
inline constexpr std::string_view kHeapKey = "aggregate_malloc";

// The caller's value, nothing where it gives none. Throws Error(Internal) for a key that is not listed.
std::optional<GivenValue> given_setting(const Request& request, std::string_view key,
                                        const std::string& parent, const std::string& child);

}  // namespace klap::jit
