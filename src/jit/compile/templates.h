// The rewrite templates of ptx-patterns/templates, compiled for one use and kept for the process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ptx/tree.h"
#include "transform/aggregate/aggregate.h"
#include "transform/aggregate/warp.h"
#include "transform/promotion/promote.h"

namespace klap::jit {

// Compiled and parsed; each specialisation is compiled once per process. Throws Error(Toolchain).
// `group_blocks` as in analysis::Way; `own` where some children are not recorded.
std::shared_ptr<const ptx::Module> record_template(const transform::ConsumerShape& shape,
                                                   uint32_t group_blocks,
                                                   const std::optional<analysis::OwnChildren>& own);
// Like record_template(), but the program itself makes launches that are too large for `shape`.
std::shared_ptr<const ptx::Module> record_sizes_template(const transform::ConsumerShape& shape,
                                                         uint32_t group_blocks);
std::shared_ptr<const ptx::Module> consumer_template(const transform::ConsumerShape& shape);
// Records launches of children that launch again, in parents and children. It also records launches in a loop
// whose children have no order.
std::shared_ptr<const ptx::Module> feed_record_template(const transform::ConsumerShape& shape,
                                                        uint32_t group_blocks);
// Records launches in a loop if the children of a thread have an order.
std::shared_ptr<const ptx::Module> chain_record_template(const transform::ConsumerShape& shape,
                                                         uint32_t group_blocks);
// Code at the exits of a parent whose last thread launches the consumer.
std::shared_ptr<const ptx::Module> leave_template(const transform::ConsumerShape& shape,
                                                  uint32_t group_blocks, bool in_order);
// Like leave_template(), for a parent whose launches stand in a loop or share a queue.
std::shared_ptr<const ptx::Module> leave_chain_template(const transform::ConsumerShape& shape,
                                                        uint32_t group_blocks);

// Launch-site code with which the lanes of a warp share one launch.
std::shared_ptr<const ptx::Module> warp_launch_template(const transform::ConsumerShape& shape,
                                                        const transform::SharingShape& sharing);

// Replaces a module's malloc and free on the device, and cudaMalloc and cudaFree if `has_runtime`.
std::shared_ptr<const ptx::Module> device_memory_template(bool has_runtime);

// The kernel of a promoted chain, the code in the body of a link, and the code with which blocks launch each
// other.
std::shared_ptr<const ptx::Module> promote_template(const transform::PromotedShape& shape);
std::shared_ptr<const ptx::Module> promote_link_template(const transform::PromotedShape& shape);
std::shared_ptr<const ptx::Module> promote_launch_template(const transform::PromotedShape& shape);

}  // namespace klap::jit
