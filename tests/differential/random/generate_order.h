// Random programs whose result depends on the order of launches that CUDA orders: threads of a block that
// launch into its NULL stream, children that use common cells, and everything in between that makes this hard
// to see.
#pragma once

#include "random/generate.h"
#include "random/random_source.h"

namespace klap::differential::random {

struct Candidate {
  // The program is legal, but its result may depend on an order that nothing fixes: see disorder() in
  // reference.h.
  Program program;
  bool is_commuting = false;  // its launches may run in any order
};
Candidate make_ordered_program(uint64_t seed, const Mix& mix);

}  // namespace klap::differential::random
