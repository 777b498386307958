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

constexpr uint32_t kWarp = 32;
constexpr uint32_t kArgumentBytes = 4;
// On an H200 parts of 256 elements were the fastest for a product with an R-MAT matrix, before 512 and 1,024,
// and as fast as 512 for one with a co-citation graph.
constexpr uint32_t kElements = 256;

using Found = std::optional<std::string>;

// Each read of the argument must be a load of just these bytes, which the consumer replaces by another value.
bool is_read_plainly(const FunctionFacts& child, uint32_t offset) {
  const auto reads = parameter_reads(child.module, child.function);
  if (!reads) return false;
  const bool is_alone = std::ranges::all_of(*reads, [&](const ParameterRead& read) {
    const bool overlaps = read.offset < offset + kArgumentBytes && offset < read.offset + read.bytes;
    return !overlaps || (read.offset == offset && read.bytes == kArgumentBytes);
  });
  if (!is_alone) return false;
  const Values& v = child.values();
  for (uint32_t i = 0; i < v.flow.instructions().size(); ++i) {
    if (v.symbolic.parameter_offset(i) != offset) continue;
    const ptx::Statement& s = *v.flow.instructions()[i].statement;
    if (!child.module.is(s.head, "ld") || s.operands[0].size() != 1) return false;
    const uint32_t reg = v.registers.find(i, child.module.text(s.operands[0].first));
    if (reg == VirtualRegisters::kNone || ptx::type_bytes(v.registers[reg].type) != kArgumentBytes)
      return false;
  }
  return true;
}

// Blocks of the program's size and of one warp must do the same with their threads' sums.
Found check_block(const Values& child, const RangeLoop& loop, uint32_t threads) {
  const BlockSum launched = run_block(child, loop, threads);
  if (!launched.why_not.empty()) return launched.why_not;
  if (threads == kWarp) return std::nullopt;
  const BlockSum small = run_block(child, loop, kWarp);
  if (!small.why_not.empty()) return small.why_not;
  return small.additions == launched.additions ? Found()
                                               : Found("blocks of another size add to other memory");
}

// All sums have other registers than what is computed once more, since they begin with literals.
HigherThreads higher_threads(const Values& child, const RangeLoop& loop) {
  HigherThreads out;
  const auto& instructions = child.flow.instructions();
  const auto is_begin_of_sum = [&](uint32_t i) {
    return std::ranges::any_of(child.registers.accesses(i), [&](const Access& a) {
      return a.written && std::ranges::find(loop.sums, a.reg, &RangeLoop::Sum::reg) != loop.sums.end();
    });
  };
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const bool is_before = instructions[i].block == 0;
    if (!is_before && !loop.blocks.contains(instructions[i].block)) continue;
    out.statements.insert(instructions[i].statement);
    if (is_before && i != loop.branch && !is_begin_of_sum(i)) out.again.push_back(instructions[i].statement);
  }
  out.behind = instructions[child.flow.blocks()[loop.behind].first].statement;
  return out;
}

// Names mean the same in front of the loop and behind it.
bool are_in_body(const Values& child, const HigherThreads& higher) {
  const auto is_in_body = [&](const ptx::Statement* s) {
    return child.flow.instructions()[child.flow.index_of(s)].scope == &child.flow.function().body;
  };
  return is_in_body(higher.behind) && std::ranges::all_of(higher.again, is_in_body);
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
    const Argument* const argument = passed_argument(site, offset, kArgumentBytes);
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
    split.higher = higher_threads(values, loop);
    if (!are_in_body(values, split.higher)) return {std::nullopt, "it begins in a scope of its own", true};
  }
  const auto conditions = LaunchOrder(parent, {{&site, child}}, block).of_own_reads(0);
  if (!conditions) return {std::nullopt, "it may read what it adds to", true};
  split.conditions = *conditions;
  return {split, "", true};
}

}  // namespace klap::analysis
