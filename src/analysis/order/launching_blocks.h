// Whether it may be that only one block of a grid launches.
//
// A conflict between children is tolerated because the program has it between its blocks as well, in no
// order. A program in which the guards of a launch let one block through has no such conflict, however many
// blocks its grid has: what that block launches has an order. Nothing here is a proof that there is one block
// only. Blocks are taken to be several where nothing in front of the launch asks for the block's index; where
// what it is compared with is input (`i < n`), which a grid of several blocks is launched for; and where a
// constant bound lets two blocks through. Every other guard may leave one block.
#pragma once

#include "analysis/facts/facts.h"

namespace klap::analysis {

// `site`: of the parent.
bool may_be_launched_by_one_block(const FunctionFacts& parent, const Site& site);

}  // namespace klap::analysis
