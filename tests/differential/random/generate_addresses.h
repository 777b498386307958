// Random programs that ask one question each: whether the addresses of two children may be the same.
//
// Each form of program is made for one rule of the analysis. It looks like a program whose children are
// apart, and mostly they are not: a number wraps around, a factor is 0, a row is longer than the next one's
// begin. In others the children are found through tables that the program writes, or only one block of
// several launches.
#pragma once

#include "random/generate_order.h"

namespace klap::differential::random {

Candidate make_address_program(uint64_t seed, const Mix& mix);

}  // namespace klap::differential::random
