// Random expressions of programs that wait.
#pragma once

#include "random/random_source.h"
#include "random/waits/program.h"

namespace klap::differential::waits {

// Values that an expression may read.
struct Readable {
  uint32_t variables = 0;   // those of smaller numbers
  uint32_t values = 0;      // of the kernel
  bool sums = false;        // the thread's own, while no child adds to them
  bool is_uniform = false;  // only what is the same for all threads of a block
};

Expression make_expression(random::Random& random, const Readable& readable, uint32_t depth = 2);

// True for one of every `modulus` threads of a block.
Expression is_thread(uint32_t modulus, uint32_t rest);

inline Expression leaf(Op op, uint32_t value = 0) { return {op, value, {}}; }
inline Expression binary(Op op, Expression a, Expression b) { return {op, 0, {std::move(a), std::move(b)}}; }

}  // namespace klap::differential::waits
