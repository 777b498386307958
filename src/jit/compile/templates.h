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

// Compiled and parsed; each specialisation is compiled once per process. Throws Error(Toolchain). Each
// function stands for one template, and the strategies choose among them. `group_blocks` as in
// analysis::Aggregation.

// ---- code that replaces a launch ----

// Records a launch in the site's queue; `own` where some children are not recorded.
std::shared_ptr<const ptx::Module> record_template(const transform::ConsumerShape& shape,
                                                   uint32_t group_blocks,
                                                   const std::optional<analysis::Thresholding>& thresholding);
// Like record_template(), but the program itself makes launches that are too large for `shape`. `by_warps`:
// if blocks differ, the consumer runs them warp by warp.
std::shared_ptr<const ptx::Module> record_sizes_template(const transform::ConsumerShape& shape,
                                                         uint32_t group_blocks, bool by_warps);
// Records a launch in a queue of a size of its own: in a loop whose children have no order, and in parents
// and children alike if `children_launch`.
std::shared_ptr<const ptx::Module> worklist_record_template(const transform::ConsumerShape& shape,
                                                            uint32_t group_blocks, bool children_launch);
// Records launches in a loop if the children of a thread have an order.
std::shared_ptr<const ptx::Module> loop_record_template(const transform::ConsumerShape& shape,
                                                        uint32_t group_blocks);
// Records launches that the executor runs, in parents and children alike.
std::shared_ptr<const ptx::Module> executor_record_template(const transform::ConsumerShape& shape);
// With this code the lanes of a warp share one launch.
std::shared_ptr<const ptx::Module> warp_launch_template(const transform::ConsumerShape& shape,
                                                        const transform::WarpLaunchShape& sharing);

// ---- consumers ----

// Runs the children of the lanes that share a launch.
std::shared_ptr<const ptx::Module> warp_consumer_template(const transform::ConsumerShape& shape);
// Persistent: it works off a queue to which its children add.
std::shared_ptr<const ptx::Module> worklist_consumer_template(const transform::ConsumerShape& shape);
// Persistent: it runs grids as CUDA's device-side streams do.
std::shared_ptr<const ptx::Module> executor_template(const transform::ConsumerShape& shape);
// Run launches in loops: with an order, and without one.
std::shared_ptr<const ptx::Module> ordered_consumer_template(const transform::ConsumerShape& shape);
std::shared_ptr<const ptx::Module> loop_consumer_template(const transform::ConsumerShape& shape);
// Has one block for each block of a child.
std::shared_ptr<const ptx::Module> exact_consumer_template(const transform::ConsumerShape& shape);
// Runs children thread by thread (flattened).
std::shared_ptr<const ptx::Module> flat_consumer_template(const transform::ConsumerShape& shape);
// Runs several blocks of children in each of its blocks.
std::shared_ptr<const ptx::Module> packed_consumer_template(const transform::ConsumerShape& shape);

// ---- code in the body of a child ----

// Joins the parts of a child.
std::shared_ptr<const ptx::Module> join_parts_template(const transform::ConsumerShape& shape);

// ---- code around the parent's part of a kernel that is its own consumer ----

std::shared_ptr<const ptx::Module> fused_template();

// ---- code at the exits of a parent whose last thread launches the consumer ----

// `has_other_sites`: the parent has other queues, and all are run in an order.
std::shared_ptr<const ptx::Module> launch_consumer_template(const transform::ConsumerShape& shape,
                                                            uint32_t group_blocks, bool has_other_sites);
// For a parent whose launches share a queue.
std::shared_ptr<const ptx::Module> launch_queue_consumer_template(const transform::ConsumerShape& shape,
                                                                  uint32_t group_blocks);

// ---- others ----

// Replaces a module's malloc and free on the device, and cudaMalloc and cudaFree if `has_runtime`. No lanes
// share an allocation if `lanes_apart`.
std::shared_ptr<const ptx::Module> device_memory_template(bool has_runtime, bool in_chunks, bool lanes_apart);
// Defines the functions that give memory to blocks that stop.
std::shared_ptr<const ptx::Module> frames_template();

// The kernel of a promoted chain, the code in the body of a link, and the code with which blocks launch each
// other.
std::shared_ptr<const ptx::Module> promote_template(const transform::PromotedShape& shape);
std::shared_ptr<const ptx::Module> promote_link_template(const transform::PromotedShape& shape);
std::shared_ptr<const ptx::Module> promote_launch_template(const transform::PromotedShape& shape);

}  // namespace klap::jit
