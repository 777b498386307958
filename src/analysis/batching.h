// Whether a block may run the beginnings of several links of a chain, one after the other, before the rest of
// the first: then they wait for earlier links once (promotion.h: what overlaps, looks_back).
//
// At the boundary a link is what its threads have in registers. Those that are read behind it are kept for
// each link, or computed again where that takes nothing but parameters and what is kept; what else a link
// could have there, data of its own in shared or local memory, must not be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/promotion.h"
#include "analysis/registers.h"

namespace klap::analysis {

struct Batching {
  std::vector<VirtualRegister> kept;  // none a vector, of 16, 32 or 64 bits or a predicate
  Slice again;                        // instructions in front of the boundary, in text order
};
struct BatchingVerdict {
  std::optional<Batching> batching;
  std::string objection;  // "the rest of a link may read shared memory: ld (line 12:3)"
};

// For a chain that looks back.
BatchingVerdict judge_batching(const FunctionFacts& kernel, const ChainFacts& chain);

}  // namespace klap::analysis
