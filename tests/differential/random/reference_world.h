// The state of a reference run: memories, and grids with what they were launched with.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "random/reference.h"
#include "random/reference_cells.h"
#include "support/error.h"

namespace klap::differential::random {

// A pointer that grids are given: into the input or into what threads own.
struct Pointer {
  bool is_input = true;
  uint32_t word = 0;
};

struct Grid {
  uint32_t kernel = 0;
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  std::vector<uint32_t> values;
  uint32_t own = 0, depth = 0, room = 0;
  Pointer message, previous;
  uint32_t cells = 0, cells_end = 0;
  uint32_t number = 0;  // in the order of launches
  Stream stream = Stream::Null;
  uint32_t launcher = 0;  // which threads' launches are ordered with it
  uint32_t thread = 0;    // that has launched it, counted through
};

// The place of a sum in Memories::sums.
inline uint64_t sum_word(Sum sum, uint32_t index) { return static_cast<uint32_t>(sum) * kSumWords + index; }

class World {
 public:
  World(const Program& of, GridOrder order)
      : program(of),
        layout(lay_out(of)),
        memories(initial_memories(of)),
        cells(memories.cells, order != GridOrder::Reversed),
        has_cells(uses_cells(of)),
        order_(order) {
    writers_.resize(memories.own.size());
  }

  void run();

  // Takes a grid of the device that is launched now.
  void launch(const Grid& grid, std::vector<Grid>& launched) {
    if (order_ == GridOrder::AtOnce) {
      run_grid(grid);
    } else {
      launched.push_back(grid);
    }
  }
  [[nodiscard]] bool is_backwards() const { return order_ == GridOrder::LastComeFirstServed; }

  // `writer` is different for every thread of every grid.
  void store_own(uint32_t word, uint32_t value, uint64_t writer) {
    if (word >= memories.own.size()) throw Error(ErrorCode::Internal, "a store beyond all own words");
    if (writers_[word] != 0 && writers_[word] != writer) {
      throw Error(ErrorCode::Internal, fmt::format("own word {} has two writers", word));
    }
    writers_[word] = writer;
    memories.own[word] = value;
  }

  // The word by which threads of a block took turns.
  void store_flag(uint32_t word, uint32_t value) { memories.own.at(word) = value; }

  // The word that a pointer names, so many words behind.
  [[nodiscard]] uint32_t read(const Pointer& pointer, uint32_t offset) const {
    return (pointer.is_input ? memories.input : memories.own).at(pointer.word + offset);
  }

  const Program& program;
  const Layout layout;
  Memories memories;
  Cells cells;
  const bool has_cells;

 private:
  void run_grid(const Grid& grid);
  void run_launched(std::vector<Grid>& launched);

  GridOrder order_;
  std::vector<uint64_t> writers_;
};

}  // namespace klap::differential::random
