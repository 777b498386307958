#include "runtime/launch/slices.h"

#include <algorithm>

namespace klap::runtime {

GridSlices::GridSlices(std::span<const unsigned, 3> grid, uint64_t most_blocks) {
  std::copy(grid.begin(), grid.end(), grid_);
  uint64_t below = 1;  // blocks of a slice of extent 1 on this axis
  for (size_t axis = 0; axis < 3; ++axis) {
    extent_[axis] = std::clamp<uint64_t>(most_blocks / below, 1, grid_[axis]);
    per_axis_[axis] = (grid_[axis] + extent_[axis] - 1) / extent_[axis];
    below *= grid_[axis];
  }
}

uint64_t GridSlices::most_blocks() const { return extent_[0] * extent_[1] * extent_[2]; }

GridSlices::Slice GridSlices::at(uint64_t number) const {
  Slice slice{};
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t first = number % per_axis_[axis] * extent_[axis];
    number /= per_axis_[axis];
    slice.place.first[axis] = static_cast<uint32_t>(first);
    slice.place.whole[axis] = static_cast<uint32_t>(grid_[axis]);
    slice.grid[axis] = static_cast<unsigned>(std::min(extent_[axis], grid_[axis] - first));
  }
  return slice;
}

}  // namespace klap::runtime
