// Promotion: kernels of one block that launch one block of themselves, as one resident chain (KLAP, section
// III).
//
// Each run of such a kernel is a link. The promoted kernel runs the links one behind the other in blocks that
// stay. The block that takes link n needs to know that the link exists, its arguments, and when it may use
// the results of earlier links. This analysis finds which of these are known without waiting for the link
// before.
//
// The early part of a link. Natively link n + 1 begins at the earliest when link n launches it. A thread's
// accesses behind the launch, or that no barrier brings before it, have no order with any later link. A load
// of a later link may see them or not. So only three things prevent running the beginning of a link early.
// The first are writes that can come before the launch in an earlier link (the launch, or a barrier, can be
// reached from them). The second is the use of an argument that is not known yet. The third are accesses of
// the beginning itself to memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

struct ChainVerdict {
  std::shared_ptr<const ChainFacts> facts;  // null where there is a rejection
  std::optional<Rejection> rejection;
};

// `assume_noalias`: the beginning of later links does not read the writes of a link that come before its
// launch.
ChainVerdict judge_promotion(const FunctionFacts& kernel, bool assume_noalias);

// Prints the facts of the chain, or the rejection, in a few lines. Nothing for a function that launches
// nothing.
std::string print_promotion(const FunctionFacts& kernel);

}  // namespace klap::analysis
