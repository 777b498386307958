#include "transform/aggregate/consumer_shape.h"

#include <algorithm>

#include "transform/text/parts.h"

namespace klap::transform {

using ptx::Function;
using ptx::Module;

namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kPackedThreads = 256;  // consumer block that several small children share

}  // namespace

uint32_t ConsumerShape::threads() const {
  if (flat) return flat_threads;
  if (bodies.empty()) return child_threads() * pack;
  constexpr uint32_t kMostThreads = 1024;
  if (has_inherited_extents()) return kMostThreads;
  return std::ranges::max(bodies, {}, &ConsumerBody::threads).threads();
}

bool ConsumerShape::has_inherited_extents() const {
  return !is_executed && std::ranges::any_of(bodies, [](const ConsumerBody& body) {
    return std::ranges::find(body.block, kInheritedExtent) != body.block.end();
  });
}

bool ConsumerShape::may_exit_early(analysis::MayExit who) const {
  if (bodies.empty()) return may_exit == who;
  return std::ranges::find(bodies, who, &ConsumerBody::may_exit) != bodies.end();
}

void preload_arguments(ConsumerShape& shape) {
  constexpr uint32_t kMostWords = 8;  // more would cost threads that could run at the same time
  shape.preloaded_words = kMostWords;
}

// A thread's loads in flight take registers, and so room for other threads. On an H200 four iterations of
// twelve loads made sums over long rows 15 to 25 % faster and nothing slower by more than 2 %. With eight
// iterations, programs of short rows were a third slower.
void unroll(ConsumerShape& shape, std::vector<analysis::StraightLoop> loops,
            std::optional<uint32_t> iterations) {
  constexpr uint32_t kFactor = 4, kMostLoads = 48;
  for (analysis::StraightLoop& loop : loops) {
    const uint32_t factor = iterations.value_or(std::min(kFactor, kMostLoads / loop.loads));
    if (factor > 1) shape.loops.push_back({std::move(loop), factor});
  }
}

void add_bodies(ConsumerShape& shape, const std::vector<ConsumerBody>& bodies, uint32_t header) {
  shape.bodies = bodies;
  shape.layout = {};
  shape.layout.arguments_offset = header;
  for (const ConsumerBody& body : bodies)
    shape.layout.arguments_offset = std::max(shape.layout.arguments_offset, body.layout.arguments_offset);
  for (const ConsumerBody& body : bodies) {
    const uint32_t arguments = body.layout.record_bytes - body.layout.arguments_offset;
    shape.layout.record_bytes =
        std::max(shape.layout.record_bytes,
                 round_up(shape.layout.arguments_offset + arguments, shape.layout.arguments_offset));
  }
}

ConsumerShape consumer_shape(const Module& module, const Function& child,
                             const std::array<uint32_t, 3>& block, bool grid_is_1d, bool exact,
                             bool is_recursive) {
  ConsumerShape shape;
  shape.block = block;
  shape.grid_is_1d = grid_is_1d;
  shape.exact = exact;
  shape.is_recursive = is_recursive;
  shape.layout = record_layout(child);
  const uint32_t threads = shape.child_threads();
  shape.sync_scope = analysis::reuse_scope(module, child);
  if (shape.sync_scope == analysis::SyncScope::Block && !exact)
    shape.may_exit = analysis::early_exits(module, child, block).value_or(analysis::MayExit::Nobody);
  // A thread must keep its lane where the child asks for it.
  const bool lanes_fixed = analysis::reads_lane(module, child) && threads % 32 != 0;
  const bool alone = exact || is_recursive || lanes_fixed || shape.sync_scope == analysis::SyncScope::Block;
  shape.packs = !alone;
  shape.pack = alone ? 1 : std::max(1u, kPackedThreads / threads);
  return shape;
}

ConsumerShape consumer_shape(const Module& module, const Function& child, const analysis::LaunchSizes& sizes,
                             bool grid_is_1d, bool exact) {
  std::array<uint32_t, 3> block = {exact ? sizes.most_threads : kWarp, 1, 1};
  if (!sizes.blocks_differ())
    std::ranges::transform(sizes.block, block.begin(), [](const auto& extent) { return extent.value(); });
  ConsumerShape shape = consumer_shape(module, child, block, grid_is_1d, exact);
  shape.shared_bytes = sizes.shared_bytes.value_or(0);
  if (sizes.blocks_differ() || sizes.shared_differs()) shape.sizes = sizes;
  return shape;
}

void flatten(ConsumerShape& shape, const analysis::Flattening& flattening) {
  shape.flat = flattening;
  shape.flat_threads = kPackedThreads;
  shape.pack = 1;
}

void split_range(ConsumerShape& shape, const Module& module, const Function& child,
                 const analysis::RangeSplit& split) {
  const bool awaits_parent = shape.awaits_parent;
  shape = consumer_shape(module, child, std::array<uint32_t, 3>{split.threads, 1, 1}, true, false);
  shape.awaits_parent = awaits_parent;
  shape.range = split;
  if (!split.joined) return;
  add_totals(shape.layout, split.joined->sums.size());
  // Its threads exchange their sums.
  const auto least = split.threads == kWarp ? analysis::SyncScope::Warp : analysis::SyncScope::Block;
  if (shape.sync_scope >= least) return;
  shape.sync_scope = least;
  if (least == analysis::SyncScope::Warp) return;
  shape.packs = false;
  shape.pack = 1;
}

bool pack_warps(ConsumerShape& shape, const analysis::WarpBlock& block) {
  constexpr uint32_t kMostWarps = 32;
  if (block.shared_bytes() > analysis::kSharedLimit / kMostWarps) return false;
  shape.warp_block = block;
  shape.sync_scope = analysis::SyncScope::Warp;
  shape.packs = true;
  shape.pack = kPackedThreads / kWarp;
  return true;
}

void use_threads(ConsumerShape& shape, uint32_t threads) {
  if (shape.flat && threads != 0 && threads % kWarp == 0) shape.flat_threads = threads;
  const uint32_t child = shape.child_threads();
  if (shape.packs && threads >= child && threads % child == 0) shape.pack = threads / child;
}

}  // namespace klap::transform
