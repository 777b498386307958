#include "analysis/optimise/range_split.h"

#include <algorithm>

#include "analysis/effects/effects.h"
#include "analysis/inline/parameter_reads.h"
#include "analysis/optimise/accumulators.h"
#include "analysis/optimise/block_sum.h"
#include "analysis/optimise/known_arguments.h"
#include "analysis/optimise/range_loop.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kPartThreads = 32;
constexpr uint32_t kEndBytes = 4;
// On an H200 parts of 256 elements were the fastest for a product with an R-MAT matrix, before 512 and 1,024,
// and as fast as 512 for one with a co-citation graph.
constexpr uint32_t kElements = 256;

using Found = std::optional<std::string>;

// Each read of the argument must be a load of just these bytes, which the consumer replaces by another value.
bool is_read_plainly(const FunctionFacts& child, uint32_t offset) {
  const auto reads = parameter_reads(child.module, child.function);
  if (!reads) return false;
  const bool is_alone = std::ranges::all_of(*reads, [&](const ParameterRead& read) {
    const bool overlaps = read.offset < offset + kEndBytes && offset < read.offset + read.bytes;
    return !overlaps || (read.offset == offset && read.bytes == kEndBytes);
  });
  if (!is_alone) return false;
  const Values& v = child.values();
  for (uint32_t i = 0; i < v.flow.instructions().size(); ++i) {
    if (v.symbolic.parameter_offset(i) != offset) continue;
    const ptx::Statement& s = *v.flow.instructions()[i].statement;
    if (!child.module.is(s.head, "ld") || s.operands[0].size() != 1) return false;
    const uint32_t reg = v.registers.find(i, child.module.text(s.operands[0].first));
    if (reg == VirtualRegisters::kNone || ptx::type_bytes(v.registers[reg].type) != kEndBytes) return false;
  }
  return true;
}

// Blocks of the program's size and of one warp must do the same with their threads' sums.
Found check_block(const Values& child, const RangeLoop& loop, uint32_t threads) {
  const BlockSum launched = run_block(child, loop, threads);
  if (!launched.why_not.empty()) return launched.why_not;
  if (threads == kPartThreads) return std::nullopt;
  const BlockSum small = run_block(child, loop, kPartThreads);
  if (!small.why_not.empty()) return small.why_not;
  return small.additions == launched.additions ? Found()
                                               : Found("blocks of another size add to other memory");
}

}  // namespace

RangeSplitVerdict judge_range_split(const std::shared_ptr<const FunctionFacts>& child,
                                    const FunctionFacts& parent, const Site& site, uint32_t threads,
                                    const KnownExtents& block, bool may_wait) {
  const Values& values = child->values();
  const RangeLoop loop = find_range_loop(values);
  if (!loop.yes()) return {std::nullopt, loop.why_not, false};
  RangeSplit split;
  split.begin_offset = loop.begin_offset;
  split.end_offset = loop.end_offset;
  split.elements = kElements;
  split.is_rounded =
      std::ranges::any_of(loop.sums, [](const auto& sum) { return is_rounded(sum.operation); });
  const bool is_plain = (!split.begin_offset || is_read_plainly(*child, *split.begin_offset)) &&
                        is_read_plainly(*child, split.end_offset);
  if (!is_plain) return {std::nullopt, "an end of its range is read in another form", true};
  if (Found found = check_block(values, loop, threads)) return {std::nullopt, *found, true};
  const auto known = [&](uint32_t offset) -> std::optional<std::string> {
    const Argument* const argument = passed_argument(site, offset, kEndBytes);
    const bool is_known =
        argument != nullptr && is_known_argument(parent, site, *argument, may_wait, split.at_launch);
    return is_known ? std::optional(argument->source) : std::nullopt;
  };
  const auto begin = split.begin_offset ? known(*split.begin_offset) : std::optional<std::string>("0");
  const auto end = known(split.end_offset);
  if (!begin || !end) return {std::nullopt, "its range is not known where the launch begins", true};
  split.begin = *begin;
  split.end = *end;
  if (!split.begin_offset) {
    auto higher = higher_threads(values, loop);
    if (!higher) return {std::nullopt, "what it computes before its loop cannot be computed once more", true};
    split.higher = *std::move(higher);
  }
  const auto conditions = LaunchOrder(parent, {{&site, child}}, block).of_own_reads(0);
  if (!conditions) return {std::nullopt, "it may read what it adds to", true};
  split.conditions = *conditions;
  return {split, "", true};
}

}  // namespace klap::analysis
