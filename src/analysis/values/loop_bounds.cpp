#include "analysis/values/loop_bounds.h"

#include <algorithm>
#include <optional>

#include "analysis/graph/graph.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

// Loops that run longer than this are as good as unbounded.
constexpr uint64_t kMostIterations = 1 << 16;

uint64_t add(uint64_t a, uint64_t b) { return a > kUnboundedRuns - b ? kUnboundedRuns : a + b; }
uint64_t multiply(uint64_t a, uint64_t b) {
  return a != 0 && b > kUnboundedRuns / a ? kUnboundedRuns : a * b;
}

// i = first, first + step, ...; the loop goes on while `i relation bound` holds (or does not).
struct Counter {
  uint64_t first = 0, step = 0, bound = 0;
  std::string_view relation;  // "lt", "ne", ...
  bool is_signed = false, wide = false;
  bool goes_on_if = true;
  uint32_t add = 0;                                  // instruction
  bool may_test_first = true, may_add_first = true;  // before the first test
};

bool holds(const Counter& c, uint64_t value) {
  const auto narrow = [&](uint64_t v) -> uint64_t {
    if (c.wide) return v;
    return c.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(v)))
                       : static_cast<uint32_t>(v);
  };
  const uint64_t a = narrow(value), b = narrow(c.bound);
  const bool less = c.is_signed ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
  if (c.relation == "eq") return a == b;
  if (c.relation == "ne") return a != b;
  if (c.relation == "lt" || c.relation == "lo") return less;
  if (c.relation == "le" || c.relation == "ls") return less || a == b;
  if (c.relation == "gt" || c.relation == "hi") return !less && a != b;
  return !less;  // ge, hs
}

// How often the test can be reached. Where it is not known whether the first test sees the first value or the
// one after it, both are tried.
std::optional<uint64_t> rounds(const Counter& c) {
  uint64_t most = 0;
  for (const bool added : {false, true}) {
    if (!(added ? c.may_add_first : c.may_test_first)) continue;
    uint64_t n = 1;
    for (uint64_t i = added ? c.first + c.step : c.first; holds(c, i) == c.goes_on_if; i += c.step) {
      if (++n > kMostIterations) return std::nullopt;
    }
    most = std::max(most, n);
  }
  return most;
}

// Sets of blocks are kept in ascending order.
bool contains(const std::vector<uint32_t>& blocks, uint32_t block) {
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

class LoopBounds {
 public:
  LoopBounds(const Module& module, const ControlFlow& flow, const DataFlow& data,
             const std::vector<uint32_t>& weights)
      : m_(module), flow_(flow), data_(data), weights_(weights) {}

  uint64_t run() const {
    std::vector<uint32_t> all(weights_.size());
    for (uint32_t b = 0; b < all.size(); ++b) all[b] = b;
    return heaviest(all);
  }

 private:
  [[nodiscard]] Subgraph between(const std::vector<uint32_t>& blocks) const {
    return Subgraph(
        blocks, [this](uint32_t b) -> const auto& { return flow_.blocks()[b].successors; });
  }

  // The heaviest path in a set of blocks, loops taken as a whole.
  [[nodiscard]] uint64_t heaviest(const std::vector<uint32_t>& blocks) const {
    const Subgraph part = between(blocks);
    std::vector<uint64_t> from(part.components.count);
    uint64_t most = 0;
    for (uint32_t c = 0; c < part.components.count; ++c) {  // later ones first
      for (uint32_t n : part.members[c]) {
        for (uint32_t to : part.edges[n]) {
          const uint32_t next = part.components.of[to];
          if (next != c) from[c] = std::max(from[c], from[next]);
        }
      }
      from[c] = add(from[c], part.cyclic(c) ? loop(part.nodes_of(c)) : weights_[part.nodes_of(c)[0]]);
      most = std::max(most, from[c]);
    }
    return most;
  }

  // The weight of a loop: its test runs at most N times, and a path through the rest of the loop lies between
  // two tests.
  [[nodiscard]] uint64_t loop(const std::vector<uint32_t>& members) const {
    const bool weightless =
        std::all_of(members.begin(), members.end(), [&](uint32_t b) { return weights_[b] == 0; });
    if (weightless) return 0;
    for (uint32_t test : members) {
      const auto counter = counter_at(test, members);
      const auto most = counter ? rounds(*counter) : std::nullopt;
      if (!most) continue;
      const uint64_t rest = multiply(*most + 1, heaviest(without(members, test)));
      return add(rest, multiply(*most, weights_[test]));
    }
    return kUnboundedRuns;
  }

  static std::vector<uint32_t> without(std::vector<uint32_t> blocks, uint32_t block) {
    blocks.erase(std::remove(blocks.begin(), blocks.end(), block), blocks.end());
    return blocks;
  }

  [[nodiscard]] const Statement& at(uint32_t instruction) const {
    return *flow_.instructions()[instruction].statement;
  }
  [[nodiscard]] uint32_t block_of(uint32_t instruction) const {
    return flow_.instructions()[instruction].block;
  }

  // The counter whose test ends block `test` by leaving the loop.
  [[nodiscard]] std::optional<Counter> counter_at(uint32_t test, const std::vector<uint32_t>& loop) const {
    const BasicBlock& block = flow_.blocks()[test];
    const Statement& branch = at(block.last - 1);
    if (!m_.is(branch.head, "bra") || !branch.predicated || block.successors.size() != 2) return std::nullopt;
    const bool jump_stays = contains(loop, block.successors[0]);
    if (jump_stays == contains(loop, block.successors[1])) return std::nullopt;
    const auto& compares = data_.definitions(m_.text(branch.predicate));
    if (compares.size() != 1 || block_of(compares[0]) != test) return std::nullopt;
    auto counter = comparison(compares[0], loop);
    if (!counter) return std::nullopt;
    counter->goes_on_if = jump_stays != branch.predicate_negated;
    return alternate(test, block_of(counter->add), loop) ? counter : std::nullopt;
  }

  // setp.RELATION.TYPE p, counter, constant
  [[nodiscard]] std::optional<Counter> comparison(uint32_t compare, const std::vector<uint32_t>& loop) const {
    const Statement& s = at(compare);
    if (!m_.is(s.head, "setp") || s.predicated || s.operands.size() != 3 || s.modifiers.size() != 2 ||
        s.operands[0].size() != 1) {
      return std::nullopt;
    }
    const std::string_view type = m_.text(s.modifiers.first + 1);
    const auto bound = data_.constant(m_.compact(s.operands[2]));
    if (!bound || ptx::type_bytes(type) < 4 || type.starts_with(".f")) return std::nullopt;
    Counter counter;
    counter.relation = m_.text(s.modifiers.first).substr(1);
    counter.is_signed = type.starts_with(".s");
    counter.wide = ptx::type_bytes(type) == 8;
    counter.bound = *bound;
    if (!steps(m_.text(s.operands[1]), loop, counter)) return std::nullopt;
    if (block_of(counter.add) == block_of(compare) && counter.may_test_first) {
      counter.may_test_first = counter.add > compare;
      counter.may_add_first = !counter.may_test_first;
    }
    return counter;
  }

  // True if the register counts. It has one definition outside the loop, a constant that every entry of the
  // loop passes. Its one definition inside adds a constant to itself, perhaps by way of a second register.
  bool steps(std::string_view reg, const std::vector<uint32_t>& loop, Counter& counter) const {
    std::string_view counted = reg;
    if (const auto of = added_to(reg, loop, counter)) {
      counted = *of;
      counter.may_test_first = false;  // the sum is tested
    }
    uint32_t inside = 0, before = ControlFlow::npos;
    for (uint32_t d : data_.definitions(counted)) {
      if (contains(loop, block_of(d))) {
        ++inside;
        if (!is_step(d, counted, loop, counter)) return false;
      } else {
        if (before != ControlFlow::npos) return false;
        before = d;
      }
    }
    if (inside != 1 || before == ControlFlow::npos) return false;
    const Statement& start = at(before);
    if (!m_.is(start.head, "mov") || start.predicated || start.operands.size() != 2) return false;
    const auto first = data_.constant(m_.compact(start.operands[1]));
    if (!first || !entered_through(block_of(before), loop)) return false;
    counter.first = *first;
    return true;
  }

  // t, where the only definition of `reg` is `add reg, t, constant` in the loop.
  std::optional<std::string_view> added_to(std::string_view reg, const std::vector<uint32_t>& loop,
                                           Counter& counter) const {
    const auto& definitions = data_.definitions(reg);
    if (definitions.size() != 1 || !contains(loop, block_of(definitions[0]))) return std::nullopt;
    return addend(definitions[0], counter);
  }

  [[nodiscard]] std::optional<std::string_view> addend(uint32_t i, Counter& counter) const {
    const Statement& s = at(i);
    if (!m_.is(s.head, "add") || s.predicated || s.operands.size() != 3) return std::nullopt;
    const auto step = data_.constant(m_.compact(s.operands[2]));
    if (!step) return std::nullopt;
    counter.step = *step;
    counter.add = i;
    return m_.text(s.operands[1]);
  }

  // `add counted, counted, constant`, or `mov counted, t` after `add t, counted, constant`.
  bool is_step(uint32_t i, std::string_view counted, const std::vector<uint32_t>& loop,
               Counter& counter) const {
    const Statement& s = at(i);
    if (m_.is(s.head, "add")) return addend(i, counter) == counted;
    if (!m_.is(s.head, "mov") || s.predicated || s.operands.size() != 2) return false;
    const bool same = added_to(m_.text(s.operands[1]), loop, counter) == counted;
    if (!same || block_of(counter.add) != block_of(i)) return false;
    counter.add = i;  // where the counter itself changes
    return true;
  }

  // True if control comes into the loop, at first and again, through `block` only.
  [[nodiscard]] bool entered_through(uint32_t block, const std::vector<uint32_t>& loop) const {
    std::vector<bool> seen(weights_.size()), inside(weights_.size());
    for (uint32_t b : loop) inside[b] = true;
    std::vector<uint32_t> work;
    const auto visit = [&](uint32_t b) {
      if (b != block && !seen[b]) work.push_back(b);
      seen[b] = true;
    };
    visit(0);
    for (uint32_t b : loop) {
      for (uint32_t to : flow_.blocks()[b].successors) {
        if (!inside[to]) visit(to);
      }
    }
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (inside[b]) return false;
      for (uint32_t to : flow_.blocks()[b].successors) visit(to);
    }
    return true;
  }

  // True if the test and the addition alternate: no way around contains one of them without the other.
  [[nodiscard]] bool alternate(uint32_t test, uint32_t addition, const std::vector<uint32_t>& loop) const {
    if (test == addition) return true;
    return !on_cycle(test, without(loop, addition)) && !on_cycle(addition, without(loop, test));
  }
  [[nodiscard]] bool on_cycle(uint32_t block, const std::vector<uint32_t>& blocks) const {
    const Subgraph part = between(blocks);
    for (uint32_t n = 0; n < part.nodes.size(); ++n) {
      if (part.nodes[n] == block) return part.cyclic(part.components.of[n]);
    }
    return false;
  }

  const Module& m_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const std::vector<uint32_t>& weights_;
};

}  // namespace

uint64_t most_runs(const Module& module, const ControlFlow& flow, const DataFlow& data,
                   const std::vector<uint32_t>& weights) {
  return LoopBounds(module, flow, data, weights).run();
}

}  // namespace klap::analysis
