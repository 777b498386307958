// How much of a link can run before the links in front of it are done with what it needs (promotion.h).
//
// Natively link n + 1 begins when link n launches it. The accesses of the launching thread before it come
// before all of link n + 1. By way of a barrier, so do accesses of other threads. Nothing else of link n has
// an order with link n + 1 and later ones. Code that runs up to a place of link n + 1, the boundary, may
// therefore begin before link n launches if
//  - it uses no argument that is known only then. Pure instructions that do can stand behind the boundary
//    instead, with all that depends on them;
//  - it does nothing that others can see, as it would come too early;
//  - it reads nothing that link n, or one before, writes before its launch. Everything counts that could make
//    a write visible before the launch: a way from the write to the launch, a barrier that can put the launch
//    behind it (barriers.h), and a barrier of a warp. If some thread reads strongly before the launch, all
//    operations that can publish a write count, too. Other warp operations give no order to memory;
//  - it reads nothing strongly and asks for no clock: these results depend on the moment.
// Shared and local memory are the block's own and are new for each link.
//
// Every thread of the block runs the boundary once, and before the launch. It stands in a basic block that
// every way through the kernel passes, that dominates the launch, and that is in no loop.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

struct MemoryRoot;

struct Overlap {
  const ptx::Statement* boundary = nullptr;  // null: there is nothing to gain
  Slice moved;
  std::string text;
  bool annotated = false;
};

// The latest legal boundary, or the annotated one if that is legal. The annotated one may stand earlier. It
// may also stand later than the writes before the launch allow.
Overlap find_overlap(const FunctionFacts& kernel, const Site& site,
                     const std::vector<ChainArgument>& arguments, bool assume_noalias);

// True for memory that only the thread's own block can see, and for a launch's buffer.
bool is_of_block(const MemoryRoot& root);

}  // namespace klap::analysis
