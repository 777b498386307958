// Threads of a block that take turns, as PTX: one loop or straight code for each Relation.
#pragma once

#include <functional>
#include <string>

#include "random/print_expression.h"
#include "random/program.h"

namespace klap::differential::random {

struct TurnsPlace {
  std::string thread;   // register: the thread's index in its block
  std::string threads;  // register: how many there are
  // Register: the address of the word that says whose turn it is, where there is one.
  std::string word;
  std::function<void()> body;  // prints it; called several times for what is unrolled
};
void print_turns(Code& code, const TurnsForm& form, const TurnsPlace& place);

// A barrier of the block in one of its forms.
inline constexpr uint32_t kBarrierForms = 4;
void print_barrier(Code& code, uint32_t form);

}  // namespace klap::differential::random
