// Whether a block may run the beginnings of several links of a chain, side by side, before the rest of the
// first: then they wait for earlier links once (promotion.h: what overlaps, looks_back).
//
// Every link's registers and shared variables have names of their own there, and up to the boundary a link
// does nothing that others can see. So the threads may go through the links' instructions in any order that
// each link's own instructions keep; and a barrier that all threads come to, one after the other, may be one
// for all links. What they have in registers at the boundary stays there for each link, so that it must be
// little. What takes nothing but parameters and registers that stay is computed again behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

struct Batching {
  uint32_t words = 0;         // of 32 bits, of what stays in registers for each link
  uint32_t instructions = 0;  // of the kernel
  uint64_t shared_bytes = 0;  // of each link, at most
  Slice again;                // instructions in front of the boundary, in text order
  // In front of the boundary, in text order: instructions that all threads come to one after the other, as
  // no jump leads over one, nor over the boundary. And those of them that are barriers: one is enough for all
  // links.
  std::vector<const ptx::Statement*> passed, barriers;
  std::vector<const ptx::Variable*> shared;  // the unit's that the kernel names
};
struct BatchingVerdict {
  std::optional<Batching> batching;
  std::string objection;  // "it calls functions: call (line 12:3)"
};

// For a chain that looks back.
BatchingVerdict judge_batching(const FunctionFacts& kernel, const ChainFacts& chain);

}  // namespace klap::analysis
