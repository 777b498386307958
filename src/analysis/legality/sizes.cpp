#include "analysis/legality/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/launch_shape.h"
#include "analysis/legality/cooperation.h"
#include "analysis/values/values.h"
#include "analysis/values/warp_rows.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;

namespace {

constexpr std::array<uint32_t, 3> kLargestBlock = {1024, 1024, 64};
constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kWarp = 32;
constexpr std::array kOwnExtents = {"ntid.x", "ntid.y", "ntid.z"};

std::string block_text(const Site& site) {
  return fmt::format("block ({}, {}, {})", site.block[0], site.block[1], site.block[2]);
}

// The largest value that is not refused. Extents are read without a sign, so a negative one is too large.
uint32_t most_of(const Expr& value, uint32_t limit) {
  if (!value.known()) return limit;
  const Range& range = value->range;
  const auto positive = static_cast<uint64_t>(std::max<int64_t>(range.signed_most, 1));
  return static_cast<uint32_t>(std::min<uint64_t>({range.most, positive, limit}));
}
uint32_t most_of(const Value& value, uint32_t limit) {
  uint32_t most = value.known() ? 1 : limit;
  for (const Expr& choice : value.choices) most = std::max(most, most_of(choice, limit));
  return most;
}

bool is_at_most(const Expr& value, const Expr& other);

// True if a value that is divided so is never more than `other`. Compilers divide by 3 as by 2^33, after a
// multiplication by 2^33 / 3.
bool is_quotient_at_most(const Expr& dividend, const Expr& divisor, const Expr& other) {
  constexpr uint32_t kBitsOfExtents = 11;  // so the product does not overflow
  const auto by = divisor.as_constant();
  const std::vector<Term> terms = terms_of(dividend);
  if (!by || dividend->bits < 32 || terms.size() != 1 || terms.front().factors.size() != 1) return false;
  const uint64_t factor = terms.front().coefficient;
  return factor <= *by && factor < uint64_t{1} << (dividend->bits - kBitsOfExtents - 1) &&
         *by < uint64_t{1} << (dividend->bits - 1) && is_at_most(terms.front().factors.front(), other);
}

// True if the value, read without a sign, is never more than `other`, an extent of a block.
bool is_at_most(const Expr& value, const Expr& other) {
  if (!value.known()) return false;
  if (value == other) return true;
  const auto is_so = [&](const Expr& operand) { return is_at_most(operand, other); };
  const std::vector<Expr>& operands = value->operands;
  switch (value->kind) {
    case ExprKind::Divide:
    case ExprKind::DivideSigned:
      return is_quotient_at_most(operands[0], operands[1], other);
    case ExprKind::ZeroExtend:
    case ExprKind::Truncate:
    case ExprKind::ShiftRight:
      return is_so(operands[0]);
    case ExprKind::Minimum:
    case ExprKind::And:
      return std::ranges::any_of(operands, is_so);
    case ExprKind::MinimumSigned:
      return std::ranges::any_of(operands, is_so) && std::ranges::all_of(operands, [](const Expr& e) {
               return e.known() && e->range.never_negative();
             });
    default:
      return false;
  }
}

// True if that holds, or CUDA refuses the value: what is negative is too large.
bool is_at_most_or_refused(const Expr& value, const Expr& other) {
  if (is_at_most(value, other)) return true;
  return value.known() && value->kind == ExprKind::MinimumSigned &&
         std::ranges::any_of(value->operands, [&](const Expr& e) { return is_at_most(e, other); });
}

ExtentBound bound_of(const Value& value, const Expr& own, uint32_t limit) {
  ExtentBound bound{value.known() ? 1 : limit, false};
  for (const Expr& choice : value.choices) {
    if (is_at_most_or_refused(choice, own)) {
      bound.or_other = true;
    } else {
      bound.constant = std::max(bound.constant, most_of(choice, limit));
    }
  }
  return bound;
}

bool has_whole_warps(const Value& value) {
  return value.known() && std::ranges::all_of(value.choices, is_whole_warps);
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
  uint32_t known = 1;  // a multiple of 32 times any extent is one, too
  for (size_t axis = 0; axis < sizes.block.size(); ++axis) {
    const Value& value = values.block.at(axis).value;
    auto constant = parent.data.constant(site.block.at(axis));
    if (!constant) constant = value.constant();
    // A constant that CUDA refuses is not taken over.
    if (constant && *constant >= 1 && *constant <= kLargestBlock.at(axis))
      sizes.block.at(axis) = static_cast<uint32_t>(*constant);
    sizes.bound.at(axis) = sizes.block.at(axis)
                               ? ExtentBound{*sizes.block.at(axis), false}
                               : bound_of(value, Expr::special(kOwnExtents.at(axis)), kLargestBlock.at(axis));
    known *= sizes.block.at(axis).value_or(has_whole_warps(value) ? kWarp : 1);
    most *= sizes.block.at(axis).value_or(most_of(value, kLargestBlock.at(axis)));
  }
  sizes.full_warps = known % kWarp == 0;
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
  const SiteValues values = site_values(parent.values(), site);
  LaunchBlock block;
  for (size_t axis = 0; axis < block.size(); ++axis) {
    const Value& value = values.block.at(axis).value;
    if (const auto constant = value.constant()) {
      block.at(axis) = static_cast<uint32_t>(*constant);
    } else if (!(value.exact() == Expr::special(kOwnExtents.at(axis)))) {
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
                                           const FunctionFacts& parent, const Site& site,
                                           const Aggregation& aggregation) {
  if (aggregation.is_immediate()) return std::nullopt;
  const auto reject = [&](const std::string& what) {
    return Rejection{Reason::BlockNotConstant, fmt::format("{}, and {}", block_text(site), what)};
  };
  if (const auto place = required_block(m, child))
    return reject(fmt::format("the child requires blocks of one size ({})", *place));
  if (aggregation.launcher == Launcher::Device) return std::nullopt;
  const Effect* meeting = find_meeting(graph.closure(child), aggregation.is_executed);
  if (meeting == nullptr) return std::nullopt;
  const bool is_in_warps = meeting->kind == EffectKind::WarpSync;
  if (aggregation.is_executed && (is_in_warps || meeting->kind == EffectKind::BlockBarrier)) {
    const bool are_full = launch_sizes(parent, site, m, child).full_warps;
    const auto rejection = check_counted_barriers(m, child, graph, are_full);
    return rejection ? std::optional(reject(rejection->detail)) : std::nullopt;
  }
  return reject(fmt::format("the child has {} ({})", meeting->what, m.place(meeting->token)));
}

}  // namespace klap::analysis
