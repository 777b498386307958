// Runs a random program by walking over its tree. The result is the memory that must hold at the end.
//
// It knows nothing of PTX or schedules. Threads run one after another, between barriers; a launched grid runs
// when its parent is done, or at once, and those of one stream run one after another. The programs' promises
// make everything irrelevant that CUDA leaves open. Two promises are checked here, so that a mistake in the
// generator shows as itself. Every word of a thread's own has one writer, and conflicting accesses to cells
// are ordered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random/program.h"

namespace klap::differential::random {

struct Memories {
  std::vector<uint32_t> input, sums, own, cells;
};

// The begin of each step's words in Memories::own, and the place from which its grids may read the words of
// earlier steps. Nothing if they are given the input instead.
struct StepRoom {
  uint32_t begin = 0;
  std::optional<uint32_t> previous;
};
std::vector<StepRoom> step_rooms(const Program& program, const Layout& layout);
uint32_t own_words(const Program& program, const Layout& layout);

// The contents of memory before the first step.
Memories initial_memories(const Program& program);

// In which order blocks, threads and grids are run that nothing orders. Against CUDA's rules, for comparison:
// Reversed, in which threads' launches into one stream run in the opposite order, but each thread's in its
// own.
enum class GridOrder : uint8_t { AtOnce, FirstComeFirstServed, LastComeFirstServed, Reversed };
// Throws Error(Internal) if the program breaks its promises.
Memories run_reference(const Program& program, GridOrder order = GridOrder::FirstComeFirstServed);
// The access by which the program's result depends on an order that CUDA does not fix; empty if there is
// none.
[[nodiscard]] std::string disorder(const Program& program);

}  // namespace klap::differential::random
