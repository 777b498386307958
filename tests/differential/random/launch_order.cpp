#include "random/launch_order.h"

#include <algorithm>

namespace klap::differential::random {

namespace {

void join(Clock& into, const Clock& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool is_before(const Event& first, const Event& second) {
  return first.block == second.block &&
         (first.thread == second.thread ? first.time < second.time
                                        : second.clock->at(first.thread) >= first.time);
}

}  // namespace

BlockClocks::BlockClocks(uint32_t grid, uint32_t block, uint32_t threads)
    : grid_(grid), block_(block), clocks_(threads, Clock(threads)) {}

Event BlockClocks::event(uint32_t thread) {
  Clock& clock = clocks_[thread];
  ++clock[thread];
  return {grid_, block_, thread, clock[thread], std::make_shared<const Clock>(clock)};
}

void BlockClocks::meet(uint32_t first, uint32_t count) {
  Clock all = clocks_[first];
  for (uint32_t t = first + 1; t < first + count; ++t) join(all, clocks_[t]);
  for (uint32_t t = first; t < first + count; ++t) clocks_[t] = all;
}

void BlockClocks::follow(uint32_t from, uint32_t to) { join(clocks_[to], clocks_[from]); }

uint32_t LaunchOrder::add_root() { return add({0, 0, 0, ++host_time_, nullptr}, Stream::Null); }

uint32_t LaunchOrder::add(const Event& launch, Stream stream) {
  grids_.push_back({launch, stream, grids_[launch.grid].depth + 1});
  return static_cast<uint32_t>(grids_.size() - 1);
}

Precedence LaunchOrder::compare(const Event& first, const Event& second) const {
  const Event* a = &first;
  const Event* b = &second;
  Stream a_stream = Stream::Null, b_stream = Stream::Null;
  const auto climb = [this](const Event*& event, Stream& stream) {
    const Grid& grid = grids_[event->grid];
    stream = grid.stream;
    event = &grid.launch;
  };
  while (grids_[b->grid].depth > grids_[a->grid].depth) climb(b, b_stream);
  while (grids_[a->grid].depth > grids_[b->grid].depth) climb(a, a_stream);
  while (a->grid != b->grid) {
    climb(a, a_stream);
    climb(b, b_stream);
  }
  const bool is_a_below = a != &first, is_b_below = b != &second;
  // What a grid does after its launches is not ordered with what they do.
  if (is_a_below && !is_b_below) return Precedence::None;
  const bool is_ordered = is_before(*a, *b);
  if (!is_a_below) return is_ordered ? Precedence::Ordered : Precedence::None;
  if (a_stream != b_stream || a->block != b->block || a_stream == Stream::FireAndForget)
    return Precedence::None;
  if (a_stream == Stream::PerThread && a->thread != b->thread) return Precedence::None;
  return is_ordered ? Precedence::Ordered : Precedence::Exclusive;
}

}  // namespace klap::differential::random
