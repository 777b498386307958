#include "analysis/suspension/meetings.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace klap::analysis {

Meetings::Meetings(const ControlFlow& flow, const std::vector<uint32_t>& barriers)
    : flow_(flow),
      is_barrier_(flow.instructions().size()),
      in_block_(flow.blocks().size()),
      at_entry_(flow.blocks().size()) {
  for (const uint32_t barrier : barriers) {
    is_barrier_[barrier] = true;
    ++in_block_[flow.instructions()[barrier].block];
  }
  if (flow.blocks().empty()) return;
  find_least();
  find_most();
}

// The shortest way to each block, if a way is as long as it has barriers.
void Meetings::find_least() {
  using Way = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Way, std::vector<Way>, std::greater<>> ways;
  at_entry_[0].least = 0;
  ways.emplace(0, 0);
  while (!ways.empty()) {
    const auto [length, block] = ways.top();
    ways.pop();
    if (length != at_entry_[block].least) continue;
    for (const uint32_t next : flow_.blocks()[block].successors) {
      const uint64_t through = length + in_block_[block];
      if (through >= at_entry_[next].least) continue;
      at_entry_[next].least = through;
      ways.emplace(through, next);
    }
  }
}

// The longest one. Components have greater numbers than those that they lead to, so each is looked at when
// all ways to it are known. One that is a loop with a barrier has no longest way.
void Meetings::find_most() {
  const Components& components = flow_.components();
  std::vector<std::vector<uint32_t>> members(components.count);
  std::vector<uint64_t> most(components.count, 0), within(components.count, 0);
  for (uint32_t block = 0; block < flow_.blocks().size(); ++block) {
    if (!flow_.blocks()[block].reachable) continue;
    const uint32_t component = components.of[block];
    members[component].push_back(block);
    within[component] += in_block_[block];
  }
  for (uint32_t component = components.count; component-- > 0;) {
    for (const uint32_t block : members[component]) {
      if (flow_.in_cycle(block) && within[component] != 0) most[component] = kUnbounded;
    }
    const uint64_t through = most[component] == kUnbounded ? kUnbounded : most[component] + within[component];
    for (const uint32_t block : members[component]) {
      at_entry_[block].most = most[component];
      for (const uint32_t next : flow_.blocks()[block].successors) {
        const uint32_t to = components.of[next];
        if (to != component) most[to] = std::max(most[to], through);
      }
    }
  }
}

Meetings::Range Meetings::before(uint32_t instruction) const {
  const uint32_t block = flow_.instructions()[instruction].block;
  Range range = at_entry_[block];
  for (uint32_t i = flow_.blocks()[block].first; i < instruction; ++i) {
    if (!is_barrier_[i]) continue;
    if (range.least != kUnbounded) ++range.least;
    if (range.most != kUnbounded) ++range.most;
  }
  return range;
}

bool Meetings::can_meet(uint32_t barrier, uint32_t wait) const {
  const Range here = before(barrier), there = before(wait);
  return here.least <= there.most && there.least <= here.most;
}

}  // namespace klap::analysis
