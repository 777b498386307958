#include "transform/aggregate/consumer_shape.h"

#include <algorithm>

#include "transform/text/parts.h"

namespace klap::transform {

using ptx::Function;
using ptx::Module;

namespace {

constexpr uint32_t kPackedThreads = 256;  // consumer block that several small children share

}  // namespace

uint32_t ConsumerShape::threads() const {
  if (flat) return flat_threads;
  if (bodies.empty()) return child_threads() * pack;
  constexpr uint32_t kMostThreads = 1024;
  if (has_own_extents()) return kMostThreads;
  return std::ranges::max(bodies, {}, &FedBody::threads).threads();
}

bool ConsumerShape::has_own_extents() const {
  return std::ranges::any_of(bodies, [](const FedBody& body) {
    return std::ranges::find(body.block, kOwnExtent) != body.block.end();
  });
}

bool ConsumerShape::leaves(analysis::MayLeave who) const {
  if (bodies.empty()) return may_leave == who;
  return std::ranges::find(bodies, who, &FedBody::may_leave) != bodies.end();
}

void hold_arguments(ConsumerShape& shape) {
  constexpr uint32_t kMostWords = 8;  // more would cost threads that could run at the same time
  shape.held_words = kMostWords;
}

// A thread's loads in flight take registers, and so room for other threads. On an H200 four iterations of
// twelve loads made sums over long rows 15 to 25 % faster and nothing slower by more than 2 %. With eight
// iterations, programs of short rows were a third slower.
void unroll(ConsumerShape& shape, std::vector<analysis::StraightLoop> loops, std::optional<uint32_t> rounds) {
  constexpr uint32_t kRounds = 4, kMostLoads = 48;
  for (analysis::StraightLoop& loop : loops) {
    const uint32_t in_row = rounds.value_or(std::min(kRounds, kMostLoads / loop.loads));
    if (in_row > 1) shape.loops.push_back({std::move(loop), in_row});
  }
}

void add_bodies(ConsumerShape& shape, const std::vector<FedBody>& bodies) {
  shape.bodies = bodies;
  shape.layout = {};
  for (const FedBody& body : bodies)
    shape.layout.arguments_offset = std::max(shape.layout.arguments_offset, body.layout.arguments_offset);
  for (const FedBody& body : bodies) {
    const uint32_t arguments = body.layout.record_bytes - body.layout.arguments_offset;
    shape.layout.record_bytes =
        std::max(shape.layout.record_bytes,
                 round_up(shape.layout.arguments_offset + arguments, shape.layout.arguments_offset));
  }
}

ConsumerShape consumer_shape(const Module& module, const Function& child,
                             const std::array<uint32_t, 3>& block, bool grid_is_1d, bool exact, bool feeds) {
  ConsumerShape shape;
  shape.block = block;
  shape.grid_is_1d = grid_is_1d;
  shape.exact = exact;
  shape.feeds = feeds;
  shape.layout = record_layout(child);
  const uint32_t threads = shape.child_threads();
  shape.together = analysis::together(module, child);
  if (shape.together == analysis::Together::Blocks && !exact)
    shape.may_leave = analysis::leaving(module, child, block).value_or(analysis::MayLeave::Nobody);
  // A thread must keep its lane where the child asks for it.
  const bool lanes_fixed = analysis::reads_lane(module, child) && threads % 32 != 0;
  const bool alone = exact || feeds || lanes_fixed || shape.together == analysis::Together::Blocks;
  shape.packs = !alone;
  shape.pack = alone ? 1 : std::max(1u, kPackedThreads / threads);
  return shape;
}

ConsumerShape consumer_shape(const Module& module, const Function& child, const analysis::LaunchSizes& sizes,
                             bool grid_is_1d, bool exact) {
  constexpr uint32_t kWarp = 32;
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

bool pack_warps(ConsumerShape& shape, const analysis::WarpBlock& block) {
  constexpr uint32_t kWarp = 32, kMostWarps = 32;
  if (block.shared_bytes() > analysis::kSharedLimit / kMostWarps) return false;
  shape.warp_block = block;
  shape.together = analysis::Together::Warps;
  shape.packs = true;
  shape.pack = kPackedThreads / kWarp;
  return true;
}

void use_threads(ConsumerShape& shape, uint32_t threads) {
  constexpr uint32_t kWarp = 32;
  if (shape.flat && threads != 0 && threads % kWarp == 0) shape.flat_threads = threads;
  const uint32_t child = shape.child_threads();
  if (shape.packs && threads >= child && threads % child == 0) shape.pack = threads / child;
}

}  // namespace klap::transform
