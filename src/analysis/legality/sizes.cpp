#include "analysis/legality/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/launch_shape.h"
#include "analysis/legality/cooperation.h"
#include "analysis/values/values.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;

namespace {

constexpr std::array<uint32_t, 3> kLargestBlock = {1024, 1024, 64};
constexpr uint32_t kMostThreads = 1024;

std::string block_text(const Site& site) {
  return fmt::format("block ({}, {}, {})", site.block[0], site.block[1], site.block[2]);
}

// The largest value that is not refused. Extents are read without a sign, so a negative one is too large.
uint32_t most_of(const Value& value, uint32_t limit) {
  uint64_t most = value.known() ? 1 : limit;
  for (const Expr& choice : value.choices) {
    if (!choice.known()) return limit;
    const Range& range = choice->range;
    const auto positive = static_cast<uint64_t>(std::max<int64_t>(range.signed_most, 0));
    most = std::max(most, std::min(range.most, positive));
  }
  return static_cast<uint32_t>(std::min<uint64_t>(most, limit));
}

// The first effect by which threads of a block or a warp meet; null if there is none. Threads that share
// memory meet as well, unless a block of the consumer runs one block of children at a time (`is_alone`).
const Effect* find_meeting(const Effects& effects, bool is_alone) {
  using enum EffectKind;
  for (const EffectKind kind : {BlockBarrier, PartialBarrier, WarpSync}) {
    if (const Effect* effect = effects.find(kind)) return effect;
  }
  if (is_alone) return nullptr;
  for (const EffectKind kind : {StaticShared, DynamicShared, SharedAccess, BlockScope}) {
    if (const Effect* effect = effects.find(kind)) return effect;
  }
  return nullptr;
}

Rejection shared_rejection(const Site& site, const std::string& more) {
  return {Reason::DynamicSharedMemory,
          fmt::format("the launch passes {} bytes, which is not constant{}", site.shared, more)};
}

}  // namespace

bool LaunchSizes::blocks_differ() const {
  return std::ranges::any_of(block, [](const auto& extent) { return !extent; });
}

LaunchSizes launch_sizes(const FunctionFacts& parent, const Site& site, const Module& child_module,
                         const Function& child) {
  LaunchSizes sizes;
  const SiteValues values = site_values(parent.values(), site);
  uint64_t most = 1;
  for (size_t axis = 0; axis < sizes.block.size(); ++axis) {
    const Value& value = values.block.at(axis).value;
    auto constant = parent.data.constant(site.block.at(axis));
    if (!constant) constant = value.constant();
    // A constant that CUDA refuses is not taken over.
    if (constant && *constant >= 1 && *constant <= kLargestBlock.at(axis))
      sizes.block.at(axis) = static_cast<uint32_t>(*constant);
    most *= sizes.block.at(axis).value_or(most_of(value, kLargestBlock.at(axis)));
  }
  most = std::min<uint64_t>(most, kMostThreads);
  sizes.most_threads = static_cast<uint32_t>(std::min(most, most_threads_allowed(child_module, child)));
  sizes.shared_bytes = constant_shared_bytes(site, parent);
  if (sizes.shared_bytes) {
    sizes.most_shared_bytes = sizes.requested_shared_bytes = *sizes.shared_bytes;
  } else {  // only then are the child's variables looked for
    sizes.most_shared_bytes = shared_room(child_module, child);
    sizes.requested_shared_bytes = most_of(values.shared.value, default_shared_limit(child_module, child));
  }
  return sizes;
}

std::optional<LaunchBlock> launch_block(const FunctionFacts& parent, const Site& site) {
  if (const auto block = constant_block(site, parent))
    return LaunchBlock{(*block)[0], (*block)[1], (*block)[2]};
  constexpr std::array kOwn = {"ntid.x", "ntid.y", "ntid.z"};
  const SiteValues values = site_values(parent.values(), site);
  LaunchBlock block;
  for (size_t axis = 0; axis < block.size(); ++axis) {
    const Value& value = values.block.at(axis).value;
    if (const auto constant = value.constant()) {
      block.at(axis) = static_cast<uint32_t>(*constant);
    } else if (!(value.exact() == Expr::special(kOwn.at(axis)))) {
      return std::nullopt;
    }
  }
  return block;
}

std::optional<Rejection> check_unknown_sizes(const FunctionFacts& parent, const Site& site) {
  if (!constant_shared_bytes(site, parent)) return shared_rejection(site, "");
  if (launch_block(parent, site)) return std::nullopt;
  return Rejection{Reason::BlockNotConstant,
                   block_text(site) +
                       ", and children launch kernels too: then each block must be constant or "
                       "blockDim of the kernel that launches"};
}

std::optional<Rejection> check_differing_sizes(const FunctionFacts& parent, const Site& site) {
  if (!constant_shared_bytes(site, parent)) return shared_rejection(site, "");
  if (!constant_block(site, parent)) return Rejection{Reason::BlockNotConstant, block_text(site)};
  return std::nullopt;
}

// A launch may ask for more than the code lets it have, and the program may have allowed that. Such a launch
// is immediate, and must not come before what the same thread has recorded elsewhere.
std::optional<Rejection> check_launch_sizes(const FunctionFacts& parent, const Site& site,
                                            const Aggregation& aggregation) {
  // The executor takes sizes from each launch, whichever of the two calls names them. What CUDA would refuse
  // stays the program's own call.
  if (aggregation.is_executed) return std::nullopt;
  // The program's own calls can stay only if the first call knows everything. That must hold at every site if
  // it holds at one.
  const bool described = std::ranges::all_of(parent.sites, [](const Site& s) {
    return s.understood() && s.idiom->form == LaunchForm::Described && !s.idiom->is_version_1();
  });
  if (aggregation.uses_work_queue() || !described) {
    auto rejection = check_differing_sizes(parent, site);
    if (rejection && rejection->reason == Reason::BlockNotConstant && aggregation.has_loop_queue)
      rejection->detail += ", and the kernel launches in a loop: then each block must be constant";
    return rejection;
  }
  if (constant_shared_bytes(site, parent)) return std::nullopt;
  if (aggregation.launcher == Launcher::Host) return shared_rejection(site, "");
  if (parent.sites.size() > 1) return shared_rejection(site, ", and the kernel launches elsewhere too");
  return std::nullopt;
}

std::optional<Rejection> check_child_sizes(const Module& m, const Function& child, const CallGraph& graph,
                                           const Site& site, const Aggregation& aggregation) {
  if (aggregation.is_immediate()) return std::nullopt;
  const auto reject = [&](const std::string& what) {
    return Rejection{Reason::BlockNotConstant, fmt::format("{}, and {}", block_text(site), what)};
  };
  if (const auto place = required_block(m, child))
    return reject(fmt::format("the child requires blocks of one size ({})", *place));
  if (aggregation.launcher == Launcher::Device) return std::nullopt;
  const Effect* meeting = find_meeting(graph.closure(child), aggregation.is_executed);
  if (meeting == nullptr) return std::nullopt;
  if (aggregation.is_executed && meeting->kind == EffectKind::BlockBarrier) {
    const auto rejection = check_counted_barriers(m, child, graph, false);
    return rejection ? std::optional(reject(rejection->detail)) : std::nullopt;
  }
  return reject(fmt::format("the child has {} ({})", meeting->what, m.place(meeting->token)));
}

}  // namespace klap::analysis
