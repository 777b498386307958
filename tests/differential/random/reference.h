// Runs a random program by walking over its tree: what memory must hold at the end.
//
// It knows nothing of PTX, warps or schedules. Threads run one after another, between barriers; a launched
// grid runs when its parent is done. What the programs promise makes the order irrelevant, and that every
// word of a thread's own has one writer is checked here, so that a mistake in the generator shows as itself.
#pragma once

#include <cstdint>
#include <vector>

#include "random/program.h"

namespace klap::differential::random {

struct Memories {
  std::vector<uint32_t> input, sums, own;
};

// Where the words of each step begin in Memories::own, and from where its grids may read what earlier steps
// wrote (nothing: they are given the input instead).
struct StepRoom {
  uint32_t begin = 0;
  std::optional<uint32_t> previous;
};
std::vector<StepRoom> step_rooms(const Program& program, const Layout& layout);
uint32_t own_words(const Program& program, const Layout& layout);

// What memory holds before the first step.
Memories initial_memories(const Program& program);

// In which order grids that nothing orders are run.
enum class GridOrder : uint8_t { AtOnce, FirstComeFirstServed, LastComeFirstServed };
// Throws Error(Internal) if the program breaks its promises.
Memories run_reference(const Program& program, GridOrder order = GridOrder::FirstComeFirstServed);

}  // namespace klap::differential::random
