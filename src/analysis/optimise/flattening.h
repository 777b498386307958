// Flattening: all children of a launch as one sequence of threads.
//
// Most children begin with `if (i < degree)`, where i is their linear index and degree an argument that
// differs from child to child. Run block by block, the lanes of every last block and warp that fail the guard
// idle. The thread that records such a child can tell how many of its threads pass. Their index is below the
// bound; indices of fewer than 2^31 threads are the same in 32 bits and in 64. Only these threads are then
// numbered and shared out (templates/aggregate/consumer_flat.cu). The tail of one child and the head of the
// next stand in one warp.
//
// The child keeps its guard, so more threads may be numbered than pass, never fewer.
//
// Threads that loop gain nothing. Threads of one child often have the same trip count; threads of two
// children in one warp do not. A grid-stride loop is different if every thread has one iteration. The program
// may launch as many threads as there are iterations. Or it makes no difference which thread has which
// iteration (stride_loop.h), and the recording thread gives the child a grid of as many threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/optimise/stride_loop.h"
#include "analysis/values/moldable.h"

namespace klap::analysis {

// The argument that a child's threads compare their index with.
struct FlatBound {
  uint32_t bytes = 4;           // 4 or 8
  bool is_signed = true;        // 4 bytes: how they become 64 bits
  bool compares_signed = true;  // the comparison, as one of 64 bits
  bool inclusive = false;       // the bound itself passes
  std::string operand;          // of the parent
  bool at_launch = false;       // it has the argument's value only there, so the record is made there
};

// The iterations of a child's loop may be given to more threads if these spans are apart.
struct IterationSplit {
  bool one_row = false;  // the child stays one block, of more threads
  std::vector<IterationSpan> spans;
  std::vector<std::string> pointers;  // operands of the parent, one for each parameter of the spans, in order
};

struct Flattening {
  std::optional<FlatBound> bound;       // none: all threads of the child's grid are numbered
  std::optional<IterationSplit> split;  // with a bound, and blocks of constant size
  std::string threads;                  // "threads with i < p[8]", "all threads"
};

struct FlatVerdict {
  std::optional<Flattening> flattening;
  std::string why_not;
};

// Judges children whose grids and blocks have one dimension, so that an index of more dimensions is the same.
// Their threads must not meet or share memory, since each keeps its place, whichever thread runs it.
// `block_threads` is the size of each of their blocks, nothing if blocks differ. Without a bound, only blocks
// whose size is no multiple of a warp gain. `may_wait`: the record may be made at the launch call. `loop` is
// the child's loop, null if it is not to be used.
FlatVerdict judge_flattening(const Moldable& child, const StrideLoop* loop, const FunctionFacts& parent,
                             const Site& site, std::optional<uint32_t> block_threads, bool may_wait);

// Finds the bound alone. By it the threads of any child that may have an effect can be counted, looping ones
// too.
FlatVerdict judge_bound(const Moldable& child, const FunctionFacts& parent, const Site& site, bool may_wait);

}  // namespace klap::analysis
