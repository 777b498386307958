#include "analysis/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ptx/lines.h"

namespace klap::analysis {

Loops::Loops(const ControlFlow& flow, const Dominance& dominance)
    : flow_(flow),
      known_(dominance.known()),
      innermost_(flow.blocks().size(), Loop::kNone),
      in_irreducible_(flow.blocks().size()) {
  if (!known_ || flow.blocks().empty()) return;
  find_natural(dominance);
  list_blocks();
  find_irreducible(dominance);
}

// Inner loops first (the dominator tree from its leaves up), so that an outer loop can step over them.
void Loops::find_natural(const Dominance& dominance) {
  const auto& order = dominance.dominator_order();
  for (auto header = order.rbegin(); header != order.rend(); ++header) {
    Loop loop{.header = *header};
    for (uint32_t from : flow_.blocks()[*header].predecessors) {
      if (flow_.blocks()[from].reachable && dominance.dominates(*header, from)) loop.latches.push_back(from);
    }
    if (loop.latches.empty()) continue;
    loops_.push_back(std::move(loop));
    grow(static_cast<uint32_t>(loops_.size() - 1));
  }
  // Outer loops first from here on.
  std::reverse(loops_.begin(), loops_.end());
  const auto mirrored = [&](uint32_t& loop) {
    if (loop != Loop::kNone) loop = static_cast<uint32_t>(loops_.size()) - 1 - loop;
  };
  for (uint32_t& loop : innermost_) mirrored(loop);
  for (Loop& loop : loops_) {
    mirrored(loop.parent);
    if (loop.parent != Loop::kNone) loop.depth = loops_[loop.parent].depth + 1;
  }
}

// Walks backwards from the latches to the header. Blocks of inner loops are taken together: the outermost of
// those found so far becomes a child, and the walk goes on before its header.
void Loops::grow(uint32_t loop) {
  const uint32_t header = loops_[loop].header;
  std::vector<uint32_t> work(loops_[loop].latches);
  while (!work.empty()) {
    uint32_t block = work.back();
    work.pop_back();
    if (innermost_[block] == Loop::kNone) {
      innermost_[block] = loop;
      if (block == header) continue;
    } else {
      uint32_t outermost = innermost_[block];
      while (loops_[outermost].parent != Loop::kNone) outermost = loops_[outermost].parent;
      if (outermost == loop) continue;
      loops_[outermost].parent = loop;
      block = loops_[outermost].header;
      if (block == header) continue;
    }
    for (uint32_t from : flow_.blocks()[block].predecessors) {
      if (flow_.blocks()[from].reachable) work.push_back(from);
    }
  }
}

void Loops::list_blocks() {
  const auto& blocks = flow_.blocks();
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    for (uint32_t loop = innermost_[b]; loop != Loop::kNone; loop = loops_[loop].parent) {
      loops_[loop].blocks.push_back(b);
      for (uint32_t to : blocks[b].successors) {
        if (!contains(loop, to)) loops_[loop].exits.push_back({b, to});
      }
      if (blocks[b].leaves) loops_[loop].exits.push_back({b, static_cast<uint32_t>(blocks.size())});
    }
  }
}

bool Loops::contains(uint32_t loop, uint32_t block) const {
  uint32_t at = innermost_[block];
  // Inner loops have larger numbers than those around them.
  while (at != Loop::kNone && at > loop) at = loops_[at].parent;
  return at == loop;
}

// Without the back edges of natural loops a reducible graph has no cycle. What still has one is irreducible.
void Loops::find_irreducible(const Dominance& dominance) {
  const auto& blocks = flow_.blocks();
  const auto count = static_cast<uint32_t>(blocks.size());
  std::vector<std::vector<uint32_t>> forward(count);
  for (uint32_t b = 0; b < count; ++b) {
    if (!blocks[b].reachable) continue;
    for (uint32_t to : blocks[b].successors) {
      if (!dominance.dominates(to, b)) forward[b].push_back(to);
    }
  }
  const Components parts = strongly_connected(
      count, [&](uint32_t b) -> const auto& { return forward[b]; });
  std::vector<uint32_t> size(parts.count), region(parts.count, Loop::kNone);
  for (uint32_t b = 0; b < count; ++b) ++size[parts.of[b]];
  for (uint32_t b = 0; b < count; ++b) {
    const uint32_t part = parts.of[b];
    if (size[part] < 2) continue;
    if (region[part] == Loop::kNone) {
      region[part] = static_cast<uint32_t>(irreducible_.size());
      irreducible_.emplace_back();
    }
    IrreducibleRegion& found = irreducible_[region[part]];
    found.blocks.push_back(b);
    in_irreducible_[b] = true;
    const auto& from = blocks[b].predecessors;
    const bool entered = std::any_of(from.begin(), from.end(),
                                     [&](uint32_t p) { return blocks[p].reachable && parts.of[p] != part; });
    if (entered || b == 0) found.entries.push_back(b);
  }
}

std::string print_loops(const ControlFlow& flow, const Loops& loops) {
  if (!loops.known()) return "unknown: a branch without a list of its targets; any block may be in a loop\n";
  const ptx::LineNumbers lines(flow.module());
  const auto line = [&](uint32_t b) {
    return lines.of(flow.instructions()[flow.blocks()[b].first].statement->head);
  };
  const auto list = [](const std::vector<uint32_t>& blocks) {
    std::string out;
    for (uint32_t b : blocks) out += fmt::format(" b{}", b);
    return out;
  };
  std::string out;
  for (const Loop& loop : loops.all()) {
    out += fmt::format("{:{}}loop b{} line {}, depth {}:{}; back from{}; ", "", 2 * (loop.depth - 1),
                       loop.header, line(loop.header), loop.depth, list(loop.blocks), list(loop.latches));
    if (loop.exits.empty()) out += "never left";
    for (const Loop::Exit& exit : loop.exits) {
      const bool ends = exit.to == flow.blocks().size();
      out += fmt::format("{}b{} -> {}", &exit == loop.exits.data() ? "left " : ", ", exit.from,
                         ends ? "exit" : fmt::format("b{}", exit.to));
    }
    out += '\n';
  }
  for (const IrreducibleRegion& region : loops.irreducible())
    out += fmt::format("irreducible:{}; entered at{}\n", list(region.blocks), list(region.entries));
  return out;
}

}  // namespace klap::analysis
