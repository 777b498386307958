// Flattening: all children of a launch as one sequence of threads.
//
// Most children begin with `if (i < degree)`, where i is their linear index and degree an argument that
// differs from child to child. Run block by block, the lanes of every last block and warp that fail the guard
// idle. Who records such a child can tell how many of its threads pass: those whose index is below the bound,
// since indices of fewer than 2^31 threads are the same in 32 bits and in 64. Only these are then numbered
// and shared out (templates/aggregate/consumer_flat.cu), and the tail of one child and the head of the next
// stand in one warp.
//
// The child keeps its guard, so more threads may be numbered than pass, never fewer.
//
// Threads that loop are no better off so: those of one child often go round alike, and those of two in one
// warp do not. A grid-stride loop is different where every thread has one round: because the program launches
// as many threads as there are rounds, or because it makes no difference which thread has which round
// (stride_loop.h). Then who records the child gives it a grid of as many threads.
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

// The rounds of a child's loop may be given to more threads where these spans are apart.
struct RoundSplit {
  bool one_row = false;  // the child stays one block, of more threads
  std::vector<RoundSpan> spans;
  std::vector<std::string> pointers;  // operands of the parent, one for each parameter of the spans, in order
};

struct Flattening {
  std::optional<FlatBound> bound;   // none: all threads of the child's grid are numbered
  std::optional<RoundSplit> split;  // with a bound, and blocks of constant size
  std::string threads;              // "threads with i < p[8]", "all threads"
};

struct FlatVerdict {
  std::optional<Flattening> flattening;
  std::string why_not;
};

// For children whose grids and blocks have one dimension, so that an index of more is the same, and whose
// threads have nothing to do with each other: each keeps its place, whoever runs it. `block_threads`: of each
// of their blocks, nothing where blocks differ. Without a bound only what is no multiple of a warp is better
// off. `may_wait`: the record may be made at the launch call. `loop`: the child's, null where that is not
// asked for.
FlatVerdict judge_flattening(const Moldable& child, const StrideLoop* loop, const FunctionFacts& parent,
                             const Site& site, std::optional<uint32_t> block_threads, bool may_wait);

// The bound alone, by which the threads of any child that may do something can be counted, looping ones too.
FlatVerdict judge_bound(const Moldable& child, const FunctionFacts& parent, const Site& site, bool may_wait);

// Whether the record could be made, and the arguments stored, at the launch: what both are given is still
// there, under its name.
bool could_record_at_launch(const FunctionFacts& parent, const Site& site);

}  // namespace klap::analysis
