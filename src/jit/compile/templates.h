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
// The same where launches of other sizes than `shape` has room for stay the program's own.
std::shared_ptr<const ptx::Module> record_sizes_template(const transform::ConsumerShape& shape,
                                                         uint32_t group_blocks);
std::shared_ptr<const ptx::Module> consumer_template(const transform::ConsumerShape& shape);
// What parents and children record with where the children launch again; or parents only, where the launch
// stands in a loop and the children have no order.
std::shared_ptr<const ptx::Module> feed_record_template(const transform::ConsumerShape& shape,
                                                        uint32_t group_blocks);
// The same where the launch stands in a loop and the children of a thread have an order.
std::shared_ptr<const ptx::Module> chain_record_template(const transform::ConsumerShape& shape,
                                                         uint32_t group_blocks);
// How the threads of a parent leave that launches its children itself.
std::shared_ptr<const ptx::Module> leave_template(const transform::ConsumerShape& shape,
                                                  uint32_t group_blocks, bool in_order);
// The same where its launches stand in a loop, or share a queue.
std::shared_ptr<const ptx::Module> leave_chain_template(const transform::ConsumerShape& shape,
                                                        uint32_t group_blocks);

// What stands at a launch site that the lanes of a warp share.
std::shared_ptr<const ptx::Module> warp_launch_template(const transform::ConsumerShape& shape,
                                                        const transform::SharingShape& sharing);

// What takes and frees a module's device memory, with cudaMalloc and cudaFree if they are called.
std::shared_ptr<const ptx::Module> device_memory_template(bool has_runtime);

// The blocks of a promoted chain, what stands in the body of a link, and how blocks launch each other.
std::shared_ptr<const ptx::Module> promote_template(const transform::PromotedShape& shape);
std::shared_ptr<const ptx::Module> promote_link_template(const transform::PromotedShape& shape);
std::shared_ptr<const ptx::Module> promote_launch_template(const transform::PromotedShape& shape);

}  // namespace klap::jit
