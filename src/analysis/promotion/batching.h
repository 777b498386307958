// This file tells whether a block may run the beginnings of several links of a chain, side by side, before
// the rest of the first. Then they wait for earlier links once (promotion.h: overlap, looks_back).
//
// Every link's registers and shared variables have names of their own there. Up to the boundary a link does
// nothing that others can see. So the threads may go through the links' instructions in any order that each
// link's own instructions keep. A barrier that all threads come to, one after the other, may be one for all
// links. The registers at the boundary stay there for each link, so they must be few. A value that takes
// nothing but parameters and such registers is computed again behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

struct Batching {
  uint32_t words = 0;         // registers of 32 bits that stay for each link
  uint32_t instructions = 0;  // of the kernel
  uint64_t shared_bytes = 0;  // of each link, at most
  Slice again;                // instructions in front of the boundary, in text order
  // `passed`: the instructions before the boundary, in text order, that all threads come to one after the
  // other. No jump leads over one of them, nor over the boundary. `barriers`: those of them that are
  // barriers. One barrier is enough for all links.
  std::vector<const ptx::Statement*> passed, barriers;
  std::vector<const ptx::Variable*> shared;  // the unit's that the kernel names
};
struct BatchingVerdict {
  std::optional<Batching> batching;
  std::string rejection;  // "it calls functions: call (line 12:3)"
};

// Judges a chain that looks back.
BatchingVerdict judge_batching(const FunctionFacts& kernel, const ChainFacts& chain);

}  // namespace klap::analysis
