// Launches in a loop: what must hold for a consumer that keeps each thread's launches in order.
//
// How often a thread launches is not known, so its children are recorded in a queue of fixed size, each with
// the one that the same thread launched before. The consumer begins a child when that one is done. The child
// is then run by the same kernel as the one before it, whose results it may read: it must read them
// coherently. Where the stream has no order, neither has the consumer.
//
// A loop that launches again because too many launches wait is such a loop as well: a recorded launch
// succeeds, and one that is not recorded is the program's own.
#pragma once

#include <optional>

#include "analysis/legality.h"

namespace klap::analysis {

// True where the order of a thread's launches by this site means something.
bool has_order(const FunctionFacts& parent, const Site& site);

// The first objection to running `child`, which `site` launches in a loop, in that consumer; the rest was
// found right so far.
std::optional<Objection> object_to_chaining(const ptx::Module& child_module, const ptx::Function& child,
                                            const FunctionFacts& parent, const Site& site);

// True for what a loop around a launch may hold besides, though it is no plain code: the launch's own calls
// and questions for its error.
bool is_part_of_launching(const FunctionFacts& parent, const ptx::Statement& instruction);

}  // namespace klap::analysis
