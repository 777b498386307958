#include "analysis/graph/path_counts.h"

#include <algorithm>
#include <queue>

#include "analysis/graph/graph.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kUnbounded = CountRange::kUnbounded;
uint32_t plus(uint32_t a, uint32_t b) { return a > kUnbounded - b ? kUnbounded : a + b; }

// The count that remains from a place on: an amount, and the decision that fixes the rest. With decision 0
// the count ends there and nothing is open.
struct Rest {
  uint32_t amount = 0, decision = 0;
  bool operator==(const Rest&) const = default;
};

class Solver {
 public:
  Solver(const ControlFlow& flow, const std::vector<bool>& counted, const std::vector<bool>& targets)
      : flow_(flow), counted_(counted), targets_(targets), blocks_(flow.blocks().size()) {
    for (uint32_t b = 0; b < blocks_.size(); ++b) look_at(b);
  }

  std::optional<CountRange> range() {
    if (blocks_.empty()) return std::nullopt;
    find_least();
    forget_unreachable();
    if (blocks_[0].least == kUnbounded) return std::nullopt;
    const auto nodes = static_cast<uint32_t>(blocks_.size());
    const Components components = strongly_connected(
        nodes, [&](uint32_t b) -> const std::vector<uint32_t>& { return flow_.blocks()[b].successors; });
    std::vector<std::vector<uint32_t>> members(components.count);
    for (uint32_t b = 0; b < nodes; ++b) members[components.of[b]].push_back(b);
    for (const auto& component : members) solve(component);  // successors come first
    return CountRange{blocks_[0].least, blocks_[0].most};
  }
  std::vector<uint32_t> decisions() {
    std::sort(decisions_.begin(), decisions_.end());
    decisions_.erase(std::unique(decisions_.begin(), decisions_.end()), decisions_.end());
    return std::move(decisions_);
  }

 private:
  struct Block {
    uint32_t amount = 0, certain = 0;  // counted in the block; without predicated ones
    std::vector<uint32_t> ends;        // amounts before targets in the block
    uint32_t end_least = kUnbounded;   // the least of them, without predicated ones
    uint32_t least = kUnbounded, most = 0;
    Rest rest;
    [[nodiscard]] bool reaches() const { return least != kUnbounded; }
  };

  void look_at(uint32_t index) {
    Block& block = blocks_[index];
    const BasicBlock& basic = flow_.blocks()[index];
    const auto end = [&] {
      block.ends.push_back(block.amount);
      block.end_least = std::min(block.end_least, block.certain);
    };
    for (uint32_t i = basic.first; i < basic.last; ++i) {
      if (targets_[i]) end();
      if (!counted_[i]) continue;
      ++block.amount;
      if (!flow_.instructions()[i].statement->predicated) ++block.certain;
    }
    const bool last = basic.last == flow_.instructions().size();
    if (last && targets_.size() > basic.last && targets_[basic.last]) end();
  }

  // Dijkstra's algorithm from the targets backwards.
  void find_least() {
    std::vector<std::vector<uint32_t>> predecessors(blocks_.size());
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      for (uint32_t to : flow_.blocks()[b].successors) predecessors[to].push_back(b);
    }
    using Entry = std::pair<uint32_t, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto improve = [&](uint32_t b, uint32_t least) {
      if (least >= blocks_[b].least) return;
      blocks_[b].least = least;
      queue.emplace(least, b);
    };
    for (uint32_t b = 0; b < blocks_.size(); ++b) improve(b, blocks_[b].end_least);
    while (!queue.empty()) {
      const auto [least, b] = queue.top();
      queue.pop();
      if (least != blocks_[b].least) continue;
      for (uint32_t from : predecessors[b]) improve(from, plus(least, blocks_[from].certain));
    }
  }

  // Code that is never entered decides nothing.
  void forget_unreachable() {
    std::vector<bool> entered(blocks_.size());
    std::vector<uint32_t> work = {0};
    entered[0] = true;
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      for (uint32_t to : flow_.blocks()[b].successors) {
        if (!entered[to]) work.push_back(to);
        entered[to] = true;
      }
    }
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      if (!entered[b]) blocks_[b].least = kUnbounded;
    }
  }

  void solve(const std::vector<uint32_t>& component) {
    const auto& successors = flow_.blocks()[component[0]].successors;
    const bool cyclic = component.size() > 1 ||
                        std::find(successors.begin(), successors.end(), component[0]) != successors.end();
    if (!blocks_[component[0]].reaches()) return;
    cyclic ? solve_cycle(component) : solve_block(component[0]);
  }

  // All rests that are possible from the beginning of block `b` on. If `out_of` is given, only successors
  // outside of those blocks count.
  std::vector<Rest> ways(uint32_t b, const std::vector<uint32_t>* out_of = nullptr) {
    const Block& block = blocks_[b];
    std::vector<Rest> out;
    for (uint32_t amount : block.ends) out.push_back({amount, 0});
    for (uint32_t to : flow_.blocks()[b].successors) {
      if (!blocks_[to].reaches() || (out_of != nullptr && std::ranges::binary_search(*out_of, to))) continue;
      Rest rest = blocks_[to].rest;
      rest.amount = plus(rest.amount, block.amount);
      out.push_back(rest);
    }
    return out;
  }

  void decide_predicated(uint32_t b) {
    for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
      if (counted_[i] && flow_.instructions()[i].statement->predicated) decisions_.push_back(i);
    }
  }
  Rest decide(uint32_t b) {
    decisions_.push_back(flow_.blocks()[b].last - 1);
    return {0, ++last_decision_};
  }

  static bool all_alike(const std::vector<Rest>& rests) {
    return std::ranges::all_of(rests, [&](const Rest& r) { return r == rests[0]; });
  }

  void solve_block(uint32_t b) {
    Block& block = blocks_[b];
    for (uint32_t amount : block.ends) block.most = std::max(block.most, amount);
    for (uint32_t to : flow_.blocks()[b].successors) {
      if (blocks_[to].reaches()) block.most = std::max(block.most, plus(block.amount, blocks_[to].most));
    }
    find_rest(b);
  }

  void find_rest(uint32_t b) {
    decide_predicated(b);
    const std::vector<Rest> rests = ways(b);
    blocks_[b].rest = all_alike(rests) ? rests[0] : decide(b);
  }

  // A loop does not matter, however often it runs, if it counts nothing and all its exits have the same rest.
  void solve_cycle(const std::vector<uint32_t>& component) {
    std::vector<Rest> rests;
    uint32_t most = 0;
    bool counts = false;
    for (uint32_t b : component) {
      counts = counts || blocks_[b].amount > 0;
      for (const Rest& rest : ways(b, &component)) rests.push_back(rest);
      for (uint32_t amount : blocks_[b].ends) most = std::max(most, amount);
      for (uint32_t to : flow_.blocks()[b].successors) {
        const bool leaves = !std::ranges::binary_search(component, to);
        if (leaves && blocks_[to].reaches()) most = std::max(most, blocks_[to].most);
      }
    }
    if (!counts && all_alike(rests)) {
      for (uint32_t b : component) blocks_[b].rest = rests[0];
    } else {
      solve_iteration(component);
    }
    for (uint32_t b : component) blocks_[b].most = counts ? kUnbounded : most;
  }

  // The only block of a loop that control enters it by, if there is one.
  [[nodiscard]] std::optional<uint32_t> header_of(const std::vector<uint32_t>& component) const {
    std::optional<uint32_t> header;
    for (uint32_t b : component) {
      const bool entered = b == 0 || std::ranges::any_of(flow_.blocks()[b].predecessors, [&](uint32_t from) {
                             return !std::ranges::binary_search(component, from);
                           });
      if (entered && header) return std::nullopt;
      if (entered) header = b;
    }
    return header;
  }

  // In a loop each iteration is code without that loop, which ends where the next one begins: ways that come
  // to that place with equal counts are as good as one. Where a loop can be entered at several places, every
  // branch may decide.
  void solve_iteration(const std::vector<uint32_t>& component) {
    const std::optional<uint32_t> header = header_of(component);
    if (!header) {
      for (uint32_t b : component) {
        decide_predicated(b);
        const bool chooses = flow_.blocks()[b].successors.size() + blocks_[b].ends.size() > 1;
        blocks_[b].rest = chooses ? decide(b) : Rest{0, ++last_decision_};
      }
      return;
    }
    blocks_[*header].rest = {0, ++last_decision_};  // the next iteration
    const Subgraph iteration(
        component, [&](uint32_t b) -> const std::vector<uint32_t>& { return flow_.blocks()[b].successors; },
        [&](uint32_t, uint32_t to) { return to != *header; });
    for (uint32_t c = 0; c < iteration.components.count; ++c) {  // successors come first, the header last
      const std::vector<uint32_t> nodes = iteration.nodes_of(c);
      if (!blocks_[nodes[0]].reaches()) continue;
      iteration.cyclic(c) ? solve_cycle(nodes) : find_rest(nodes[0]);
    }
  }

  const ControlFlow& flow_;
  const std::vector<bool>&counted_, &targets_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> decisions_;
  uint32_t last_decision_ = 0;
};

}  // namespace

PathCounts::PathCounts(const ControlFlow& flow, const std::vector<bool>& counted,
                       const std::vector<bool>& targets) {
  Solver solver(flow, counted, targets);
  from_entry_ = solver.range();
  decisions_ = solver.decisions();
}

}  // namespace klap::analysis
