#include "analysis/graph/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ptx/lines.h"

namespace klap::analysis {

bool Loop::contains(uint32_t block) const { return std::binary_search(blocks.begin(), blocks.end(), block); }

// ---- finding them ----

// An irreducible loop may be split by leaving out the edges to its entries that are no back edges. The
// argument: no block of a loop dominates another block that is an entry, because control would have to pass
// it before it enters. A natural loop inside the irreducible one has a body that its header dominates. So
// that body holds no other entry and loses no edge.
class LoopFinder {
 public:
  explicit LoopFinder(Loops& loops) : out_(loops), blocks_(loops.flow_.blocks()) {}

  void run() {
    push(outermost(), Loop::kNone);
    while (!open_.empty()) {
      Loop loop = std::move(open_.back());
      open_.pop_back();
      const auto index = static_cast<uint32_t>(out_.loops_.size());
      describe(loop, index);
      out_.loops_.push_back(std::move(loop));
      push(inside(out_.loops_[index]), index);
    }
  }

 private:
  using Sets = std::vector<std::vector<uint32_t>>;

  // The last is looked at first.
  void push(Sets sets, uint32_t parent) {
    std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a[0] > b[0]; });
    for (auto& set : sets) {
      Loop loop{.parent = parent, .blocks = std::move(set)};
      if (parent != Loop::kNone) loop.depth = out_.loops_[parent].depth + 1;
      open_.push_back(std::move(loop));
    }
  }

  [[nodiscard]] Sets outermost() const {
    const ControlFlow& flow = out_.flow_;
    std::vector<uint32_t> number(flow.components().count, Loop::kNone);
    Sets sets;
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      if (!blocks_[b].reachable || !flow.in_cycle(b)) continue;
      uint32_t& set = number[flow.components().of[b]];
      if (set == Loop::kNone) {
        set = static_cast<uint32_t>(sets.size());
        sets.emplace_back();
      }
      sets[set].push_back(b);
    }
    return sets;
  }

  void describe(Loop& loop, uint32_t index) {
    std::vector<uint32_t>& innermost = out_.innermost_;
    for (uint32_t b : loop.blocks) innermost[b] = index;  // inner loops come later
    for (uint32_t b : loop.blocks) {
      const auto& from = blocks_[b].predecessors;
      const bool entered = std::any_of(from.begin(), from.end(), [&](uint32_t p) {
        return blocks_[p].reachable && innermost[p] != index;
      });
      if (entered || b == 0) loop.entries.push_back(b);
      for (uint32_t to : blocks_[b].successors) {
        if (innermost[to] != index) loop.exits.push_back({b, to});
      }
      if (blocks_[b].exits_function) loop.exits.push_back({b, static_cast<uint32_t>(blocks_.size())});
    }
    if (!loop.is_natural()) return;
    for (uint32_t from : blocks_[loop.header()].predecessors) {
      if (innermost[from] == index) loop.latches.push_back(from);
    }
    std::sort(loop.latches.begin(), loop.latches.end());
  }

  [[nodiscard]] Sets inside(const Loop& loop) {
    const Subgraph rest(
        loop.blocks, [&](uint32_t b) -> const auto& { return blocks_[b].successors; },
        [&](uint32_t from, uint32_t to) { return !leads_back(loop, from, to); });
    Sets sets;
    for (uint32_t c = 0; c < rest.components.count; ++c) {
      if (rest.cyclic(c)) sets.push_back(rest.nodes_of(c));
    }
    return sets;
  }

  [[nodiscard]] bool leads_back(const Loop& loop, uint32_t from, uint32_t to) {
    if (loop.is_natural()) return to == loop.header();
    return std::binary_search(loop.entries.begin(), loop.entries.end(), to) &&
           !dominators().dominates(to, from);
  }

  // Made when the first irreducible loop asks.
  [[nodiscard]] const DominatorTree& dominators() {
    if (!dominators_) {
      dominators_.emplace(
          static_cast<uint32_t>(blocks_.size()),
          0, [&](uint32_t b) -> const auto& { return blocks_[b].successors; },
          [&](uint32_t b) -> const auto& { return blocks_[b].predecessors; });
    }
    return *dominators_;
  }

  Loops& out_;
  const std::vector<BasicBlock>& blocks_;
  std::vector<Loop> open_;
  std::optional<DominatorTree> dominators_;
};

Loops::Loops(const ControlFlow& flow) : flow_(flow), innermost_(flow.blocks().size(), Loop::kNone) {
  if (known()) LoopFinder(*this).run();
}

// ---- questions ----

bool Loops::contains(uint32_t loop, uint32_t block) const {
  uint32_t at = innermost_[block];
  // Inner loops have larger numbers than those around them.
  while (at != Loop::kNone && at > loop) at = loops_[at].parent;
  return at == loop;
}

bool Loops::is_irreducible(uint32_t block) const {
  if (!known()) return true;
  for (uint32_t at = innermost_[block]; at != Loop::kNone; at = loops_[at].parent) {
    if (!loops_[at].is_natural()) return true;
  }
  return false;
}

// ---- parts ----

LoopParts::LoopParts(const ControlFlow& flow)
    : loops_(flow), all_(loops_.all()), parts_(loops_.all().size()) {
  for (uint32_t l = 0; l < parts_.size(); ++l) split(flow, l);
}

void LoopParts::split(const ControlFlow& flow, uint32_t loop) {
  constexpr size_t kMostParts = 16;
  const Loop& whole = loops_.all()[loop];
  if (whole.latches.size() < 2) return;
  const auto add = [&](std::vector<uint32_t> blocks, bool merged) {
    parts_[loop].push_back(static_cast<uint32_t>(all_.size()));
    all_.push_back({.parent = loop,
                    .depth = whole.depth + 1,
                    .blocks = std::move(blocks),
                    .entries = whole.entries,
                    .merged = merged});
  };
  if (whole.latches.size() > kMostParts) {
    add(whole.blocks, true);
    return;
  }
  for (uint32_t latch : whole.latches) {
    std::vector<bool> seen(flow.blocks().size());
    std::vector<uint32_t> blocks = {whole.header()}, work = {latch};
    seen[whole.header()] = true;
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (seen[b] || !whole.contains(b)) continue;
      seen[b] = true;
      blocks.push_back(b);
      const auto& from = flow.blocks()[b].predecessors;
      work.insert(work.end(), from.begin(), from.end());
    }
    if (blocks.size() == whole.blocks.size()) continue;
    std::sort(blocks.begin(), blocks.end());
    add(std::move(blocks), false);
  }
}

std::vector<uint32_t> LoopParts::around(uint32_t block) const {
  std::vector<uint32_t> out;
  for (uint32_t l = loops_.innermost(block); l != Loop::kNone; l = all_[l].parent) {
    for (uint32_t part : parts_[l]) {
      if (all_[part].contains(block)) out.push_back(part);
    }
    out.push_back(l);
  }
  return out;
}

// ---- for a reader ----

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
    out += fmt::format("{:{}}", "", 2 * (loop.depth - 1));
    if (!loop.is_natural()) {
      out += fmt::format("irreducible:{}; entered at{}\n", list(loop.blocks), list(loop.entries));
      continue;
    }
    out += fmt::format("loop b{} line {}, depth {}:{}; back from{}; ", loop.header(), line(loop.header()),
                       loop.depth, list(loop.blocks), list(loop.latches));
    if (loop.exits.empty()) out += "never left";
    for (const Loop::Exit& exit : loop.exits) {
      const bool ends = exit.to == flow.blocks().size();
      out += fmt::format("{}b{} -> {}", &exit == loop.exits.data() ? "left " : ", ", exit.from,
                         ends ? "exit" : fmt::format("b{}", exit.to));
    }
    out += '\n';
  }
  return out;
}

}  // namespace klap::analysis
