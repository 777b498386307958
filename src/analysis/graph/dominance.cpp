#include "analysis/graph/dominance.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace klap::analysis {

namespace {

// Control dependence holds a few pairs a block in any code that people or compilers write; only loops nested
// hundreds deep could make it quadratic. Beyond this it is given up.
constexpr size_t kMostPairsPerBlock = 64;

}  // namespace

Dominance::Dominance(const ControlFlow& flow)
    : flow_(flow), exit_(static_cast<uint32_t>(flow.blocks().size())), endless_(exit_), stuck_(exit_) {
  all_blocks_.resize(exit_);
  std::iota(all_blocks_.begin(), all_blocks_.end(), 0);
  for (uint32_t b = 0; b < exit_; ++b) {
    if (has_choice(b) || flow.blocks()[b].end == BlockEnd::IndexedBranch) branches_.push_back(b);
  }
  known_ = control_known_ = !flow.has_unknown_branch();
  if (!known_ || exit_ == 0) return;
  const auto& blocks = flow.blocks();
  forward_ = DominatorTree(
      exit_, 0, [&](uint32_t b) -> const auto& { return blocks[b].successors; },
      [&](uint32_t b) -> const auto& { return blocks[b].predecessors; });
  find_endless();
  build_backward();
  find_control();
}

bool Dominance::has_choice(uint32_t block) const {
  const BasicBlock& b = flow_.blocks()[block];
  return b.successors.size() + (b.exits_function ? 1 : 0) > 1;
}

// Components are numbered so that an edge out of one leads to a smaller number: in ascending order a
// component's successors are settled before it. One that has neither a way out of the function nor an edge
// to another component is an endless loop; its first block stands for the place where a thread is stuck.
void Dominance::find_endless() {
  const auto& blocks = flow_.blocks();
  const auto& component = flow_.components().of;
  std::vector<std::vector<uint32_t>> members(flow_.components().count);
  for (uint32_t b = 0; b < exit_; ++b) members[component[b]].push_back(b);
  std::vector<bool> ends(members.size());
  for (uint32_t c = 0; c < members.size(); ++c) {
    bool leads_on = false;
    for (uint32_t b : members[c]) {
      if (blocks[b].exits_function) ends[c] = true;
      for (uint32_t to : blocks[b].successors) {
        if (component[to] == c) continue;
        leads_on = true;
        if (ends[component[to]]) ends[c] = true;
      }
    }
    for (uint32_t b : members[c]) endless_[b] = !ends[c];
    if (!ends[c] && !leads_on) stuck_[members[c].front()] = true;
  }
}

void Dominance::build_backward() {
  ways_on_.resize(exit_ + 1);
  ways_in_.resize(exit_ + 1);
  for (uint32_t b = 0; b < exit_; ++b) {
    ways_on_[b] = flow_.blocks()[b].successors;
    if (flow_.blocks()[b].exits_function || stuck_[b]) ways_on_[b].push_back(exit_);
    for (uint32_t to : ways_on_[b]) ways_in_[to].push_back(b);
  }
  backward_ = DominatorTree(
      exit_ + 1, exit_, [&](uint32_t b) -> const auto& { return ways_in_[b]; },
      [&](uint32_t b) -> const auto& { return ways_on_[b]; });
}

// For each block: everything on the way up the tree of post-dominators from each of its ways on, up to what
// post-dominates the block itself.
void Dominance::find_control() {
  marked_by_.assign(exit_ + 1, kNone);
  controlled_.start.assign(1, 0);
  for (uint32_t b = 0; b < exit_ && control_known_; ++b) {
    control_known_ = append_controlled(b);
    controlled_.start.push_back(static_cast<uint32_t>(controlled_.members.size()));
  }
  if (control_known_) invert_control();
  marked_by_ = {};
  ways_in_ = {};
  ways_on_ = {};
}

bool Dominance::append_controlled(uint32_t block) {
  if (ways_on_[block].size() < 2) return true;
  const uint32_t stop = backward_.parent(block);
  for (uint32_t way : ways_on_[block]) {
    for (uint32_t at = way; at != stop && at != exit_ && marked_by_[at] != block; at = backward_.parent(at)) {
      marked_by_[at] = block;
      controlled_.members.push_back(at);
    }
  }
  return controlled_.members.size() <= kMostPairsPerBlock * (size_t{exit_} + 64);
}

void Dominance::invert_control() {
  controllers_.start.assign(exit_ + 1, 0);
  for (uint32_t b : controlled_.members) ++controllers_.start[b + 1];
  std::partial_sum(controllers_.start.begin(), controllers_.start.end(), controllers_.start.begin());
  controllers_.members.resize(controlled_.members.size());
  std::vector<uint32_t> next(controllers_.start);
  for (uint32_t c = 0; c < exit_; ++c) {
    for (uint32_t b : controlled_.of(c)) controllers_.members[next[b]++] = c;
  }
}

std::span<const uint32_t> Dominance::controllers(uint32_t block) const {
  if (!control_known_) return branches_;
  return controllers_.of(block);
}

std::span<const uint32_t> Dominance::controlled(uint32_t block) const {
  if (control_known_) return controlled_.of(block);
  if (std::binary_search(branches_.begin(), branches_.end(), block)) return all_blocks_;
  return {};
}

std::vector<uint32_t> Dominance::deciding_branches(uint32_t block) const {
  if (!control_known_) return branches_;
  std::vector<bool> seen(exit_);
  std::vector<uint32_t> work{block}, out;
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    for (uint32_t c : controllers(b)) {
      if (seen[c]) continue;
      seen[c] = true;
      work.push_back(c);
      if (has_choice(c)) out.push_back(c);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string print_dominance(const ControlFlow& flow, const Dominance& dominance) {
  if (!dominance.known()) return "unknown: a branch without a list of its targets\n";
  const auto name = [&](uint32_t b) {
    if (b == Dominance::kNone) return std::string("none");
    return b == dominance.exit() ? std::string("exit") : fmt::format("b{}", b);
  };
  std::string out;
  if (!dominance.control_known()) out += "unknown: control dependence (too many pairs)\n";
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
    out += fmt::format("b{}: dominator {}, post-dominator {}", b, name(dominance.immediate_dominator(b)),
                       name(dominance.immediate_post_dominator(b)));
    if (dominance.control_known() && !dominance.controllers(b).empty()) {
      out += ", controlled by";
      for (uint32_t c : dominance.controllers(b)) out += ' ' + name(c);
    }
    if (dominance.is_endless(b)) out += ", endless";
    if (!flow.blocks()[b].reachable) out += ", unreachable";
    out += '\n';
  }
  return out;
}

}  // namespace klap::analysis
