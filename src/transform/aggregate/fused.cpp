#include "transform/aggregate/fused.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/legality/fusing.h"
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

constexpr char kProgramBlock[] = "__klap_program_block";

// A call of one of the functions of templates/aggregate/fused.cu.
std::string block_call(const Module& blocks, const char* function, std::vector<std::string> arguments,
                       LineTables& lines, std::map<uint32_t, std::string> results = {}) {
  InlineCall call;
  call.prefix = "klap_e_";
  call.arguments = std::move(arguments);
  call.results = std::move(results);
  return "\t" + inline_function(blocks, template_function(blocks, function), call, lines) + "\n";
}

// Tells the parent's part the rows and layers of the program's block, and leaves out the threads of others.
std::string without_more_threads(const FunctionFacts& parent, Edits& edits) {
  const Module& m = parent.module;
  const ptx::TokenRange body = parent.function.body.tokens;
  for (uint32_t t = body.first; t < body.last; ++t) {
    if (!m.is(t, "%ntid") || m.is(t + 1, ".x")) continue;
    edits.replace({t, t + 2}, m.is(t + 1, ".y") ? "%klap_rows" : "%klap_layers");
  }
  return fmt::format(
      "\t.reg .b32 %klap_rows, %klap_layers, %klap_place;\n\t.reg .pred %klap_is_more;\n"
      "\tld.param.u32 %klap_rows, [{0}];\n\tld.param.u32 %klap_layers, [{0}+4];\n"
      "\tmov.u32 %klap_place, %tid.y;\n\tsetp.ge.u32 %klap_is_more, %klap_place, %klap_rows;\n"
      "\tmov.u32 %klap_place, %tid.z;\n"
      "\tsetp.ge.or.u32 %klap_is_more, %klap_place, %klap_layers, %klap_is_more;\n"
      "\t@%klap_is_more bra $klap_ended;\n",
      kProgramBlock);
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

std::string program_block_parameter() {
  return fmt::format(".param .align 4 .b8 {}[{}]", kProgramBlock, analysis::kProgramBlockBytes);
}

std::string add_consumers(const FunctionFacts& parent, const FusedParts& parts, Edits& edits,
                          LineTables& lines) {
  const Module& m = parent.module;
  const ptx::TokenRange body = parent.function.body.tokens;
  std::string begin = fmt::format("\t.shared .align 8 .b8 klap_shared[{}];\n", analysis::kFusedSharedBytes) +
                      block_call(parts.blocks, "__klap_begin_block", {kQueueRegister}, lines);
  if (parts.has_more_threads) begin += without_more_threads(parent, edits);
  edits.insert_after(body.first, begin);
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
