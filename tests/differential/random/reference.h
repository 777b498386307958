// Runs a random program by walking over its tree: what memory must hold at the end.
//
// It knows nothing of PTX or schedules. Threads run one after another, between barriers; a launched grid runs
// when its parent is done, or at once, and those of one stream run one after another. What the programs
// promise makes all that CUDA leaves open irrelevant. That every word of a thread's own has one writer, and
// that accesses to cells which conflict are ordered, is checked here, so that a mistake in the generator
// shows as itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random/program.h"

namespace klap::differential::random {

struct Memories {
  std::vector<uint32_t> input, sums, own, cells;
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

// In which order blocks, threads and grids are run that nothing orders. Against CUDA's rules, for comparison:
// Reversed, in which threads' launches into one stream run in the opposite order, but each thread's in its
// own.
enum class GridOrder : uint8_t { AtOnce, FirstComeFirstServed, LastComeFirstServed, Reversed };
// Throws Error(Internal) if the program breaks its promises.
Memories run_reference(const Program& program, GridOrder order = GridOrder::FirstComeFirstServed);
// What the program does that makes its result depend on what CUDA does not order; empty if it does nothing
// so.
[[nodiscard]] std::string disorder(const Program& program);

}  // namespace klap::differential::random
