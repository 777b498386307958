// This file generates the kernel that promotion makes: it runs a chain of launches of itself in blocks that
// stay.
//
// It comes from a template (templates/promote/promote.cu) that takes the chain's links one behind the other.
// The program's kernel is spliced in as the body of a link. Parameters that are the same for all links are
// still the kernel's own. The others lie in shared memory, where the template puts the link's values. The
// launch becomes the release of the next link. If the body has a part that needs nothing of earlier links,
// the wait for them stands behind that part (templates/promote/promote_link.cu). (KLAP paper, section III.C:
// promotion; here without device launches, and with values that pass from one link to the next without
// waiting. Its modes with device launches are there as well: a block runs one link, and launches the next
// one's block before that, templates/promote/promote_launch.cu.)
#pragma once

#include <string>

#include "analysis/promotion/promotion.h"
#include "transform/aggregate/aggregate.h"
#include "transform/promotion/promoted_shape.h"

namespace klap::transform {

// The templates, compiled for the shape: promote.cu, promote_link.cu and, where the shape launches,
// promote_launch.cu.
struct PromotionTemplates {
  const ptx::Module& resident;
  const ptx::Module& link;
  const ptx::Module* launch = nullptr;
};
// The promoted kernel. It takes the kernel's parameters and behind them, at queue_parameter_offset(), the
// chain. If the shape launches, 8 bytes follow with the number of links that may have blocks at a time.
// Throws Error(Unsupported) naming the line if a parameter is used in a way that cannot be redirected.
Generated promoted_kernel(const analysis::FunctionFacts& kernel, const analysis::ChainFacts& chain,
                          const PromotedShape& shape, const PromotionTemplates& templates,
                          const std::string& name, LineTables& lines);

}  // namespace klap::transform
