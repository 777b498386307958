#include "transform/aggregate/fused.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/synchronisation/exits.h"
#include "transform/aggregate/consumer.h"
#include "transform/aggregate/queue_names.h"
#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

using analysis::FunctionFacts;
using ptx::Edits;
using ptx::Module;
using ptx::Statement;

constexpr char kProgramExtents[] = "__klap_program_extents";

// A call of one of the functions of templates/aggregate/fused.cu.
std::string block_call(const Module& blocks, const char* function, std::vector<std::string> arguments,
                       LineTables& lines, std::map<uint32_t, std::string> results = {}) {
  InlineCall call;
  call.prefix = "klap_e_";
  call.arguments = std::move(arguments);
  call.results = std::move(results);
  return "\t" + inline_function(blocks, template_function(blocks, function), call, lines) + "\n";
}

// A register with a number of rows or layers: where an index is along them, and where the program's number is
// in the parameter.
struct Extent {
  const char* number;
  const char* index;
  const char* axis;
  uint32_t offset = 0;
  [[nodiscard]] std::string asked() const { return fmt::format("%klap_asked_{}_{}", number + 1, axis + 1); }
};

std::vector<Extent> extents_that_grow(const analysis::MoreThanAsked& more) {
  std::vector<Extent> extents;
  if (more.threads) extents.insert(extents.end(), {{"%ntid", "%tid", ".y", 0}, {"%ntid", "%tid", ".z", 4}});
  if (more.blocks)
    extents.insert(extents.end(), {{"%nctaid", "%ctaid", ".y", 8}, {"%nctaid", "%ctaid", ".z", 12}});
  return extents;
}

// Tells the parent's part the rows and layers that the program asked for, and leaves out the threads of
// others. A slice tells it those of the grid.
std::string without_more(const FunctionFacts& parent, const FusedParts& parts, Edits& edits) {
  const Module& m = parent.module;
  const ptx::TokenRange body = parent.function.body.tokens;
  std::string text;
  for (const Extent& extent : extents_that_grow(parts.more)) {
    const bool is_told_by_slice = parts.in_slices && extent.offset >= 8;
    for (uint32_t t = body.first; t < body.last && !is_told_by_slice; ++t) {
      if (m.is(t, extent.number) && m.is(t + 1, extent.axis)) edits.replace({t, t + 2}, extent.asked());
    }
    const bool is_first = text.empty();
    if (is_first) text += "\t.reg .b32 %klap_index;\n\t.reg .pred %klap_is_more;\n";
    text += fmt::format("\t.reg .b32 {0};\n\tld.param.u32 {0}, [{1}+{2}];\n\tmov.u32 %klap_index, {3}{4};\n",
                        extent.asked(), kProgramExtents, extent.offset, extent.index, extent.axis);
    text += is_first ? fmt::format("\tsetp.ge.u32 %klap_is_more, %klap_index, {};\n", extent.asked())
                     : fmt::format("\tsetp.ge.or.u32 %klap_is_more, %klap_index, {}, %klap_is_more;\n",
                                   extent.asked());
  }
  return text.empty() ? text : text + "\t@%klap_is_more bra $klap_ended;\n";
}

// The text behind the parent's part, where all threads come.
std::string consumers_text(const FusedParts& parts, LineTables& lines) {
  constexpr char kOwn[] = "%klap_own", kAll[] = "%klap_all", kShared[] = "%klap_shared";
  std::string text = fmt::format(
      "\n$klap_ended:\n\t.reg .b32 {0}, {1}, {2};\n\t.reg .pred %klap_leaves;\n\tmov.u32 {2}, klap_shared;\n",
      kOwn, kAll, kShared);
  text +=
      block_call(parts.blocks, "__klap_end_block", {kQueueRegister, kShared}, lines, {{0, kOwn}, {4, kAll}});
  text += fmt::format("\tsetp.eq.u32 %klap_leaves, {}, 0;\n\t@%klap_leaves bra $klap_left;\n", kAll);
  for (size_t i = 0; i < parts.consumers.size(); ++i) {
    const FusedConsumer& of = parts.consumers[i];
    const std::string queue = numbered(kQueueRegister, i);
    if (i != 0) text += block_call(parts.blocks, "__klap_next_queue", {queue, kAll}, lines);
    text += "\t" +
            consumer_text(of.child_module, of.child, of.shape, of.consumer, {queue, kOwn, kAll}, lines) +
            "\n";
  }
  return text + "$klap_left:\n\tret;\n";
}

}  // namespace

std::string extents_parameter(const FusedParts& parts) {
  if (!parts.more.threads && !parts.more.blocks) return "";
  return fmt::format(".param .align 4 .b8 {}[{}]", kProgramExtents, analysis::kProgramExtentsBytes);
}

std::string add_consumers(const FunctionFacts& parent, const FusedParts& parts, Edits& edits,
                          LineTables& lines) {
  const Module& m = parent.module;
  const ptx::TokenRange body = parent.function.body.tokens;
  edits.insert_after(body.first,
                     fmt::format("\t.shared .align 8 .b8 klap_shared[{}];\n", analysis::kFusedSharedBytes) +
                         block_call(parts.blocks, "__klap_begin_block", {kQueueRegister}, lines) +
                         without_more(parent, parts, edits));
  for (const Statement* way : analysis::find_exits(parent, false).ways) {
    if (m.is(way->head, "bra")) continue;  // to one of the others
    const char* const negation = way->predicate_negated ? "!" : "";
    const std::string guard = way->predicated ? fmt::format("@{}{} ", negation, m.text(way->predicate)) : "";
    edits.replace(way->tokens, guard + "bra $klap_ended;");
  }
  std::string text = consumers_text(parts, lines);
  edits.insert_before(body.last - 1, text);
  return text;
}

}  // namespace klap::transform
