#include "analysis/order/launch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/facts/launch_shape.h"
#include "analysis/order/block_dependence.h"
#include "analysis/order/child_accesses.h"
#include "analysis/order/disjoint.h"
#include "analysis/order/launching_blocks.h"
#include "analysis/synchronisation/single_thread.h"
#include "analysis/synchronisation/synchronisation.h"

namespace klap::analysis {
namespace {

using AccessKind = MemoryAccess::Kind;

// The analysis gives up beyond this many pairs: the verdicts would not be worth their time.
constexpr size_t kMostPairs = 250000;
constexpr uint64_t kLastThread = 1023;  // the largest number of a thread in its block

bool in_null_stream(const Site& site) {
  const StreamKind kind = stream_kind(site);
  return kind == StreamKind::Null || kind == StreamKind::Other;
}

bool is_local(const MemoryRoot& root) {
  return root.kind == MemoryRoot::Kind::Local || root.space == "local" || root.space == "shared";
}

// Operations that give the same result in any order, as long as no thread looks at the returned values.
bool commutes(std::string_view operation) {
  return std::ranges::any_of(std::array{"add.", "min.", "max.", "and.", "or.", "xor."},
                             [&](const char* name) { return operation.starts_with(name); });
}

// Sums of floating-point numbers depend on the order in which they are added up.
bool rounds(std::string_view operation) {
  return operation.starts_with("add.") &&
         (operation.find(".f") != std::string_view::npos || operation.find(".bf") != std::string_view::npos);
}

}  // namespace

const char* to_string(Order order) {
  switch (order) {
    case Order::Proven:
      return "proven";
    case Order::Tolerated:
      return "tolerated";
    case Order::Kept:
      return "kept";
  }
  return "unknown";
}

void OrderConditions::add(const OrderConditions& other) {
  several_blocks = several_blocks || other.several_blocks;
  block_limits.insert(other.block_limits.begin(), other.block_limits.end());
  apart.insert(other.apart.begin(), other.apart.end());
  not_negative.insert(other.not_negative.begin(), other.not_negative.end());
}

std::set<std::pair<HostMemory, HostMemory>> OrderConditions::apart_at_few_places() const {
  std::map<std::pair<uint32_t, std::string>, std::set<HostDistance>> distances;
  for (const auto& [a, b] : apart) {
    for (const HostMemory* const memory : {&a, &b})
      distances[{memory->parameter_offset, memory->variable}].insert(memory->distances.begin(),
                                                                     memory->distances.end());
  }
  const auto with_all = [&](HostMemory memory) {
    memory.distances = outermost(distances[{memory.parameter_offset, memory.variable}]);
    return memory;
  };
  std::set<std::pair<HostMemory, HostMemory>> out;
  for (const auto& [a, b] : apart) out.insert(std::minmax(with_all(a), with_all(b)));
  return out;
}

void OrderVerdict::add(const OrderVerdict& other) {
  if (other.order > order || why.empty()) why = other.why.empty() ? why : other.why;
  order = std::max(order, other.order);
  conditions.add(other.conditions);
}

class OrderJudge {
  using Child = ChildAccesses;
  using Access = ChildAccess;

 public:
  OrderJudge(const FunctionFacts& parent, std::vector<LaunchedChild> launches, const KnownExtents& block,
             OtherLaunches others)
      : parent_(parent), block_(block), parent_effects_(parent) {
    for (LaunchedChild& launch : launches)
      children_.push_back(std::make_unique<Child>(parent, std::move(launch), block));
    for (const auto& child : children_) find_host_roots(*child);
    find_written();
    find_lookers(others);
  }

  // For a recursion: where pointers come from is followed from launch to launch.
  OrderJudge(const FunctionFacts& parent, const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
             const std::vector<GroupLaunch>& launches)
      : parent_(parent), parent_effects_(parent) {
    static const Site kAnySite;  // a site with unknown arguments
    for (const auto& kernel : kernels)
      children_.push_back(std::make_unique<Child>(parent, LaunchedChild{&kAnySite, kernel}, KnownExtents{}));
    find_recursive_group_memory(parent, parent_effects_, launches, children_);
    find_lookers(OtherLaunches::None);
  }

  // The verdict on two kernels of a recursion, and on two launches of which no threads are known.
  [[nodiscard]] OrderVerdict any_pair(size_t a, size_t b) const {
    return compare(
        *children_[a], *children_[b], [] { return false; }, false);
  }

  [[nodiscard]] OrderVerdict pair(size_t a, size_t b) const {
    const Child &first = *children_[a], &second = *children_[b];
    if (!in_null_stream(*first.site) || !in_null_stream(*second.site)) return {};
    if (is_one_thread(a, b)) return {};
    std::optional<bool> is_free;
    const auto order_is_free = [&] {
      if (!is_free)
        is_free = is_order_free(parent_, instruction_of(*first.site), instruction_of(*second.site));
      return *is_free;
    };
    return compare(first, second, order_is_free, true);
  }

  [[nodiscard]] std::optional<OrderConditions> own_reads(size_t a) const {
    const Child& child = *children_[a];
    if (!child.footprint.visible.empty()) return std::nullopt;
    std::optional<OrderConditions> out = unseen(child, true);
    if (!out) return std::nullopt;
    for (const Access& read : child.accesses) {
      for (const Access& change : child.accesses) {
        if (!read.is->reads_only() || change.is->reads_only()) continue;
        if (are_in_different_spaces(read.is->roots, change.is->roots)) continue;
        const auto conditions = apart(read.memory, change.memory);
        if (!conditions) return std::nullopt;
        out->add(*conditions);
      }
    }
    return out;
  }

  [[nodiscard]] size_t size() const { return children_.size(); }

 private:
  static uint32_t instruction_of(const FunctionFacts& parent, const Site& site) {
    return parent.flow.index_of(site.get_call);
  }
  [[nodiscard]] uint32_t instruction_of(const Site& site) const { return instruction_of(parent_, site); }

  // True if no two threads of a block make these launches.
  [[nodiscard]] bool is_one_thread(size_t a, size_t b) const {
    const Site &first = *children_[a]->site, &second = *children_[b]->site;
    if (a == b) return is_launched_by_one_thread(parent_, first, block_);
    return is_launched_by_first_thread(parent_, first, block_) &&
           is_launched_by_first_thread(parent_, second, block_);
  }

  // ---- memory ----

  // A root of the child in terms of what the host passes to the parent.
  [[nodiscard]] std::optional<std::set<HostMemory>> host_memory(const Child& child,
                                                                const MemoryRoot& root) const {
    if (root.kind == MemoryRoot::Kind::Symbol) return std::set{HostMemory{0, root.name}};
    if (root.kind != MemoryRoot::Kind::Parameter) return std::nullopt;
    const auto& parameters = child.facts->function.parameters;
    if (root.parameter >= parameters.size()) return std::nullopt;
    const uint32_t offset = parameters[root.parameter].offset + root.offset;
    for (const Argument& argument : child.site->arguments) {
      if (argument.offset != offset || argument.bytes != 8) continue;
      return memory_of_parent(parent_, parent_effects_.roots_of(argument.source));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::set<HostMemory>> host_memory(const Child& child,
                                                                const std::set<MemoryRoot>& roots) const {
    std::set<HostMemory> out;
    for (const MemoryRoot& root : roots) {
      const auto memory = host_memory(child, root);
      if (!memory) return std::nullopt;
      out.insert(memory->begin(), memory->end());
    }
    return out;
  }

  void find_host_roots(Child& child) {
    for (Access& access : child.accesses) {
      auto memory = host_memory(child, access.is->roots);
      if (!memory || !add_distances(*memory, child, *access.is)) continue;
      access.memory.emplace();
      for (HostMemory part : *memory) {
        if (auto numbers = numbers_that_lead_upwards(*child.facts, child.terms, access.shape.address, part)) {
          part.only_upwards = true;
          part.unless_negative = std::move(*numbers);
        }
        access.memory->insert(part);
      }
    }
  }

  // A called function accesses the memory behind the pointers that it is given.
  bool add_distances(std::set<HostMemory>& memory, const Child& child, const MemoryAccess& access) const {
    if (!access.address) return true;
    const ptx::Statement& s = *child.facts->flow.instructions()[access.instruction].statement;
    const Expr address =
        child.facts->values().symbolic.address(access.instruction, s.operands[*access.address]);
    return analysis::add_distances(memory, {child.facts.get(), child.site, &parent_}, address);
  }

  // Collects the memory that the parent and its children write.
  void find_written() {
    written_.emplace();
    for (const auto& [root, use] : parent_effects_.uses()) {
      if (!use.changes() || is_local(root) || root.kind == MemoryRoot::Kind::LaunchBuffer) continue;
      add_written(memory_of_parent(parent_, {root}));
    }
    for (const auto& child : children_) {
      for (const Access& access : child->accesses) {
        if (!access.is->reads_only()) add_written(access.memory);
      }
    }
  }
  void add_written(const std::optional<std::set<HostMemory>>& memory) {
    if (!memory) written_.reset();
    if (written_ && memory) written_->insert(memory->begin(), memory->end());
  }

  // ---- kernels that run meanwhile ----

  // A strong read, or an atomic whose result is used, of the parent.
  struct Looker {
    std::set<MemoryRoot> roots;
    std::optional<std::set<HostMemory>> memory;
  };

  void find_lookers(OtherLaunches others) {
    const auto may_be_seen = [](const auto& child) {
      return std::ranges::any_of(child->accesses, [](const Access& a) { return a.is->may_be_seen(); });
    };
    if (std::ranges::none_of(children_, may_be_seen)) return;
    const Footprint own = footprint_of(parent_, parent_effects_);
    for (const MemoryAccess& access : own.accesses)
      if (access.looks()) lookers_.push_back({access.roots, memory_of_parent(parent_, access)});
    if (others == OtherLaunches::Unknown) lookers_.push_back({{MemoryRoot()}, std::nullopt});
  }

  // The conditions under which no other kernel looks at what the child changes while it runs; nothing if one
  // may. What is shown to be apart for children of one block is taken to be apart for those of others.
  [[nodiscard]] const std::optional<OrderConditions>& unseen(const Child& child, bool by_threads) const {
    const auto [known, is_new] = unseen_.try_emplace({&child, by_threads});
    if (is_new) known->second = find_unseen(child, by_threads);
    return known->second;
  }
  [[nodiscard]] std::optional<OrderConditions> find_unseen(const Child& child, bool by_threads) const {
    OrderConditions out;
    for (const Access& change : child.accesses) {
      if (!change.is->may_be_seen()) continue;
      for (const Looker& looker : lookers_) {
        if (are_in_different_spaces(change.is->roots, looker.roots)) continue;
        const auto conditions = apart(change.memory, looker.memory);
        if (!conditions) return std::nullopt;
        out.add(*conditions);
      }
      for (const auto& other : children_) {
        for (const Access& look : other->accesses) {
          if (!look.is->looks()) continue;
          const OrderVerdict found = accesses(
              child, change, *other, look, [] { return false; }, by_threads);
          if (found.order != Order::Proven) return std::nullopt;
          out.add(found.conditions);
        }
      }
    }
    return out;
  }

  // Children that overlap are told from children in a row by what they have changed so far. So one of the two
  // must be unseen.
  [[nodiscard]] OrderVerdict if_unseen(OrderVerdict proven, const Child& first, const Child& second,
                                       bool by_threads) const {
    std::optional<OrderConditions> conditions = unseen(first, by_threads);
    if (!conditions || !conditions->apart.empty()) {
      const auto& other = unseen(second, by_threads);
      if (other && (!conditions || other->apart.empty())) conditions = other;
    }
    if (!conditions)
      return {Order::Kept, "another kernel may look at what the children update while they run", {}};
    proven.conditions.add(*conditions);
    return proven;
  }

  // The conditions under which no place of `a` is in `b`; nothing if they share one.
  static std::optional<OrderConditions> apart(const std::optional<std::set<HostMemory>>& a,
                                              const std::optional<std::set<HostMemory>>& b) {
    if (!a || !b) return std::nullopt;
    OrderConditions out;
    for (const HostMemory& x : *a) {
      for (const HostMemory& y : *b) {
        if (x.has_same_name(y)) return std::nullopt;
        if (!x.variable.empty() && !y.variable.empty()) continue;  // two variables never overlap
        out.apart.insert(std::minmax(x, y));
        for (const HostMemory& memory : {x, y})
          out.not_negative.insert(memory.unless_negative.begin(), memory.unless_negative.end());
      }
    }
    return out;
  }

  // ---- two children ----

  // `by_threads`: the launches are those of different threads of one block.
  template <typename OrderIsFree>
  [[nodiscard]] OrderVerdict compare(const Child& first, const Child& second,
                                     const OrderIsFree& order_is_free, bool by_threads) const {
    for (const Child* child : {&first, &second}) {
      if (!child->footprint.visible.empty())
        return {Order::Kept, fmt::format("{} is seen outside", child->footprint.visible), {}};
    }
    if (first.accesses.size() * second.accesses.size() > kMostPairs)
      return {Order::Kept, "there are too many accesses to compare", {}};
    OrderVerdict verdict;
    for (const Access& x : first.accesses) {
      for (const Access& y : second.accesses) {
        const OrderVerdict found = accesses(first, x, second, y, order_is_free, by_threads);
        if (found.order == Order::Kept) return found;
        verdict.add(found);
      }
    }
    return verdict.order == Order::Proven ? if_unseen(std::move(verdict), first, second, by_threads)
                                          : verdict;
  }

  // ---- two accesses ----

  template <typename OrderIsFree>
  [[nodiscard]] OrderVerdict accesses(const Child& first, const Access& x, const Child& second,
                                      const Access& y, const OrderIsFree& order_is_free,
                                      bool by_threads) const {
    if (x.is->reads_only() && y.is->reads_only()) return {};
    if (are_in_different_spaces(x.is->roots, y.is->roots)) return {};
    if (are_same_update(x, y) && (!rounds(x.is->operation) || order_is_free())) return {};
    if (are_equal_stores(x, y) || are_at_different_offsets(x.shape, y.shape)) return {};
    if ((by_threads && are_apart_by_thread(x, y)) || are_apart_by_slots(first, x, second, y)) return {};
    if (const auto conditions = apart(x.memory, y.memory)) return {Order::Proven, "", *conditions};
    const std::string pair =
        x.is->place == y.is->place ? x.is->place : fmt::format("{} and {}", x.is->place, y.is->place);
    auto tolerated = by_threads ? tolerate(first, x, second, y) : std::nullopt;
    if (tolerated && order_is_free()) {
      tolerated->why = fmt::format("{}, {}", pair, tolerated->why);
      return *tolerated;
    }
    return {Order::Kept, fmt::format("{} may conflict between launches", pair), {}};
  }

  static bool are_in_different_spaces(const std::set<MemoryRoot>& a, const std::set<MemoryRoot>& b) {
    return std::ranges::none_of(a, [&](const MemoryRoot& x) {
      return std::ranges::any_of(b, [&](const MemoryRoot& y) { return may_overlap(x, y); });
    });
  }

  static bool are_same_update(const Access& x, const Access& y) {
    return x.is->kind == AccessKind::Atomic && y.is->kind == AccessKind::Atomic && !x.is->returns &&
           !y.is->returns && x.is->operation == y.is->operation && commutes(x.is->operation);
  }

  // Stores of one size are aligned to it, so two of them meet in whole or not at all.
  static bool are_equal_stores(const Access& x, const Access& y) {
    if (x.is->kind != AccessKind::Write || y.is->kind != AccessKind::Write) return false;
    if (x.is->bytes == 0 || x.is->bytes != y.is->bytes) return false;
    if (!x.literal.empty() && x.literal == y.literal) return true;
    return is_same_for_all(x.value) && x.value == y.value;
  }

  static bool is_same_for_all(const Expr& e) {
    return e.known() &&
           !any_leaf(e, [](const ExprNode& leaf) { return LaunchTerms::varies(leaf) != Varies::No; });
  }

  // True if the value is the same for all blocks of the parent as well.
  static bool is_same_for_grid(const Expr& e) {
    return is_same_for_all(e) && !any_leaf(e, [](const ExprNode& leaf) {
             return leaf.kind == ExprKind::Opaque || leaf.kind == ExprKind::Merged ||
                    (leaf.kind == ExprKind::Special && leaf.name.starts_with("ctaid"));
           });
  }

  // Asks this of all that is not a result of the child.
  static bool is_same_for_grid_but_results(const Expr& e) {
    return !any_leaf(e, [](const ExprNode& leaf) {
      const bool is_of_parent = leaf.kind == ExprKind::Opaque || leaf.kind == ExprKind::Merged;
      return (is_of_parent && !LaunchTerms::result_of(leaf)) ||
             (leaf.kind == ExprKind::Special && leaf.name.starts_with("ctaid"));
    });
  }

  static bool are_apart_by_thread(const Access& x, const Access& y) {
    const Key key{LaunchTerms::is_thread_symbol, 1, kLastThread};
    return are_disjoint(x.shape, y.shape, key, key);
  }

  // ---- counters ----

  // The address of an atomic addition of a positive constant, which is one word for all launches, and the
  // constant.
  struct Counter {
    Expr address;
    std::string operation;
    uint64_t step = 0;
  };
  static std::optional<Counter> counter(const Child& child, uint32_t instruction) {
    const auto found = std::ranges::find_if(child.accesses, [&](const Access& a) {
      return a.is->instruction == instruction && a.is->kind == AccessKind::Atomic;
    });
    if (found == child.accesses.end() || !found->is->operation.starts_with("add.") ||
        rounds(found->is->operation))
      return std::nullopt;
    const auto step = found->value.as_constant();
    if (!step || *step == 0 || *step > kLargestStep || !is_same_for_all(found->shape.address))
      return std::nullopt;
    return Counter{found->shape.address, found->is->operation, *step};
  }

  // True if both take their slots from one counter, which hands out each of them once.
  static bool are_apart_by_slots(const Child& first, const Access& x, const Child& second, const Access& y) {
    if (x.counters.size() != 1 || y.counters.size() != 1) return false;
    const auto one = counter(first, x.counters[0]), other = counter(second, y.counters[0]);
    if (!one || !other || !(one->address == other->address) || one->operation != other->operation)
      return false;
    const auto key = [](const Counter& c, uint32_t instruction) {
      return Key{[instruction](const ExprNode& leaf) {
                   return LaunchTerms::result_of(leaf) == std::optional(instruction);
                 },
                 c.step, 0};
    };
    return are_disjoint(x.shape, y.shape, key(*one, x.counters[0]), key(*other, y.counters[0]));
  }

  // ---- conflicts that the program itself leaves open between its blocks ----

  [[nodiscard]] std::optional<OrderVerdict> tolerate(const Child& first, const Access& x, const Child& second,
                                                     const Access& y) const {
    if (!x.memory || !y.memory) return std::nullopt;
    // One block alone has no conflict with others.
    std::optional<std::set<BlockLimit>> limits = limits_of_launching_blocks(parent_, *first.site);
    const auto others = limits_of_launching_blocks(parent_, *second.site);
    if (!limits || !others) return std::nullopt;
    limits->insert(others->begin(), others->end());
    // Nor has one whose children alone come to the access.
    if (block_in(first).decides_over(x.is->instruction) || block_in(second).decides_over(y.is->instruction))
      return std::nullopt;
    if (const auto one = counter(first, x.is->instruction), other = counter(second, y.is->instruction);
        one && other && one->address == other->address && one->operation == other->operation &&
        is_same_for_grid(one->address)) {
      OrderVerdict verdict{Order::Tolerated, "which hands out slots to children of all blocks", {}};
      verdict.conditions.several_blocks = true;
      verdict.conditions.block_limits = *limits;
      return verdict;
    }
    for (const auto& [child, access] : {std::pair(&first, &x), std::pair(&second, &y)}) {
      if (auto conditions = is_input(*child, *access)) {
        conditions->several_blocks = true;
        conditions->block_limits = *limits;
        return OrderVerdict{Order::Tolerated, "at an address that the child loads from its input",
                            *conditions};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] const BlockInChild& block_in(const Child& child) const {
    std::unique_ptr<BlockInChild>& known = block_in_[&child];
    if (!known)
      known =
          std::make_unique<BlockInChild>(*child.facts, child.terms, block_in_launch(parent_, *child.site));
    return *known;
  }

  // True if the block finds a part of the address in a table by its own number: `sums[first[b] + i]`. All of
  // its children find that, and other blocks have places of their own there.
  [[nodiscard]] static bool begins_at_own_place(const Child& child, const Expr& address) {
    return any_leaf(address, [&](const ExprNode& leaf) {
      const auto load = LaunchTerms::result_of(leaf);
      return load && is_one_for_block(child, *load, true);
    });
  }
  // True if the instruction loads the same for all children of a block; with `own`, if other blocks do not.
  [[nodiscard]] static bool is_one_for_block(const Child& child, uint32_t load, bool own) {
    const auto access =
        std::ranges::find_if(child.accesses, [&](const Access& a) { return a.is->instruction == load; });
    if (access == child.accesses.end() || !access->is->reads_only() || !access->shape.address.known())
      return false;
    const Expr& from = access->shape.address;
    const bool differs = any_leaf(from, [&](const ExprNode& leaf) {
      const auto result = LaunchTerms::result_of(leaf);
      return result ? !is_one_for_block(child, *result, false) : LaunchTerms::varies(leaf) != Varies::No;
    });
    if (differs || !own) return !differs;
    return begins_at_own_place(child, from) || !is_same_for_grid_but_results(from);
  }

  // The conditions under which an address is input data: loaded by the child, from memory that is not
  // written.
  [[nodiscard]] std::optional<OrderConditions> is_input(const Child& child, const Access& access) const {
    const AddressSources& sources = access.sources;
    if (sources.unknown || !sources.atomics.empty() || sources.loads.empty() || !written_)
      return std::nullopt;
    // The pointer itself is the host's, not one that is found in memory.
    if (!access.memory || !access.is->address) return std::nullopt;
    if (begins_at_own_place(child, access.shape.address)) return std::nullopt;
    // Blocks that index arrays of their own do not meet, whatever the indices are.
    const auto is_shared = [&](uint32_t load) { return child.terms.is_same_for_grid(load); };
    if (!std::ranges::all_of(sources.parameters, is_shared)) return std::nullopt;
    if (block_in(child).is_in_address(access.is->instruction, *access.is->address)) return std::nullopt;
    OrderConditions out;
    for (const uint32_t load : sources.loads) {
      const auto found =
          std::ranges::find_if(child.accesses, [&](const Access& a) { return a.is->instruction == load; });
      if (found == child.accesses.end()) return std::nullopt;
      const auto conditions = apart(found->memory, *written_);
      if (!conditions) return std::nullopt;
      out.add(*conditions);
    }
    return out;
  }

  static constexpr uint64_t kLargestStep = 1 << 16;

  const FunctionFacts& parent_;
  const KnownExtents block_;
  const MemoryEffects parent_effects_;
  std::vector<std::unique_ptr<Child>> children_;
  std::optional<std::set<HostMemory>> written_;  // nothing where that is not known
  std::vector<Looker> lookers_;
  mutable std::map<std::pair<const Child*, bool>, std::optional<OrderConditions>> unseen_;
  mutable std::map<const Child*, std::unique_ptr<BlockInChild>> block_in_;
};

LaunchOrder::LaunchOrder(const FunctionFacts& parent, std::vector<LaunchedChild> launches,
                         const KnownExtents& block, OtherLaunches others)
    : judge_(std::make_unique<OrderJudge>(parent, std::move(launches), block, others)) {}

LaunchOrder::~LaunchOrder() = default;

OrderVerdict order_in_recursive_group(const FunctionFacts& parent,
                                      const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
                                      const std::vector<GroupLaunch>& launches, const std::set<size_t>& of) {
  const OrderJudge judge(parent, kernels, launches);
  OrderVerdict out;
  for (const size_t a : of) {
    for (const size_t b : of) {
      if (a <= b) out.add(judge.any_pair(a, b));
    }
  }
  return out;
}

const OrderVerdict& LaunchOrder::of_pair(size_t a, size_t b) const {
  const auto key = std::minmax(a, b);
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = judge_->pair(key.first, key.second);
  return known->second;
}

OrderVerdict LaunchOrder::of_one_thread(size_t a, size_t b) const { return judge_->any_pair(a, b); }

std::optional<OrderConditions> LaunchOrder::of_own_reads(size_t a) const { return judge_->own_reads(a); }

OrderVerdict LaunchOrder::of_all() const {
  OrderVerdict out;
  for (size_t a = 0; a < judge_->size(); ++a) {
    for (size_t b = a; b < judge_->size(); ++b) out.add(of_pair(a, b));
  }
  return out;
}

}  // namespace klap::analysis
