#include "analysis/loop_nest.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace klap::analysis {

Subgraph::Subgraph(const ControlFlow& flow, std::vector<uint32_t> all)
    : blocks(std::move(all)), edges(blocks.size()) {
  std::unordered_map<uint32_t, uint32_t> number;
  for (uint32_t n = 0; n < blocks.size(); ++n) number[blocks[n]] = n;
  for (uint32_t n = 0; n < blocks.size(); ++n) {
    for (uint32_t to : flow.blocks()[blocks[n]].successors) {
      const auto inside = number.find(to);
      if (inside != number.end()) edges[n].push_back(inside->second);
    }
  }
  components = strongly_connected(
      static_cast<uint32_t>(blocks.size()), [&](uint32_t n) -> const auto& { return edges[n]; });
  members.resize(components.count);
  for (uint32_t n = 0; n < blocks.size(); ++n) members[components.of[n]].push_back(n);
}

bool Subgraph::cyclic(uint32_t component) const {
  const uint32_t n = members[component][0];
  return members[component].size() > 1 || std::find(edges[n].begin(), edges[n].end(), n) != edges[n].end();
}

std::vector<uint32_t> Subgraph::blocks_of(uint32_t component) const {
  std::vector<uint32_t> out;
  for (uint32_t n : members[component]) out.push_back(blocks[n]);
  return out;
}

bool NestedLoop::contains(uint32_t block) const {
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

LoopNest::LoopNest(const ControlFlow& flow)
    : innermost_(flow.blocks().size()), predecessors_(flow.blocks().size()) {
  std::vector<uint32_t> all(flow.blocks().size());
  for (uint32_t b = 0; b < all.size(); ++b) {
    all[b] = b;
    for (uint32_t to : flow.blocks()[b].successors) predecessors_[to].push_back(b);
  }
  find(flow, all, std::nullopt);
  // New loops are appended, so this goes down the nest level by level.
  for (uint32_t l = 0; l < loops_.size(); ++l) {
    if (loops_[l].is_part) continue;
    split(l);
    std::vector<uint32_t> rest;
    const NestedLoop& loop = loops_[l];
    std::set_difference(loop.blocks.begin(), loop.blocks.end(), loop.entries.begin(), loop.entries.end(),
                        std::back_inserter(rest));
    find(flow, rest, l);
  }
}

void LoopNest::find(const ControlFlow& flow, const std::vector<uint32_t>& blocks,
                    std::optional<uint32_t> outer) {
  const Subgraph graph(flow, blocks);
  for (uint32_t c = 0; c < graph.components.count; ++c) {
    if (!graph.cyclic(c)) continue;
    NestedLoop loop;
    loop.blocks = graph.blocks_of(c);
    loop.outer = outer;
    for (uint32_t b : loop.blocks) {
      const bool entered = b == 0 || std::any_of(predecessors_[b].begin(), predecessors_[b].end(),
                                                 [&](uint32_t from) { return !loop.contains(from); });
      if (entered) loop.entries.push_back(b);
      innermost_[b] = static_cast<uint32_t>(loops_.size());
    }
    // Code that nothing leads to has no entry; any block will do.
    if (loop.entries.empty()) loop.entries.push_back(loop.blocks[0]);
    loops_.push_back(std::move(loop));
  }
}

// Adds the parts of a loop with one head and several jumps back to it.
void LoopNest::split(uint32_t loop) {
  if (loops_[loop].entries.size() != 1) return;
  const uint32_t head = loops_[loop].entries[0];
  std::vector<uint32_t> jumps;
  for (uint32_t from : predecessors_[head]) {
    if (loops_[loop].contains(from)) jumps.push_back(from);
  }
  if (jumps.size() < 2) return;
  constexpr size_t kMostParts = 16;
  const auto add = [&](NestedLoop part) {
    part.entries = {head};
    part.outer = loop;
    part.is_part = true;
    loops_[loop].parts.push_back(static_cast<uint32_t>(loops_.size()));
    loops_.push_back(std::move(part));
  };
  if (jumps.size() > kMostParts) {
    NestedLoop all;
    all.blocks = loops_[loop].blocks;
    all.merged = true;
    add(std::move(all));
    return;
  }
  for (uint32_t jump : jumps) {
    std::set<uint32_t> blocks = {head};
    std::vector<uint32_t> work = {jump};
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (!blocks.insert(b).second) continue;
      for (uint32_t from : predecessors_[b]) {
        if (loops_[loop].contains(from)) work.push_back(from);
      }
    }
    if (blocks.size() == loops_[loop].blocks.size()) continue;
    NestedLoop part;
    part.blocks.assign(blocks.begin(), blocks.end());
    add(std::move(part));
  }
}

std::vector<uint32_t> LoopNest::around(uint32_t block) const {
  std::vector<uint32_t> out;
  for (auto l = innermost_[block]; l; l = loops_[*l].outer) {
    for (uint32_t part : loops_[*l].parts) {
      if (loops_[part].contains(block)) out.push_back(part);
    }
    out.push_back(*l);
  }
  return out;
}

}  // namespace klap::analysis
