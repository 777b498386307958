// This file generates what a recording parent has besides if it is its own consumer
// (templates/aggregate/fused.cu).
//
// Its blocks are counted as they begin. Where its threads would end, they go on to the consumers instead. The
// host may launch it with more rows or layers than the program asked for, of its blocks or of its grid, so
// that children have enough threads. The threads of these do nothing of the parent's part, which is told how
// many the program asked for.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/optimise/fusing.h"
#include "ptx/edit.h"
#include "ptx/tree.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/text/lines.h"

namespace klap::transform {

// A consumer in the parent's kernel. Its template is compiled for a shape that says so.
struct FusedConsumer {
  const ptx::Module& child_module;
  const ptx::Function& child;
  const ConsumerShape& shape;
  const ptx::Module& consumer;
};

// The consumers in the order in which they run, templates/aggregate/fused.cu, where there may be more rows or
// layers, and whether the parent can be launched in slices (slices.h).
struct FusedParts {
  const std::vector<FusedConsumer>& consumers;
  const ptx::Module& blocks;
  analysis::MoreThanAsked more;
  bool in_slices = false;
};

// The declaration of the parameter with the rows and layers that the program asked for; empty if there never
// are more.
std::string extents_parameter(const FusedParts& parts);

// Edits a recording parent to that end. Returns the consumers' text.
std::string add_consumers(const analysis::FunctionFacts& parent, const FusedParts& parts, ptx::Edits& edits,
                          LineTables& lines);

}  // namespace klap::transform
