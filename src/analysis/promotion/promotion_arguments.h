// How each link of a chain gets its arguments (promotion.h).
#pragma once

#include <optional>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/pure_code.h"
#include "analysis/facts/rejection.h"
#include "analysis/promotion/chain_facts.h"

namespace klap::analysis {

// The arguments that the site stores, with their kinds, by offset.
//
// Each stored value is one in terms of the link's own arguments. If it equals the argument at the same place,
// it is unchanged. If it is the argument and a constant added or multiplied, link n's value is known from the
// first one's. Any other value that pure code computes is available, as long as it uses no argument that is
// not. All arguments are assumed available at first, and that is withdrawn until nothing changes. So
// arguments that depend on each other (`a, b = b, a`) stay available. All threads must compute the same
// value, as any of them may be asked to.
std::vector<ChainArgument> classify_arguments(const FunctionFacts& kernel, const Site& site);

// The code that computes all available arguments.
Slice slice_of_available(const FunctionFacts& kernel, const std::vector<ChainArgument>& arguments);

// The rejection to passing on the kernel's parameters. Each one that it reads must be stored, as a whole or,
// if all links have the same, in other pieces.
std::optional<Rejection> check_parameters(const FunctionFacts& kernel,
                                          const std::vector<ChainArgument>& arguments);

// True if some of the bytes belong to an argument of that kind.
bool touches(const std::vector<ChainArgument>& arguments, const ByteRange& bytes, LinkArgument kind);

}  // namespace klap::analysis
