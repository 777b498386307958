// Loads by which the threads of a warp cannot see different values at one address.
//
// The argument. Let two threads A and B of a warp load the same address by the same instruction and get
// different values. Then some write W lies between them: one thread, say A, reads W or what came later, B
// reads what was there before. In a program without data races W is ordered with both loads, so
//     load of B  ->  W  ->  load of A
// in the order that synchronisation makes. This order leaves B behind its load and enters A before its load.
// It enters a thread only by an operation that synchronises: a barrier, a fence, an atomic, a strong load, a
// call that may do any of these. (A relaxed atomic does so with the next fence only.) Before a load that no
// such operation precedes on any way from the kernel's entry, nothing enters. Barriers of the whole block may
// precede it if every way passes the same number of them: A enters by one of its first n, which B has passed
// before its load, while B's load comes before B's arrival at a later one. Barriers of the same number
// complete one after another, so there is no such order. What synchronises before the last of these barriers
// does not count, then: what enters A there comes before A's arrival at that barrier, B's load behind it. An
// atomic there that a fence behind the barrier makes synchronise would have read what is written behind it.
//
// What is assumed, then, is that the program has no data race on the loaded address; a race has no meaning in
// PTX. Since programs have races all the same, the answer is used for warps only, never for blocks: a warp
// that comes together to such a load makes one access of it.
//
// By the same argument a plain store that nothing enters before, at an address that is the same for the whole
// block, is made by one thread of the block: two stores would be in no order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/values/values.h"

namespace klap::analysis {

// For each instruction, whether it is such a load, of global, shared or any memory. Whether the address is
// the same for the warp is another question.
std::vector<bool> loads_seen_alike(const ControlFlow& flow);

// For each instruction that would be such a load if nothing synchronised before it, the first that does.
std::vector<std::optional<uint32_t>> entered_before_loads(const ControlFlow& flow);

// Whether every thread that runs an instruction has made such a store, so that at most one of a block runs
// it.
bool is_behind_lone_store(const Values& values, uint32_t instruction);

}  // namespace klap::analysis
