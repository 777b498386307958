#include "runtime/parents/known_launch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace klap::runtime {
namespace {

std::array<uint32_t, 7> sizes_of(const Launch& launch) {
  const auto& [x, y, z] = launch.grid;
  const auto& [block_x, block_y, block_z] = launch.block;
  return {x, y, z, block_x, block_y, block_z, launch.shared_bytes};
}

// Other forms of launches are rare, and decided each time.
bool has_plain_form(const Launch& launch) {
  return launch.stream != CU_STREAM_PER_THREAD && launch.attributes.empty() && launch.extra == nullptr &&
         launch.params != nullptr;
}

}  // namespace

void KnownLaunch::remember(const Launch& launch, const jit::Variant& variant, const Circumstances& in,
                           uint64_t times) {
  const std::vector<uint32_t>& sizes = variant.parent_param_sizes;
  if (!has_plain_form(launch) || sizes.size() > parameter_bytes_.size()) return;
  size_t end = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > std::numeric_limits<uint8_t>::max() || end + sizes[i] > parameters_.size()) return;
    std::memcpy(parameters_.data() + end, launch.params[i], sizes[i]);
    parameter_bytes_.at(i) = static_cast<uint8_t>(sizes[i]);
    end += sizes[i];
  }
  count_ = static_cast<uint32_t>(sizes.size());
  sizes_ = sizes_of(launch);
  stream_ = launch.stream;
  in_ = in;
  left_.store(static_cast<uint32_t>(std::min<uint64_t>(times, std::numeric_limits<uint32_t>::max())),
              std::memory_order_relaxed);
}

uint64_t KnownLaunch::forget() {
  left_.store(0, std::memory_order_relaxed);
  return std::exchange(found_, 0);
}

bool KnownLaunch::knows(const Launch& launch) const {
  const bool is_same =
      may_know() && has_plain_form(launch) && launch.stream == stream_ && sizes_of(launch) == sizes_;
  if (!is_same) return false;
  const unsigned char* known = parameters_.data();
  for (uint32_t i = 0; i < count_; ++i) {
    const uint8_t bytes = parameter_bytes_.at(i);
    if (launch.params[i] == nullptr || std::memcmp(known, launch.params[i], bytes) != 0) return false;
    known += bytes;
  }
  return true;
}

void KnownLaunch::count() {
  left_.store(left_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  ++found_;
}

}  // namespace klap::runtime
