// Launching a parent in slices: parts of its grid, one after another, each followed by its consumers.
//
// The queues may lack room for every thread of the grid at once. The limit may be pool_bytes, total_bytes,
// the device's memory or the number of records that a queue can index. Then the parent runs in as few slices
// as the room allows, all over the same queues. A consumer leaves them empty behind it, and the stream keeps
// one slice behind the other. analysis/legality/slicing.h shows that this is right, and decides by parent.
//
// A slice is a box of blocks: whole layers of the grid (z) while one fits, else rows of one layer (y), else
// blocks of one row. So a block's place in the grid is its place in the slice plus the slice's first block. A
// slice can be as small as one block.
//
// A launch in very many slices fills the driver's queue (about a thousand launches). The host then waits in
// it for the device, as it does behind a thousand launches of its own. A program may hold the stream until
// this host thread does something later; it would wait for ever there. So a launch in many slices is only
// made in a stream that is idle (in_flight.h).
#pragma once

#include <cstdint>
#include <span>

#include "jit/data/variant.h"

namespace klap::runtime {

// A grid that is cut into slices.
class GridSlices {
 public:
  // Cuts into slices of at most `most_blocks` blocks, at least 1. All extents of the grid are at least 1.
  GridSlices(std::span<const unsigned, 3> grid, uint64_t most_blocks);

  [[nodiscard]] uint64_t count() const { return per_axis_[0] * per_axis_[1] * per_axis_[2]; }
  // The blocks of the largest slice, which is the first.
  [[nodiscard]] uint64_t most_blocks() const;

  struct Slice {
    jit::GridSlice place;
    unsigned grid[3];  // to launch
  };
  [[nodiscard]] Slice at(uint64_t number) const;

 private:
  uint64_t grid_[3];
  uint64_t extent_[3];  // of a slice; less at the end of an axis
  uint64_t per_axis_[3];
};

}  // namespace klap::runtime
