#include "analysis/legality/recursion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/effects/coherence.h"
#include "analysis/executed/calls.h"
#include "analysis/executed/streams.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/facts/stream_order.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/consumer_block.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/order/passed_pointers.h"
#include "analysis/synchronisation/single_thread.h"
#include "support/error.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;

using Found = std::optional<Rejection>;

Rejection reject(std::string detail) { return {Reason::ChildLaunches, std::move(detail)}; }

// A launch of a kernel of the recursive group, by the parent or by another one.
struct Edge {
  const FunctionFacts* from = nullptr;
  const Site* site = nullptr;
  size_t to = 0;        // into the list of kernels
  LaunchBlock block{};  // as in GroupKernel; if the parent is of the group, where the host launches it
  BlockBound bound{};   // as in LaunchSizes; only for the executor
};

// The bound of a launch by a block that is itself bounded.
BlockBound composed(const BlockBound& launch, const BlockBound& from) {
  BlockBound bound = launch;
  for (size_t axis = 0; axis < bound.size(); ++axis) {
    if (!launch.at(axis).or_other) continue;
    bound.at(axis).constant = std::max(bound.at(axis).constant, from.at(axis).constant);
    bound.at(axis).or_other = from.at(axis).or_other;
  }
  return bound;
}

// Extends a bound so that it holds for another one's blocks too; true if that changes it.
bool extend(BlockBound& bound, const BlockBound& by) {
  const BlockBound before = bound;
  for (size_t axis = 0; axis < bound.size(); ++axis) {
    bound.at(axis).constant = std::max(bound.at(axis).constant, by.at(axis).constant);
    bound.at(axis).or_other = bound.at(axis).or_other || by.at(axis).or_other;
  }
  return bound != before;
}

// The block of a launch by a block that is itself described so.
LaunchBlock composed(const LaunchBlock& launch, const LaunchBlock& from) {
  LaunchBlock block = launch;
  for (size_t axis = 0; axis < block.size(); ++axis) {
    if (!block.at(axis)) block.at(axis) = from.at(axis);
  }
  return block;
}

std::vector<GroupKernel>::const_iterator find_in(const std::vector<GroupKernel>& kernels,
                                                 const FunctionFacts& kernel) {
  return std::ranges::find(kernels, &kernel, [](const GroupKernel& k) { return k.facts.get(); });
}

class RecursiveGroupJudge {
 public:
  RecursiveGroupJudge(const std::shared_ptr<const FunctionFacts>& parent, const Module& module,
                      const Aggregation& aggregation, bool conditions)
      : parent_(parent), module_(module), aggregation_(aggregation), conditions_(conditions) {}

  RecursiveGroupVerdict run() {
    for (const auto check : {&RecursiveGroupJudge::gather, &RecursiveGroupJudge::check_blocks,
                             &RecursiveGroupJudge::check_children, &RecursiveGroupJudge::check_forms,
                             &RecursiveGroupJudge::check_callees, &RecursiveGroupJudge::check_order,
                             &RecursiveGroupJudge::check_barriers, &RecursiveGroupJudge::check_memory,
                             &RecursiveGroupJudge::check_updates}) {
      if (Found rejection = (this->*check)()) return {nullptr, std::move(rejection)};
    }
    bound_blocks();
    std::vector<ExecutedOrder> parent_orders = find_executed_orders();
    std::ranges::sort(kernels_, {}, [](const GroupKernel& k) { return k.facts->function.tokens.first; });
    return {std::make_shared<const RecursiveGroup>(
                RecursiveGroup{std::move(kernels_), std::move(order_), std::move(parent_orders)}),
            std::nullopt};
  }

 private:
  // ---- the recursive group ----

  Found gather() {
    if (Found rejection = gather_from(parent_, {})) return rejection;
    for (size_t next = 0; next < kernels_.size(); ++next) {
      const std::shared_ptr<const FunctionFacts> facts = kernels_[next].facts;
      const LaunchBlock block = kernels_[next].block;
      if (Found rejection = check_launcher(*facts, block)) return rejection;
      if (facts == parent_ && aggregation_.is_executed) continue;
      if (Found rejection = facts == parent_ ? gather_again(block) : gather_from(facts, block))
        return rejection;
    }
    return std::nullopt;
  }

  // The rejection to the launches that a kernel of the group makes, in blocks of that size.
  [[nodiscard]] Found check_launcher(const FunctionFacts& kernel, const LaunchBlock& block) const {
    Aggregation aggregation = aggregation_;
    aggregation.block = aggregation_.is_executed ? KnownExtents{} : composed(block, aggregation_.block);
    // The parent has passed the checks for its launch by the host.
    if (&kernel == parent_.get() && aggregation.block == aggregation_.block) return std::nullopt;
    for (const Site& site : kernel.sites) {
      if (const Found rejection = check_parent(kernel, site, aggregation))
        return about(kernel, site, *rejection);
    }
    if (aggregation.is_executed && kernel.sites.empty()) {
      if (auto rejection = check_executed_calls(kernel)) return about(kernel, std::move(*rejection));
    }
    return std::nullopt;
  }

  // Gathers the launches that the parent makes if it is itself launched in such a block.
  Found gather_again(const LaunchBlock& block) {
    for (const Edge& edge : edges_) {
      if (edge.from != parent_.get()) continue;
      if (composed(launch_block(*parent_, *edge.site).value(), block) != edge.block)
        return check_block_of(edge);
    }
    return std::nullopt;
  }

  Found gather_from(const std::shared_ptr<const FunctionFacts>& from, const LaunchBlock& block) {
    if (aggregation_.is_executed) {
      if (Found rejection = check_calls_into_streams(*from)) return about(*from, std::move(*rejection));
    }
    for (const Site& site : from->sites) {
      const Function* to = module_.find_function(site.callee);
      if (to == nullptr || !to->is_definition)
        return reject(launch_text(*from, site) + ", which is not defined in its unit");
      if (aggregation_.is_executed) {
        if (Found rejection = gather_executed(from, site, *to)) return rejection;
        continue;
      }
      const auto known =
          std::ranges::find(kernels_, to, [](const GroupKernel& k) { return &k.facts->function; });
      if (const Found rejection = check_unknown_sizes(*from, site)) return about(*from, site, *rejection);
      const LaunchBlock launched = composed(launch_block(*from, site).value(), block);
      edges_.push_back({from.get(), &site, static_cast<size_t>(known - kernels_.begin()), launched});
      if (known != kernels_.end()) continue;
      const auto facts =
          to == &parent_->function ? parent_ : std::make_shared<const FunctionFacts>(module_, *to);
      kernels_.push_back(
          {facts, launched, constant_shared_bytes(site, *from).value(), sync_scope(module_, *to)});
    }
    return std::nullopt;
  }

  // For the executor, which takes blocks from the launches: an extent counts as known if all launches agree.
  // Its own blocks have the most shared memory that a launch asks for. The surplus is not seen, since code
  // that reads how much its block has is not run by it.
  Found gather_executed(const std::shared_ptr<const FunctionFacts>& from, const Site& site,
                        const Function& to) {
    if (const Found rejection = check_executed_stream(*from, site)) return about(*from, site, *rejection);
    const LaunchSizes sizes = launch_sizes(*from, site, module_, to);
    auto known = std::ranges::find(kernels_, &to, [](const GroupKernel& k) { return &k.facts->function; });
    edges_.push_back(
        {from.get(), &site, static_cast<size_t>(known - kernels_.begin()), sizes.block, sizes.bound});
    if (known == kernels_.end()) {
      const auto facts =
          &to == &parent_->function ? parent_ : std::make_shared<const FunctionFacts>(module_, to);
      kernels_.push_back({facts, sizes.block, sizes.requested_shared_bytes, sync_scope(module_, to),
                          sizes.most_threads, sizes.shared_differs()});
      return std::nullopt;
    }
    known->shared_bytes = std::max(known->shared_bytes, sizes.requested_shared_bytes);
    known->shared_differs = known->shared_differs || sizes.shared_differs();
    known->most_threads = std::max(known->most_threads, sizes.most_threads);
    for (size_t axis = 0; axis < sizes.block.size(); ++axis) {
      if (known->block.at(axis) != sizes.block.at(axis)) known->block.at(axis).reset();
    }
    return std::nullopt;
  }

  // Finds how large blocks can be. What holds for each launching block holds for what it launches. So it
  // holds for all, in the order in which they are launched.
  void bound_blocks() {
    if (!aggregation_.is_executed) return;  // then edges have no bounds
    constexpr ExtentBound kHosts{1, true};
    for (bool more = true; more;) {
      more = false;
      for (const Edge& edge : edges_) {
        BlockBound& bound = kernels_[edge.to].bound;
        if (edge.from == parent_.get()) more |= extend(bound, composed(edge.bound, {kHosts, kHosts, kHosts}));
        const size_t from = number_of(edge.from);
        if (from != GroupLaunch::kHost) more |= extend(bound, composed(edge.bound, kernels_[from].bound));
      }
    }
  }

  // "launches itself (line 12:2)", of the one kernel that the parent launches; others are named.
  [[nodiscard]] std::string launch_text(const FunctionFacts& from, const Site& site) const {
    const std::string& name = from.function.name;
    const bool is_child =
        std::ranges::all_of(parent_->sites, [&](const Site& s) { return s.callee == name; });
    return fmt::format("{}launches {} ({})", is_child ? "" : name + " ",
                       site.callee == name   ? "itself"
                       : site.callee.empty() ? "a kernel"
                                             : site.callee,
                       ptx::place(site.position));
  }

  // Words a rejection to a launch. For the parent's own launch, which the remark is about, it stays as it
  // is.
  [[nodiscard]] Rejection about(const FunctionFacts& from, const Site& site,
                                const Rejection& rejection) const {
    if (&from == parent_.get()) return rejection;
    return reject(
        fmt::format("{}: {}: {}", launch_text(from, site), to_string(rejection.reason), rejection.detail));
  }

  // Words a rejection to a kernel of the group.
  [[nodiscard]] Rejection about(const FunctionFacts& kernel, Rejection rejection) const {
    const std::string& name = kernel.function.name;
    const bool is_child =
        std::ranges::all_of(parent_->sites, [&](const Site& s) { return s.callee == name; });
    if (!is_child)
      rejection.detail = fmt::format("in {}, which the same consumer would run: {}", name, rejection.detail);
    return rejection;
  }

  // The known extents of a kernel's blocks, wherever it runs.
  [[nodiscard]] KnownExtents block_of(const FunctionFacts& kernel) const {
    if (aggregation_.is_executed) return {};
    if (&kernel == parent_.get()) return known_block(kernels_, kernel, aggregation_.block);
    return composed(find_in(kernels_, kernel)->block, aggregation_.block);
  }

  // ---- conditions for each launch ----

  Found check_blocks() {
    for (const Edge& edge : edges_) {
      const GroupKernel& to = kernels_[edge.to];
      if (!aggregation_.is_executed &&
          (edge.block != to.block || constant_shared_bytes(*edge.site, *edge.from) != to.shared_bytes))
        return check_block_of(edge);
      const auto required =
          to.has_constant_block() ? std::nullopt : required_block(module_, to.facts->function);
      if (required) {
        return reject(fmt::format("{} with its own block, and it requires blocks of one size ({})",
                                  launch_text(*edge.from, *edge.site), *required));
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Rejection check_block_of(const Edge& edge) const {
    return reject(launch_text(*edge.from, *edge.site) + " with another block or other shared memory");
  }

  Found check_children() {
    for (const Edge& edge : edges_) {
      const FunctionFacts& to = *kernels_[edge.to].facts;
      Aggregation aggregation = aggregation_;
      // Whatever else it asks of the device runtime stands against it. Before the executor runs it, all its
      // calls have been checked.
      aggregation.is_recursive = !to.sites.empty() || aggregation_.is_executed;
      aggregation.block = block_of(*edge.from);
      std::optional<std::array<uint32_t, 3>> block = kernels_[edge.to].judged_block();
      if (aggregation_.is_executed && !kernels_[edge.to].has_constant_block()) block.reset();
      if (Found rejection = check_child(module_, to.function, *edge.from, *edge.site, aggregation, block))
        return about(to, std::move(*rejection));
    }
    return std::nullopt;
  }

  Found check_forms() {
    for (const Edge& edge : edges_) {
      if (stream_kind(*edge.site) == StreamKind::Tail && !aggregation_.is_executed) {
        return reject(fmt::format("{} into the tail-launch stream, behind all else",
                                  launch_text(*edge.from, *edge.site)));
      }
      if (edge.site->idiom->form == LaunchForm::Documented && !aggregation_.is_executed)
        return reject(fmt::format("{} and asks for a buffer before it knows the grid",
                                  launch_text(*edge.from, *edge.site)));
    }
    return std::nullopt;
  }

  Found check_callees() {
    for (const GroupKernel& kernel : kernels_) {
      const auto load = noncoherent_load_below(module_, kernel.facts->function);
      if (!load) continue;
      return about(*kernel.facts,
                   reject(fmt::format("is run beside what launches it, and {}, called by it, reads past the "
                                      "coherent caches ({})",
                                      load->function->name, module_.place(load->token))));
    }
    return std::nullopt;
  }

  // ---- order ----

  // A thread's launches into one stream run one after another, each with all that it leads to. So only one
  // site for each stream may lie on any way of the thread.
  Found check_order() {
    if (aggregation_.is_executed) return std::nullopt;
    if (Found rejection = check_order_in(*parent_)) return rejection;
    for (const GroupKernel& kernel : kernels_) {
      if (kernel.facts == parent_) continue;
      if (Found rejection = check_order_in(*kernel.facts)) return rejection;
    }
    return std::nullopt;
  }

  [[nodiscard]] Found check_order_in(const FunctionFacts& kernel) const {
    for (const Site& a : kernel.sites) {
      for (const Site& b : kernel.sites) {
        if (&a == &b) continue;
        if (may_be_ordered_within_thread(kernel, a, b)) {
          return about(kernel, b,
                       {Reason::SeveralSites,
                        fmt::format("a thread that launched at {} may launch again at {}, after all that the "
                                    "first launch leads to; if they may run side by side, launch them into "
                                    "cudaStreamFireAndForget",
                                    ptx::place(a.position), ptx::place(b.position))});
        }
      }
    }
    return std::nullopt;
  }

  // Launches of several threads of a block into its NULL stream run one after another, with all that they
  // lead to. This consumer runs them side by side. So nothing of it may conflict.
  Found check_updates() {
    if (aggregation_.ordering == Ordering::Relaxed || aggregation_.is_executed) return std::nullopt;
    std::set<size_t> ordered;
    for (const Edge& edge : edges_) {
      if (stream_kind(*edge.site) == StreamKind::Null && !is_alone_in_block(edge)) ordered.insert(edge.to);
    }
    for (bool more = true; more;) {
      more = false;
      for (const Edge& edge : edges_) {
        if (ordered.contains(number_of(edge.from)) && ordered.insert(edge.to).second) more = true;
      }
    }
    if (ordered.empty()) return std::nullopt;
    std::vector<std::shared_ptr<const FunctionFacts>> kernels;
    for (const GroupKernel& kernel : kernels_) kernels.push_back(kernel.facts);
    OrderVerdict verdict = order_in_recursive_group(*parent_, kernels, group_launches(), ordered);
    if (verdict.order == Order::Kept) return Rejection{Reason::OrderKept, verdict.why};
    order_ = std::move(verdict);
    return std::nullopt;
  }

  // Finds which launches the executor may run without their order, kernel by kernel. Returns the answers for
  // the parent's launch by the host. The launches that a parent of the group makes in turn have answers of
  // their own, since it has other blocks there.
  std::vector<ExecutedOrder> find_executed_orders() {
    if (!aggregation_.is_executed) return {};
    const bool looks = std::ranges::any_of(
        kernels_, [](const GroupKernel& kernel) { return looks_at_changes(*kernel.facts); });
    std::vector<std::shared_ptr<const FunctionFacts>> facts;
    for (const GroupKernel& kernel : kernels_) facts.push_back(kernel.facts);
    std::optional<PassedPointers> pointers;
    if (conditions_) pointers.emplace(*parent_, facts, group_launches());
    ExecutedKernel run{{}, false, looks};
    for (size_t i = 0; i < kernels_.size(); ++i) {
      run.block = kernels_[i].block;
      if (pointers)
        run.in_terms_of_host = [&, i](const auto& of) { return pointers->in_terms_of_host(i, of); };
      kernels_[i].orders = executed_orders(*facts[i], launched_by(*facts[i]), run);
    }
    run.block = aggregation_.block;
    run.asks_block = true;
    if (pointers) run.in_terms_of_host = [](const auto& of) { return std::optional(of); };
    return executed_orders(*parent_, launched_by(*parent_), run);
  }

  // The children of the kernel's sites, in the order of the sites.
  [[nodiscard]] std::vector<LaunchedChild> launched_by(const FunctionFacts& kernel) const {
    std::vector<LaunchedChild> launches;
    for (const Edge& edge : edges_) {
      if (edge.from == &kernel) launches.push_back({edge.site, kernels_[edge.to].facts});
    }
    return launches;
  }

  // True if no other thread of a block launches into its NULL stream.
  [[nodiscard]] bool is_alone_in_block(const Edge& edge) const {
    const KnownExtents block = block_of(*edge.from);
    const auto is_null = [](const Site& site) { return stream_kind(site) == StreamKind::Null; };
    if (std::ranges::count_if(edge.from->sites, is_null) == 1)
      return is_launched_by_one_thread(*edge.from, *edge.site, block);
    return std::ranges::all_of(edge.from->sites, [&](const Site& site) {
      return !is_null(site) || is_launched_by_first_thread(*edge.from, site, block);
    });
  }

  // The kernel's place in the list; for a parent that is not among them, the host's launch.
  [[nodiscard]] size_t number_of(const FunctionFacts* facts) const {
    const auto found = std::ranges::find(kernels_, facts, [](const GroupKernel& k) { return k.facts.get(); });
    return found == kernels_.end() ? GroupLaunch::kHost : static_cast<size_t>(found - kernels_.begin());
  }

  // A parent that belongs to the group is launched by the host as well.
  [[nodiscard]] std::vector<GroupLaunch> group_launches() const {
    std::vector<GroupLaunch> out;
    for (const Edge& edge : edges_) {
      if (edge.from == parent_.get()) out.push_back({GroupLaunch::kHost, edge.site, edge.to});
      if (const size_t from = number_of(edge.from); from != GroupLaunch::kHost)
        out.push_back({from, edge.site, edge.to});
    }
    return out;
  }

  // ---- the consumer's block ----

  [[nodiscard]] std::vector<RunKernel> run_kernels() const {
    std::vector<RunKernel> out;
    for (const GroupKernel& kernel : kernels_) {
      const auto [x, y, z] = kernel.judged_block();
      const bool may_be_any = aggregation_.is_executed && !kernel.has_constant_block();
      out.push_back(
          {&kernel.facts->function, may_be_any ? kernel.most_threads : x * y * z, kernel.shared_bytes});
    }
    return out;
  }

  // If some blocks are not known, the largest is not known either. It is then checked when the parent is
  // launched.
  Found check_barriers() {
    if (!aggregation_.is_executed && !std::ranges::all_of(kernels_, &GroupKernel::has_constant_block))
      return std::nullopt;
    auto found = check_smaller_block(module_, run_kernels(), aggregation_.is_executed);
    if (!found) return std::nullopt;
    return about(*kernels_[found->first].facts, std::move(found->second));
  }

  Found check_memory() { return check_memory_of_all(module_, run_kernels(), aggregation_.is_executed); }

  const std::shared_ptr<const FunctionFacts>& parent_;
  const Module& module_;
  const Aggregation aggregation_;
  const bool conditions_;
  std::vector<GroupKernel> kernels_;
  std::vector<Edge> edges_;  // the parent's first
  OrderVerdict order_;
};

}  // namespace

KnownExtents known_block(const std::vector<GroupKernel>& kernels, const FunctionFacts& parent,
                         const KnownExtents& by_host) {
  const auto known = find_in(kernels, parent);
  if (known == kernels.end()) return by_host;
  KnownExtents block = composed(known->block, by_host);
  for (size_t axis = 0; axis < block.size(); ++axis) {
    if (block.at(axis) != by_host.at(axis)) block.at(axis).reset();
  }
  return block;
}

bool GroupKernel::has_constant_block() const {
  return std::ranges::all_of(block, [](const auto& extent) { return extent.has_value(); });
}

std::array<uint32_t, 3> GroupKernel::judged_block() const {
  constexpr uint32_t kWarp = 32;
  if (has_constant_block()) return {*block[0], *block[1], *block[2]};
  // Where a block is one row, full warps are full rows.
  if (block[1] == 1U && block[2] == 1U) return {kWarp, 1, 1};
  return {1, kWarp, 1};
}

uint32_t RecursiveGroup::number_of(const std::string& kernel) const {
  const auto found =
      std::ranges::find(kernels, kernel, [](const GroupKernel& k) { return k.facts->function.name; });
  if (found == kernels.end()) throw Error(ErrorCode::Internal, "not in this recursive group").kernel(kernel);
  return static_cast<uint32_t>(found - kernels.begin());
}

std::vector<uint32_t> RecursiveGroup::targets_of(const FunctionFacts& parent) const {
  std::vector<uint32_t> targets;
  for (const Site& site : parent.sites) targets.push_back(number_of(site.callee));
  return targets;
}

OrderConditions RecursiveGroup::executed_conditions() const {
  OrderConditions conditions;
  for (const ExecutedOrder& launch : parent_orders) conditions.add(launch.conditions);
  for (const GroupKernel& kernel : kernels) {
    for (const ExecutedOrder& launch : kernel.orders) conditions.add(launch.conditions);
  }
  return conditions;
}

RecursiveGroupVerdict judge_recursive_group(const std::shared_ptr<const FunctionFacts>& parent,
                                            const Module& module, const Aggregation& aggregation,
                                            bool conditions) {
  return RecursiveGroupJudge(parent, module, aggregation, conditions).run();
}

}  // namespace klap::analysis
