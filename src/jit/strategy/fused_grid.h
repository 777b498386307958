// The strategy for launches that are aggregated over the parent's grid and run by the parent's own kernel.
//
// The parent and the consumer of its children are one kernel (templates/aggregate/fused.cu). The stream then
// sees one operation where the program made one, and nothing is launched behind the parent. But only blocks
// that began last run children, in the parent's block. So the strategy suits parents with few children. A
// variant of this kind stands beside the one that the host's consumer follows, and the host chooses.
#pragma once

#include "jit/strategy/strategy.h"

namespace klap::jit {

const Strategy& fused_grid_strategy();

// How many threads a block of the parent must have at least.
uint32_t fused_threads(const transform::ConsumerShape& shape);

}  // namespace klap::jit
