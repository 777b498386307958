// Values that a kernel's threads have in common with their block, but not with other blocks, although they do
// not compute them from its index: what a block finds in a table, and what it draws.
#pragma once

#include <cstdint>

#include "analysis/facts/facts.h"
#include "analysis/values/values.h"

namespace klap::analysis {

// True for a load from an address that is one for the block: a table, at the block's place.
bool loads_at_place_of_block(const FunctionFacts& kernel, const Values& values, uint32_t instruction);

// True for an atomic operation at one address for the whole grid, by which one of all blocks draws a number.
// An address that is not understood may be one.
bool draws_among_blocks(const FunctionFacts& kernel, const Values& values, uint32_t instruction);

}  // namespace klap::analysis
