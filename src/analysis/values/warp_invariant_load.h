// Loads by which the threads of a warp cannot see different values at one address.
//
// The argument. Let two threads A and B of a warp load the same address by the same instruction and get
// different values. Then some write W lies between them. One thread, say A, reads W or a later value, and B
// reads an earlier value. In a program without data races W is ordered with both loads. So
//     load of B  ->  W  ->  load of A
// in the order that synchronisation makes. This order leaves B behind its load and enters A before its load.
// It enters a thread only by an operation that synchronises. Such are a barrier, a fence, an atomic, a strong
// load, and a call that may do any of these. (A relaxed atomic does so with the next fence only.) Before a
// load that no such operation precedes on any way from the kernel's entry, nothing enters. Barriers of the
// whole block may precede it if every way passes the same number n of them. The order then enters A by one of
// its first n barriers, which B has passed before its load. B's load comes before B's arrival at a later
// barrier. Barriers complete one after another by number, so there is no such order. An operation that
// synchronises before the last of these barriers does not count, then. An order that enters A there comes
// before A's arrival at that barrier, but B's load is behind it. A fence behind the barrier can make an
// atomic before it synchronise; that atomic would have read what is written behind the barrier.
//
// The assumption is that the program has no data race on the loaded address; a race has no meaning in PTX.
// Since programs have races all the same, the answer is used for warps only, never for blocks: a warp that
// comes together to such a load makes one access of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"

namespace klap::analysis {

// For each instruction, whether it is such a load, of global, shared or any memory. The question whether the
// address is the same for the warp is not answered here.
std::vector<bool> loads_seen_alike(const ControlFlow& flow);

// For each instruction that would be such a load if nothing synchronised before it, the first that does.
std::vector<std::optional<uint32_t>> entered_before_loads(const ControlFlow& flow);

}  // namespace klap::analysis
