// Promotion: kernels of one block that launch one block of themselves, as one resident chain (KLAP, section
// III).
//
// Each run of such a kernel is a link. The promoted kernel runs the links one behind the other in blocks that
// stay: who takes link n needs to know that it exists, its arguments, and when what earlier links did may be
// used. This analysis finds what of that is known without waiting for the link before.
//
// What a link may do early. Natively link n + 1 begins at the earliest when link n launches it. Everything
// that a thread does behind the launch, or that no barrier brings before it, is in no order with any later
// link: a load of a later link may see it or not. So what stands in the way of running the beginning of a
// link early is only what can come before the launch in an earlier link (a write that the launch, or a
// barrier, can be reached from), the use of an argument that is not known yet, and what the beginning itself
// does to memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

struct ChainVerdict {
  std::shared_ptr<const ChainFacts> facts;  // null where there is an objection
  std::optional<Objection> objection;
};

// `assume_noalias`: writes of a link that come before its launch are not read by the beginning of later
// links.
ChainVerdict judge_promotion(const FunctionFacts& kernel, bool assume_noalias);

// What is known of the chain, or the objection; a few lines. Nothing for a function that launches nothing.
std::string print_promotion(const FunctionFacts& kernel);

}  // namespace klap::analysis
