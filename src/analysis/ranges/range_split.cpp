#include "analysis/ranges/range_split.h"

#include <algorithm>

#include "analysis/effects/effects.h"
#include "analysis/inline/parameter_reads.h"
#include "analysis/optimise/accumulators.h"
#include "analysis/optimise/known_arguments.h"
#include "analysis/ranges/block_sum.h"
#include "analysis/ranges/range_loop.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kWarpThreads = 32;
constexpr uint32_t kEndBytes = 4;

constexpr char kRounded[] =
    "floating-point numbers would be added in another order, which assume = \"reassociate\" allows";
constexpr char kNotAgain[] = "what it computes before its loop cannot be computed once more";

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

// Blocks of the program's size and of a part's must do the same with their threads' sums.
Found check_block(const Values& child, const RangeLoop& loop, uint32_t threads, uint32_t part,
                  const SplitRules& rules) {
  const BlockSum launched = run_block(child, loop, threads);
  if (!launched.why_not.empty()) return launched.why_not;
  if (launched.has_fixed_bits && !rules.round) return kRounded;
  if (threads == part) return std::nullopt;
  const BlockSum small = run_block(child, loop, part);
  if (!small.why_not.empty()) return small.why_not;
  return small.additions == launched.additions ? Found()
                                               : Found("blocks of another size add to other memory");
}

// Blocks of both sizes must do the same behind parts that are joined. `is_rounded`: it shows in which order
// the sums are added. A condition that is not known holds in one run of both sizes, and does not in another.
Found check_end(const Values& child, const RangeLoop& loop, const EndRun& run, uint32_t part_threads,
                OpaqueValues& values, bool& is_rounded) {
  constexpr size_t kMostConditions = 2;
  const EndOfBlock launched = run_block_to_end(child, loop, run, values);
  if (!launched.why_not.empty()) return launched.why_not;
  EndRun as_part = run;
  as_part.threads = part_threads;
  const EndOfBlock part = run_block_to_end(child, loop, as_part, values);
  if (!part.why_not.empty()) return part.why_not;
  const auto& condition = launched.undecided ? launched.undecided : part.undecided;
  if (!condition) {
    is_rounded = is_rounded || launched.is_rounded;
    const bool is_same = launched.thread == part.thread && launched.effects == part.effects;
    return is_same ? Found() : Found("blocks of another size write something else");
  }
  if (run.assumed.size() == kMostConditions) return "it ends in too many ways";
  for (const bool holds : {true, false}) {
    EndRun next = run;
    next.assumed[*condition] = holds;
    if (Found found = check_end(child, loop, next, part_threads, values, is_rounded)) return found;
  }
  return std::nullopt;
}

// The place, which must be in the function's own scope, as must be the registers with the sums.
std::optional<JoinedParts> joined_parts(const Values& child, const RangeLoop& loop) {
  const uint32_t behind = child.flow.blocks()[loop.behind].first;
  JoinedParts out{child.flow.instructions()[behind].statement, {}};
  const ptx::Statement* const body = &child.flow.function().body;
  if (child.flow.instructions()[behind].scope != body) return std::nullopt;
  for (const RangeLoop::Sum& sum : loop.sums) {
    const VirtualRegister& reg = child.registers[sum.reg];
    if (reg.scope != body || reg.lanes != 1) return std::nullopt;
    out.sums.push_back({std::string(reg.name), sum.operation});
  }
  return out;
}

// Decides how the child's parts, whose blocks have so many threads, add up: each adds to memory, or they are
// joined.
Found find_end(RangeSplit& split, const Values& child, const RangeLoop& loop, uint32_t threads, uint32_t part,
               const SplitRules& rules) {
  split.threads = part;
  split.program_threads = threads;
  split.elements = rules.elements * part / kWarpThreads;
  split.merges = rules.merge;
  auto higher = higher_threads(child, loop);
  if (threads != part) {
    if (threads % part != 0) return "its block is not made of whole warps";
    if (!higher) return kNotAgain;
    split.higher = *higher;
  }
  Found found = check_block(child, loop, threads, part, rules);
  if (!found || !rules.join) return found;
  bool is_rounded = false;
  OpaqueValues values;
  if (Found other = check_end(child, loop, {threads, higher.has_value()}, part, values, is_rounded))
    return other;
  if (higher) split.higher = *std::move(higher);
  if (is_rounded && !rules.round) return kRounded;
  split.joined = joined_parts(child, loop);
  return split.joined ? Found() : Found("what is behind its loop stands in a scope of its own");
}

// Finds the blocks for the child's parts. Short ranges need few threads, so blocks of one warp come first.
Found find_blocks(RangeSplit& split, const Values& child, const RangeLoop& loop, uint32_t threads,
                  const SplitRules& rules) {
  Found found = "blocks of one warp would not share a block of the consumer";
  if (rules.warps) found = find_end(split, child, loop, threads, kWarpThreads, rules);
  if (!found || !rules.blocks || (rules.warps && threads == kWarpThreads)) return found;
  return find_end(split, child, loop, threads, threads, rules);
}

}  // namespace

RangeSplitVerdict judge_range_split(const std::shared_ptr<const FunctionFacts>& child,
                                    const FunctionFacts& parent, const Site& site, uint32_t threads,
                                    const KnownExtents& block, bool may_wait, const SplitRules& rules) {
  const Values& values = child->values();
  const RangeLoop loop = find_range_loop(values);
  if (!loop.yes()) return {std::nullopt, loop.why_not, false};
  RangeSplit split;
  split.begin_offset = loop.begin_offset;
  split.end_offset = loop.end_offset;
  split.is_rounded =
      std::ranges::any_of(loop.sums, [](const auto& sum) { return is_rounded(sum.operation); });
  for (const uint32_t load : rules.stream ? loop.loads_in_a_row : std::set<uint32_t>())
    split.streamed.insert(values.flow.instructions()[load].statement);
  const bool is_plain = (!split.begin_offset || is_read_plainly(*child, *split.begin_offset)) &&
                        is_read_plainly(*child, split.end_offset);
  if (!is_plain) return {std::nullopt, "an end of its range is read in another form", true};
  if (Found found = find_blocks(split, values, loop, threads, rules)) return {std::nullopt, *found, true};
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
  if (!split.begin_offset && !split.higher.behind) {
    auto higher = higher_threads(values, loop);
    if (!higher) return {std::nullopt, kNotAgain, true};
    split.higher = *std::move(higher);
  }
  if (split.joined) return {split, "", true};  // nothing is written before all is read
  const auto conditions = LaunchOrder(parent, {{&site, child}}, block).of_own_reads(0);
  if (!conditions) return {std::nullopt, "it may read what it adds to", true};
  split.conditions = *conditions;
  return {split, "", true};
}

}  // namespace klap::analysis
