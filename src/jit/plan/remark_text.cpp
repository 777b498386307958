#include "jit/plan/remark_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "analysis/facts/launch_shape.h"
#include "analysis/legality/chaining.h"
#include "analysis/order/single_thread.h"
#include "jit/planned/child_facts.h"
#include "transform/aggregate/warp.h"

namespace klap::jit {
namespace {

using analysis::Objection;
using analysis::Site;
using analysis::StreamKind;
using analysis::Way;

// "NULL stream"; all of them where the stream depends on a condition.
std::string stream_text(const Site& site) {
  if (site.streams.size() != 1) return analysis::print(site.streams);
  switch (analysis::stream_kind(site)) {
    case StreamKind::Null:
      return "NULL stream";
    case StreamKind::PerThread:
      return "per-thread stream";
    case StreamKind::FireAndForget:
      return "fire-and-forget stream";
    case StreamKind::Own:
      return "private stream";
    case StreamKind::Tail:
      return "tail-launch stream";
    case StreamKind::Other:
      break;
  }
  return "other stream";
}

std::string_view together_text(analysis::Together together) {
  switch (together) {
    case analysis::Together::Threads:
      return "";
    case analysis::Together::Warps:
      return " in full warps";
    case analysis::Together::Blocks:
      return " with a barrier after each";
  }
  return "";
}

// Whether threads of the site's child may exit before its barriers.
analysis::MayLeave who_may_leave(const PlannedSite& planned) {
  if (!planned.way.chains) return planned.shape.may_leave;
  const auto site = static_cast<size_t>(planned.site - planned.parent->sites.data());
  return planned.shape.bodies.at(planned.chained->targets.at(site)).may_leave;
}

std::string_view leaving_text(analysis::MayLeave may_leave) {
  return may_leave == analysis::MayLeave::Warps ? ", warps may exit before barriers" : "";
}

// The launches that share a queue because some of them stand in a loop.
std::string queue_text(const PlannedSite& planned) {
  const size_t sites = planned.parent->sites.size(), kernels = planned.chained->kernels.size();
  if (sites == 1) return "in a loop";
  if (kernels == 1) return fmt::format("one queue for {} launches in and beside a loop", sites);
  return fmt::format("one queue for {} launches in and beside a loop, of {} kernels or blocks", sites,
                     kernels);
}

// The thread that launches the consumer, for launcher device.
std::string launcher_text(const analysis::Way& way) {
  switch (way.group_blocks) {
    case 0:
      return "launched by the parent's last thread";
    case 1:
      return "launched by the last thread of each block";
    default:
      return fmt::format("launched by the last thread of each {} blocks", way.group_blocks);
  }
}

// The way in which the consumer runs the children.
std::string run_text(const PlannedSite& planned) {
  const std::string_view leaving = leaving_text(who_may_leave(planned));
  if (planned.way.feeds) {
    const size_t kernels = planned.family->kernels.size();
    const std::string who = kernels == 1 ? "launches itself, run by a persistent consumer"
                                         : fmt::format("run by a persistent consumer of {} kernels", kernels);
    const uint32_t takes = planned.shape.takes;
    const char* const how = planned.shape.apart ? "side by side" : "at a time";
    return fmt::format("{}{}{}", who, takes == 1 ? "" : fmt::format(", up to {} items {}", takes, how),
                       leaving);
  }
  if (planned.way.chains) {
    return fmt::format(
        "{}, {}{}{}", queue_text(planned),
        analysis::order_scope(*planned.parent, *planned.site, planned.way) == analysis::OrderScope::Thread
            ? "a thread's children run one after another"
            : "a child block to a consumer block",
        leaving,
        planned.way.launcher == Launcher::Host ? "" : ", in a consumer " + launcher_text(planned.way));
  }
  if (planned.way.is_at_once()) return fmt::format("one launch for up to {} lanes", planned.shape.lanes);
  if (planned.shape.flat)
    return fmt::format("flattened: {}, {} to a consumer block", planned.shape.flat->threads,
                       planned.shape.threads());
  if (planned.way.launcher == Launcher::Host && planned.shape.blocks_differ())
    return fmt::format("run warp by warp, {} to a consumer block", planned.shape.pack);
  if (planned.way.launcher == Launcher::Host) {
    return fmt::format("{} to a consumer block{}{}", planned.shape.pack,
                       together_text(planned.shape.together), leaving);
  }
  return "an exact grid " + launcher_text(planned.way);
}

// The unroll factors of loops that the consumer's copy of the child has unrolled.
std::string loops_text(const PlannedSite& planned) {
  if (planned.shape.loops.empty()) return "";
  std::vector<uint32_t> factors;
  for (const transform::RoundsInRow& row : planned.shape.loops) factors.push_back(row.rounds);
  return fmt::format(", {} unrolled {} times", factors.size() == 1 ? "a loop" : "loops",
                     fmt::join(factors, " and "));
}

// The minimum number of blocks per SM that the assembler must leave registers for.
std::string room_text(const PlannedSite& planned) {
  const uint32_t blocks = planned.shape.least_blocks;
  return blocks == 0 ? "" : fmt::format(", registers for {} blocks per SM", blocks);
}

// The children that are not recorded.
std::string own_text(const PlannedSite& planned) {
  if (!planned.own) return "";
  if (planned.own->most_threads == 0) return ", children without threads skipped";
  return fmt::format(", children of up to {} thread{} run by the launching thread", planned.own->most_threads,
                     planned.own->most_threads == 1 ? "" : "s");
}

std::string uniform_text(const PlannedSite& planned) {
  const transform::RecordLayout& layout = planned.shape.layout;
  std::string text = uniform_arguments_text(*planned.parent, *planned.site, *planned.child, layout,
                                            planned.way.is_at_once()
                                                ? analysis::Uniform::Warp
                                                : transform::group_that_shares(planned.way.group_blocks));
  if (layout.packed) text += fmt::format("{}record {} bytes", text.empty() ? "" : ", ", layout.record_bytes);
  return text.empty() ? "" : ", " + text;
}

// "block 32x4x1"; "block (blockDim.x, 1, 1)", of the block that the host launches the parent with.
std::string fed_block_text(const analysis::Family& family, const std::string& child) {
  constexpr std::array kOwn = {"blockDim.x", "blockDim.y", "blockDim.z"};
  const analysis::FedKernel& kernel = family.kernels[family.number_of(child)];
  std::array<std::string, 3> texts;
  for (size_t axis = 0; axis < texts.size(); ++axis)
    texts.at(axis) = kernel.block.at(axis) ? std::to_string(*kernel.block.at(axis)) : kOwn.at(axis);
  return kernel.has_constant_block() ? fmt::format("block {}", fmt::join(texts, "x"))
                                     : fmt::format("block ({})", fmt::join(texts, ", "));
}

std::string block_text(const PlannedSite& planned) {
  if (planned.shape.blocks_differ()) {
    return fmt::format("block from the record, of at most {} threads", planned.shape.most_child_threads());
  }
  if (planned.way.feeds) return fed_block_text(*planned.family, planned.child->name);
  const auto block = analysis::constant_block(*planned.site, *planned.parent);
  return block ? fmt::format("block {}x{}x{}", (*block)[0], (*block)[1], (*block)[2]) : "block of any size";
}

std::string not_over_text(const Way& way, const Objection& objection) {
  return fmt::format("not over the {}: {}: {}", to_string(way.granularity), to_string(objection.reason),
                     objection.detail);
}

std::string memory_text(const analysis::HostMemory& memory) {
  return memory.variable.empty() ? fmt::format("p[{}:8]", memory.parameter_offset) : memory.variable;
}

// The conditions on a launch under which its children overlap: ", where ..."; empty if there are none.
std::string conditions_text(const analysis::OrderConditions& conditions) {
  std::vector<std::string> parts;
  if (conditions.several_blocks) parts.emplace_back("the parent has more than one block");
  std::set<std::string> apart;
  for (const auto& [a, b] : conditions.apart)
    apart.insert(fmt::format("{} and {}", memory_text(a), memory_text(b)));
  if (!apart.empty()) parts.push_back(fmt::format("in different allocations are {}", fmt::join(apart, ", ")));
  std::vector<std::string> numbers;
  for (const auto& [offset, bytes] : conditions.not_negative)
    numbers.push_back(fmt::format("p[{}:{}]", offset, bytes));
  if (!numbers.empty()) parts.push_back(fmt::format("not negative are {}", fmt::join(numbers, ", ")));
  return parts.empty() ? "" : fmt::format(", where {}", fmt::join(parts, " and "));
}

// Which of the three it is with the order of what different threads of a block launch, why, and what the user
// can say to change it.
std::string order_text(const PlannedSite& planned) {
  const analysis::OrderVerdict& order = planned.order;
  const std::string why = order.why.empty() ? "" : ": " + order.why;
  switch (order.order) {
    case analysis::Order::Proven:
      return fmt::format("order proven: children of different threads never conflict{}",
                         conditions_text(order.conditions));
    case analysis::Order::Tolerated:
      return fmt::format(
          "order tolerated{}: blocks of the parent have the same conflict, in no order{}; "
          "ordering = \"stream\" keeps it",
          why, conditions_text(order.conditions));
    case analysis::Order::Kept:
      return fmt::format(
          "order kept{}; if children never meet there, ordering = \"relaxed\" lets them overlap", why);
  }
  return "";
}

// Notes whether the order of the NULL stream is kept, and whether only one thread launches.
void note_order(SiteRemark& remark, const PlannedSite& planned) {
  const analysis::KnownExtents block =
      planned.way.feeds ? analysis::known_block(planned.family->kernels, *planned.parent, planned.way.block)
                        : planned.way.block;
  const bool by_one = analysis::is_launched_by_one_thread(*planned.parent, *planned.site, block);
  const bool is_alone = by_one && planned.parent->sites.size() == 1;
  if (analysis::stream_kind(*planned.site) == StreamKind::Null) {
    remark.notes.push_back(is_alone ? "order proven: one thread of a block launches"
                           : planned.way.ordering == analysis::Ordering::Relaxed
                               ? "order relaxed: launches of different threads of a block may overlap"
                               : order_text(planned));
  }
  if (by_one && planned.way.is_at_once())
    remark.notes.emplace_back("only one thread of a block launches: nothing to share, nothing is gained");
}

// In which blocks the host must launch the parent.
void note_following(SiteRemark& remark, const analysis::Family& family) {
  bool follows = false, full_warps = false;
  uint32_t least = 0, most = 0;
  for (const analysis::FedKernel& kernel : family.kernels) {
    const bool meets = kernel.meeting == analysis::Meeting::Block;
    full_warps = full_warps || (!kernel.has_constant_block() && kernel.meeting != analysis::Meeting::None);
    if (!kernel.has_constant_block()) {
      follows = follows || meets;
    } else {
      least = std::max(least, kernel.threads());
      if (meets) most = kernel.threads();
    }
  }
  std::string blocks = full_warps ? "of whole warps" : "";
  if (follows && least != 0) blocks += fmt::format(" and at least {} threads", least);
  if (most != 0) blocks += fmt::format("{}at most {} threads", blocks.empty() ? "of " : " and ", most);
  if (!blocks.empty() &&
      std::ranges::any_of(family.kernels, std::not_fn(&analysis::FedKernel::has_constant_block)))
    remark.notes.push_back(
        fmt::format("where the host launches the parent in blocks {}; else the original runs", blocks));
}

// Why it is not the first of the wished ways. Reasons that two ways have in common are said once.
void note_refused(SiteRemark& remark, const PlannedSite& planned) {
  for (const auto& [way, objection] : planned.refused) {
    const bool is_launcher = way.granularity == planned.way.granularity;
    // If the grid has two launchers, only the first one's objection is noted, because the other can do less.
    const bool is_said = !is_launcher && way.granularity == planned.refused.front().first.granularity &&
                         &objection != &planned.refused.front().second;
    if (is_said) continue;
    const std::string note = is_launcher ? "the host cannot launch the children: " + objection.detail
                                         : not_over_text(way, objection);
    if (std::ranges::find(remark.notes, note) == remark.notes.end()) remark.notes.push_back(note);
  }
}

// A launcher that the granularity does not leave to anyone.
void note_launcher(SiteRemark& remark, const PlannedSite& planned) {
  if (!planned.options.launcher_is_asked || planned.options.launcher != Launcher::Host) return;
  if (planned.way.launcher == Launcher::Host || planned.way.granularity == Granularity::Grid) return;
  remark.notes.push_back(fmt::format(
      "launcher host is ignored: at granularity {} threads of the parent launch", remark.granularity));
}

// A consumer's block that cannot be as large as was asked.
void note_threads(SiteRemark& remark, const PlannedSite& planned) {
  const uint32_t asked = planned.options.consumer_threads;
  if (asked == 0) return;
  std::string why;
  if (planned.way.is_at_once() || planned.shape.exact) {
    why = "the consumer's blocks are the children's";
  } else if (!planned.shape.packs) {
    why = "a block of children has a consumer's block to itself";
  } else if (planned.shape.threads() != asked && (planned.shape.blocks_differ() || planned.shape.flat)) {
    why = "it is no multiple of a warp, by which children are run";
  } else if (planned.shape.threads() != asked) {
    why =
        fmt::format("it is no multiple of the {} threads of a child's block", planned.shape.child_threads());
  } else {
    return;
  }
  remark.notes.push_back(fmt::format("consumer_threads {} is ignored: {}", asked, why));
}

}  // namespace

namespace {

// In which blocks and grids the host must launch the parent.
void note_sizes(SiteRemark& remark, const Way& way) {
  if (!way.block[2]) return;
  const char* const block = !way.block[1] ? "layer" : !way.block[0] ? "row" : "thread";
  const char* const grid = !way.grid[1]  ? "blocks"
                           : way.grid[0] ? "a grid of one block"
                                         : "a grid of one row, in blocks";
  remark.notes.push_back(fmt::format("where the host launches the parent in {} of one {}", grid, block));
}

}  // namespace

void describe_rewritten(SiteRemark& remark, const PlannedSite& planned, bool is_moldable) {
  const uint32_t shared_bytes =
      planned.way.feeds ? planned.family->kernels[planned.family->number_of(planned.child->name)].shared_bytes
      : planned.way.chains ? analysis::constant_shared_bytes(*planned.site, *planned.parent).value()
                           : planned.shape.shared_bytes;
  const bool shared_differs = planned.shape.sizes && planned.shape.sizes->shared_differs();
  const std::string shared =
      shared_differs
          ? fmt::format("up to {} bytes of dynamic shared memory, as many as the largest request, ",
                        planned.shape.most_shared_bytes())
      : shared_bytes == 0 ? ""
                          : fmt::format("{} bytes of dynamic shared memory, ", shared_bytes);
  remark.detail = fmt::format("{}{}, {}{}{}{}, {}{} argument bytes{}, {}", block_text(planned),
                              is_moldable ? ", moldable" : "", run_text(planned), loops_text(planned),
                              room_text(planned), own_text(planned), shared, planned.child->parameter_bytes,
                              uniform_text(planned), stream_text(*planned.site));
  note_order(remark, planned);
  note_refused(remark, planned);
  note_launcher(remark, planned);
  if (!planned.not_flat.empty()) remark.notes.push_back("not flattened: " + planned.not_flat);
  if (!planned.not_packed.empty()) remark.notes.push_back("not packed: " + planned.not_packed);
  if (!planned.not_own.empty())
    remark.notes.push_back("small children are not run by the launching thread: " + planned.not_own);
  note_threads(remark, planned);
  if (planned.way.is_at_once() && planned.options.buffer == Buffer::Malloc)
    remark.notes.emplace_back("buffer malloc is ignored: launches that are not deferred have no queue");
  if (planned.keeps_launches)
    remark.notes.emplace_back("launches of sizes that CUDA may refuse are the program's own");
  if (planned.way.has_own_room())
    remark.notes.emplace_back(planned.chained != nullptr &&
                                      planned.chained->may_refuse(planned.way.group_blocks != 0)
                                  ? "launches that the queue has no room for are refused, as by CUDA"
                                  : "launches that the queue has no room for are the program's own");
  if (planned.way.feeds) note_following(remark, *planned.family);
  note_sizes(remark, planned.way);
  if (!planned.whole.empty()) remark.notes.push_back("its grid is launched as a whole: " + planned.whole);
}

// Notes the objections to ways of another granularity, which would have replaced the first way.
void note_other_ways(SiteRemark& remark, const PlannedSite& planned) {
  if (planned.refused.empty()) return;
  const auto& [first, why] = planned.refused.front();
  for (const auto& [way, objection] : planned.refused) {
    if (way.granularity == first.granularity) continue;
    if (objection.reason == why.reason && objection.detail == why.detail) continue;
    remark.notes.push_back(not_over_text(way, objection));
  }
}

}  // namespace klap::jit
