#include "analysis/ranges/shared_cells.h"

#include <algorithm>

namespace klap::analysis {
namespace {

constexpr char kMeets[] = "meets another thread's access without a barrier between";

bool are_kept_apart(const Touch& a, const Touch& b) {
  return a.thread == b.thread || a.block_barriers != b.block_barriers ||
         (a.warp == b.warp && a.warp_barriers != b.warp_barriers);
}

}  // namespace

bool SharedCells::lies_over_another(const SharedPlace& place, uint32_t bytes) const {
  constexpr int64_t kWidest = 8;
  for (auto near = cells_.lower_bound({place.first, place.second - kWidest + 1});
       near != cells_.end() && near->first.first == place.first &&
       near->first.second < place.second + static_cast<int64_t>(bytes);
       ++near) {
    const bool overlaps = near->first.second + static_cast<int64_t>(near->second.bytes) > place.second;
    if (overlaps && !(near->first == place && near->second.bytes == bytes)) return true;
  }
  return false;
}

std::optional<std::string> SharedCells::store(const SharedPlace& place, uint32_t bytes, const Touch& touch,
                                              HeldValue value) {
  if (lies_over_another(place, bytes)) return "lies over another access";
  Cell& cell = cells_[place];
  const bool is_apart =
      (cell.bytes == 0 || are_kept_apart(touch, cell.writer)) &&
      std::ranges::all_of(cell.readers, [&](const Touch& reader) { return are_kept_apart(touch, reader); });
  if (!is_apart) return kMeets;
  cell = {bytes, std::move(value), touch, {}};
  return std::nullopt;
}

std::optional<std::string> SharedCells::load(const SharedPlace& place, uint32_t bytes, const Touch& touch,
                                             HeldValue& value) {
  const auto cell = cells_.find(place);
  if (cell == cells_.end() || cell->second.bytes != bytes) return "reads what no thread has written";
  if (!are_kept_apart(touch, cell->second.writer)) return kMeets;
  cell->second.readers.push_back(touch);
  value = cell->second.value;
  return std::nullopt;
}

}  // namespace klap::analysis
