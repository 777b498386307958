// This is what a random program that waits does, in C++. It knows nothing of PTX.
//
// A child runs when it is launched, all threads of a block go through its statements together, and so waits
// and barriers have nothing to do: the ways in which programs use memory leave no other result.
#pragma once

#include <cstdint>
#include <vector>

#include "random/waits/program.h"

namespace klap::differential::waits {

struct Memories {
  std::vector<uint32_t> input, words;
};
Memories initial_memories(const Program& program);
Memories run_reference(const Program& program);

// Where the words of a step begin: those of its parent, of which the host has one, and then its grid's.
std::vector<uint32_t> step_words(const Program& program, const Layout& layout);

}  // namespace klap::differential::waits
