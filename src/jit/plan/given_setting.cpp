#include "jit/plan/given_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "support/error.h"

namespace klap::jit {
namespace {

constexpr std::array<std::string_view, 19> kLaunchKeys = {
    "granularity",    "launcher",  "multiblock",   "ordering",    "consumer_threads",
    "two_heads",      "buffer",    "pack_records", "flatten",     "split_rounds",
    "hold_arguments", "unroll",    "occupancy",    "pack_blocks", "batch_items",
    "threshold",      "promotion", "batch_links",  "assume"};

}  // namespace

std::span<const std::string_view> launch_keys() { return kLaunchKeys; }

std::optional<GivenValue> given_setting(const Request& request, std::string_view key,
                                        const std::string& parent, const std::string& child) {
  if (key != kHeapKey && std::ranges::find(kLaunchKeys, key) == kLaunchKeys.end()) {
    throw Error(ErrorCode::Internal, fmt::format("the setting '{}' is not part of the caches' keys", key));
  }
  return request.setting ? request.setting(key, parent, child) : std::nullopt;
}

}  // namespace klap::jit
