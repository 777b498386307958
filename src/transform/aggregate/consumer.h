// This file generates the consumer of grid aggregation: the kernel that runs all recorded children.
//
// It comes from a template, in which the child's body takes the place of the template's marker call.
// aggregate.h generates the parents that record the children.
#pragma once

#include <array>
#include <string>

#include "ptx/tree.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"

namespace klap::transform {

// Makes the consumer. `consumer` is templates/aggregate/consumer.cu, exact.cu, loop.cu or worklist.cu,
// compiled for `shape`; `group_kernels` is given only for the last. `child` gives the kernel its linkage and
// its line. `name` is the consumer's name. `lines` are the line tables of the unit that the kernel is for.
// `join` is templates/aggregate/join_parts.cu, for children whose parts are joined.
Generated consumer_kernel(const ptx::Module& child_module, const ptx::Function& child,
                          const ConsumerShape& shape, const ptx::Module& consumer, const std::string& name,
                          LineTables& lines, const GroupKernels* group_kernels = nullptr,
                          const ptx::Module* join = nullptr);

// The consumer as a part of the parent's kernel (templates/aggregate/fused.cu), for a shape that says so. The
// operands are the registers with the queue, the number of this block, and the number of all blocks.
std::string consumer_text(const ptx::Module& child_module, const ptx::Function& child,
                          const ConsumerShape& shape, const ptx::Module& consumer,
                          const std::array<std::string, 3>& operands, LineTables& lines);

// `.extern` declaration of a consumer made from that template.
std::string consumer_declaration(const ptx::Module& consumer, const std::string& name);

}  // namespace klap::transform
