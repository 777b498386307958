#include "analysis/executed/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "analysis/executed/calls.h"
#include "analysis/executed/streams.h"
#include "analysis/order/launch_order.h"
#include "analysis/synchronisation/single_thread.h"

namespace klap::analysis {
namespace {

bool is_ordered_atomic(const Effect& effect) {
  if (effect.kind != EffectKind::Atomic && effect.kind != EffectKind::Reduction) return false;
  return std::ranges::any_of(std::array{"acquire", "release", "acq_rel"}, [&](const char* semantics) {
    return effect.what.find(semantics) != std::string::npos;
  });
}

// True for an effect by which a grid may send a message or get one, or of which that is not known.
bool may_pass_messages(const Effect& effect) {
  using enum EffectKind;
  constexpr std::array kKinds = {
      ClusterBarrier, BarrierObject, ClusterAccess, StrongLoad,   StrongStore,         Fence,    AsyncCopy,
      GridDependency, DeviceRuntime, UnknownCall,   IndirectCall, UnlistedInstruction, Assertion};
  return std::ranges::find(kKinds, effect.kind) != kKinds.end() || is_ordered_atomic(effect);
}

// Why the order of a stream with launches of this kernel must be kept, whatever else is in it.
std::optional<std::string> reason_in_child(const FunctionFacts& child) {
  const std::string& name = child.function.name;
  if (!child.sites.empty() || !child.copies.empty()) return fmt::format("{} launches in turn", name);
  for (const Effect& effect : child.calls().closure(child.function).all()) {
    if (may_pass_messages(effect))
      return fmt::format("{} has {} ({})", name, effect.what, child.module.place(effect.token));
  }
  return std::nullopt;
}

bool updates_memory(const FunctionFacts& child) {
  const Effects& effects = child.calls().closure(child.function);
  return effects.has(EffectKind::Atomic) || effects.has(EffectKind::Reduction);
}

class Judge {
 public:
  Judge(const FunctionFacts& kernel, const std::vector<LaunchedChild>& launches, const ExecutedKernel& run)
      : kernel_(kernel), launches_(launches), run_(run) {}

  // The answer for blocks of the kernel of which `block` is known. `without` says which these are. A launch
  // that is alone in its stream costs less there.
  [[nodiscard]] ExecutedOrder order_in(size_t site, const KnownExtents& block, WithoutOrder without) {
    if (is_alone(site, block)) return {WithoutOrder::Never, "it is the only launch in its stream"};
    ExecutedOrder order{without};
    for (size_t other = 0; other < launches_.size(); ++other) {
      if (!may_share_stream(site, other)) continue;
      for (const OrderVerdict& verdict : verdicts(site, other, block)) {
        if (auto why = not_proven(verdict, order.conditions)) return {WithoutOrder::Never, std::move(*why)};
      }
    }
    return order;
  }

  // Why the order is kept in blocks of any shape. Nothing if the block decides.
  [[nodiscard]] std::optional<std::string> why_kept_in_any_block(size_t site) {
    if (!kernel_.copies.empty()) return "the kernel copies memory";
    if (may_use_events(kernel_.module)) return "the module uses events";
    if (kernel_.flow.has_unknown_branch()) return "control flow is not known";
    for (size_t other = 0; other < launches_.size(); ++other) {
      if (!may_share_stream(site, other)) continue;
      const FunctionFacts& child = *launches_[other].child;
      if (auto why = reason_in_child(child)) return why;
      if (run_.group_looks && updates_memory(child))
        return fmt::format("{} updates memory that some kernel may look at meanwhile", child.function.name);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] StreamKind kind(size_t site) const { return stream_kind(*launches_[site].site); }

  // True if launches of both sites may stand in the stream in which the first one's launches stand.
  [[nodiscard]] bool may_share_stream(size_t site, size_t other) const {
    const auto is_of_thread = [](StreamKind kind) {
      return kind == StreamKind::PerThread || kind == StreamKind::Private;
    };
    if (kind(other) == StreamKind::Other) return true;
    return kind(other) == kind(site) || (is_of_thread(kind(site)) && is_of_thread(kind(other)));
  }

  [[nodiscard]] bool is_alone(size_t site, const KnownExtents& block) const {
    for (size_t other = 0; other < launches_.size(); ++other) {
      if (other != site && may_share_stream(site, other)) return false;
    }
    const Site& is = *launches_[site].site;
    return kind(site) == StreamKind::Null && !kernel_.flow.in_loop(kernel_.flow.index_of(is.launch_call)) &&
           is_launched_by_one_thread(kernel_, is, block);
  }

  // The verdicts on launches at both sites: by different threads, and by one thread, as far as there are
  // such.
  [[nodiscard]] std::vector<OrderVerdict> verdicts(size_t site, size_t other, const KnownExtents& block) {
    const LaunchOrder& order = launch_order(block);
    std::vector<OrderVerdict> out;
    if (kind(site) == StreamKind::Null) out.push_back(order.of_pair(site, other));
    const uint32_t a = kernel_.flow.index_of(launches_[site].site->launch_call);
    const uint32_t b = kernel_.flow.index_of(launches_[other].site->launch_call);
    if (kernel_.flow.can_follow(a, b) || kernel_.flow.can_follow(b, a))
      out.push_back(order.of_one_thread(site, other));
    return out;
  }

  // Why the verdict is not enough. Otherwise its conditions are added to those on the host's launch.
  [[nodiscard]] std::optional<std::string> not_proven(const OrderVerdict& verdict,
                                                      OrderConditions& conditions) const {
    if (verdict.order != Order::Proven) return verdict.why;
    if (verdict.conditions.apart.empty()) return std::nullopt;
    const auto of_host =
        run_.in_terms_of_host ? run_.in_terms_of_host(verdict.conditions) : std::optional<OrderConditions>();
    if (!of_host) return "the host may pass pointers to the same memory";
    conditions.add(*of_host);
    return std::nullopt;
  }

  [[nodiscard]] const LaunchOrder& launch_order(const KnownExtents& block) {
    auto& order = orders_[block];
    if (order == nullptr) order = std::make_unique<LaunchOrder>(kernel_, launches_, block);
    return *order;
  }

  const FunctionFacts& kernel_;
  const std::vector<LaunchedChild>& launches_;
  const ExecutedKernel& run_;
  std::map<KnownExtents, std::unique_ptr<LaunchOrder>> orders_;
};

ExecutedOrder order_of(Judge& judge, size_t site, const ExecutedKernel& run) {
  if (auto why = judge.why_kept_in_any_block(site)) return {WithoutOrder::Never, std::move(*why)};
  ExecutedOrder order = judge.order_in(site, run.block, WithoutOrder::Always);
  if (order.may_be_lost() || !run.asks_block) return order;
  const auto [x, y, z] = run.block;
  if (!z) {
    ExecutedOrder in_layer = judge.order_in(site, {x, y, 1}, WithoutOrder::InOneLayer);
    if (in_layer.may_be_lost()) return in_layer;
  }
  const bool may_be_one_row = y.value_or(1) == 1 && z.value_or(1) == 1 && !(y && z);
  if (!may_be_one_row) return order;
  ExecutedOrder in_row = judge.order_in(site, {x, 1, 1}, WithoutOrder::InOneRow);
  return in_row.may_be_lost() ? in_row : order;
}

}  // namespace

bool looks_at_changes(const FunctionFacts& kernel) {
  if (kernel.calls().closure(kernel.function).has(EffectKind::StrongLoad)) return true;
  if (!updates_memory(kernel)) return false;
  const Footprint footprint = footprint_of(kernel, MemoryEffects(kernel));
  return std::ranges::any_of(footprint.accesses, [](const MemoryAccess& access) {
    return access.kind == MemoryAccess::Kind::Atomic && access.returns;
  });
}

std::vector<ExecutedOrder> executed_orders(const FunctionFacts& kernel,
                                           const std::vector<LaunchedChild>& launches,
                                           const ExecutedKernel& run) {
  Judge judge(kernel, launches, run);
  std::vector<ExecutedOrder> orders(kernel.sites.size());
  for (size_t i = 0; i < orders.size(); ++i) {
    const ExecutedStream stream = executed_stream(kernel, kernel.sites[i]);
    if (stream == ExecutedStream::Block || stream == ExecutedStream::Thread)
      orders[i] = order_of(judge, i, run);
  }
  return orders;
}

}  // namespace klap::analysis
