#include "transform/aggregate/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/synchronisation/exits.h"
#include "ptx/edit.h"
#include "transform/aggregate/argument_stores.h"
#include "transform/aggregate/kept_launches.h"
#include "transform/aggregate/loop_launches.h"
#include "transform/aggregate/parent_exits.h"
#include "transform/aggregate/queue_names.h"
#include "transform/aggregate/slices.h"
#include "transform/aggregate/thresholding.h"
#include "transform/aggregate/worklist.h"
#include "transform/runtime_calls/executor_sites.h"
#include "transform/runtime_calls/private_streams.h"
#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

using analysis::FunctionFacts;
using analysis::Site;
using ptx::Edits;
using ptx::Function;
using ptx::Module;
using ptx::Statement;

constexpr char kRecordFunction[] = "__klap_record";
constexpr char kErrorRegister[] = "%klap_error";
constexpr char kOnceRegister[] = "%klap_once";
constexpr char kIsFirstPredicate[] = "%klap_is_first";

// `mov.u64 %rd, child;` whose register only fed the launch: without it the variant does not refer to the
// child.
void drop_callee_address(const FunctionFacts& parent, const Site& site, Edits& edits) {
  const auto& definitions = parent.data.definitions(site.callee_operand);
  const auto& uses = parent.data.uses(site.callee_operand);
  if (definitions.size() != 1 || uses.size() != 1) return;
  const Statement& definition = *parent.flow.instructions()[definitions[0]].statement;
  if (parent.module.is(definition.head, "mov")) edits.replace(definition.tokens, "");
}

// The launch call only has to report the result of the record step.
std::string launch_text(const Site& site, const std::string& error) {
  std::string text = fmt::format(
      "{{\n\t.reg .pred %klap_failed;\n\tsetp.ne.u32 %klap_failed, {0}, 0;\n"
      "\t@%klap_failed mov.u32 %klap_last_error, {0};\n",
      error);
  if (!site.result.empty()) text += fmt::format("\tmov.b32 {}, {};\n", site.result, error);
  return text + "\t}";
}

std::string query_text(const analysis::ErrorQuery& query) {
  std::string text = "{\n";
  if (!query.result.empty()) text += fmt::format("\tmov.b32 {}, %klap_last_error;\n", query.result);
  if (query.clears) text += "\tmov.u32 %klap_last_error, 0;\n";
  return text + "\t}";
}

// `(a, b)` with the queues added behind, and `behind` after those. A kernel without parameters has `()` or no
// list at all.
void add_queue_parameters(const Module& m, const Function& f, size_t queues, const std::string& behind,
                          Edits& edits) {
  std::string declaration;
  for (size_t i = 0; i < queues; ++i) {
    declaration += (i == 0 ? ".param .u64 " : ",\n\t.param .u64 ") + numbered(kQueueParameter, i);
  }
  if (!behind.empty()) declaration += ",\n\t" + behind;
  if (!f.parameters.empty()) {
    edits.insert_after(f.parameters.back().tokens.last - 1, ",\n\t" + declaration);
  } else if (m.is(f.name_token + 1, "(")) {
    edits.insert_after(f.name_token + 1, declaration);
  } else {
    edits.insert_after(f.name_token, "(" + declaration + ")");
  }
}

// Edits the site's two calls. In the documented form the first call only says that there is a buffer. The
// record is made at the launch, and the argument stores move there.
void record_edits(const Module& m, const RecordingSite& recording, size_t number, Edits& edits,
                  LineTables& lines) {
  const Site& site = recording.site;
  const Module& record = recording.record;
  const std::string error = numbered(kErrorRegister, number);
  InlineCall call;
  call.prefix = "klap_r_";
  call.arguments = {numbered(kQueueRegister, number), site.grid[0], site.grid[1], site.grid[2]};
  if (!recording.bound.empty()) call.arguments.push_back(recording.bound);
  for (const std::string& pointer : recording.pointers) call.arguments.push_back(pointer);
  for (const std::string& end : recording.range) call.arguments.push_back(end);
  const std::string once = numbered(kOnceRegister, number);
  const std::string is_first = numbered(kIsFirstPredicate, number);
  call.results = {{0, site.buffer}, {8, error}, {16, once}};
  std::string text = inline_function(record, template_function(record, kRecordFunction), call, lines);
  if (recording.layout.passes_once()) text += fmt::format("\n\tsetp.ne.u64 {}, {}, 0;", is_first, once);
  const ArgumentStores stores(m, site, recording.layout, once, is_first);
  if (recording.thresholding) text += serial_child_text(m, recording, lines);
  if (site.idiom->form == analysis::LaunchForm::Described && !recording.at_launch) {
    edits.replace(site.get_scope->tokens, text);
    for (const Statement* store : stores.in_order()) {
      if (recording.layout.packed) edits.replace(store->tokens, stores.text(*store));
    }
    edits.replace(site.launch_scope->tokens, launch_text(site, error));
    return;
  }
  std::string fill;
  for (const Statement* store : stores.in_order()) {
    fill += "\t" + stores.text(*store) + "\n";
    edits.replace(store->tokens, "");
  }
  if (recording.thresholding) fill += serial_child_end();
  edits.replace(site.get_scope->tokens, fmt::format("mov.b64 {}, 1;", site.buffer));
  text += "\n" + fill + "\t" + launch_text(site, error);
  edits.replace(site.launch_scope->tokens, recording.thresholding ? "{\n\t" + text + "\n\t}" : text);
}

// A copy of the kernel with another name and so many queues as further parameters. If `behind` is a
// declaration, one more parameter follows.
Edits copy_with_queues(const FunctionFacts& parent, size_t queues, const std::string& name, LineTables& lines,
                       const std::string& behind = "") {
  const Module& m = parent.module;
  const Function& f = parent.function;
  Edits edits(m);
  edits.replace({f.tokens.first, f.name_token}, linkage_text(f) + ".entry");
  edits.replace({f.name_token, f.name_token + 1}, name);
  add_queue_parameters(m, f, queues, behind, edits);
  lines.keep(m, f.body, edits);
  if (m.debug) drop_debug_labels(m, f.body, edits);
  std::string head = "\n";
  for (size_t i = 0; i < queues; ++i) {
    head += fmt::format("\t.reg .b64 {0};\n\tld.param.u64 {0}, [{1}];\n", numbered(kQueueRegister, i),
                        numbered(kQueueParameter, i));
  }
  edits.insert_after(f.body.tokens.first, head);
  return edits;
}

// Keeps the site's own launch, for children that the template does not record.
void keep_launch(const RecordingSite& recording, size_t number, Edits& edits, std::string& head,
                 LineTables& lines) {
  const KeptLaunch kept{recording.site, recording.record, number, numbered(kQueueRegister, number),
                        recording.bound};
  for (const auto& [statement, around] : kept.around(lines)) {
    edits.insert_before(statement->tokens.first, around.before + "\t");
    edits.insert_after(statement->tokens.last - 1, "\n" + around.after);
  }
  head += kept.registers();
}

// True if threads of the parent run children themselves.
bool runs_children(const std::vector<RecordingSite>& sites) {
  return std::ranges::any_of(sites, [](const RecordingSite& site) {
    return site.thresholding && site.thresholding->most_threads != 0;
  });
}

// All edits of a recording parent but the ways out. `behind` is the declaration of a further parameter, or
// empty.
Edits recording_edits(const FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                      const std::string& name, LineTables& lines, bool in_slices,
                      const std::string& behind = "") {
  const Module& m = parent.module;
  std::string parameters = in_slices ? slice_parameter() : "";
  if (!behind.empty()) parameters += (parameters.empty() ? "" : ",\n\t") + behind;
  Edits edits = copy_with_queues(parent, sites.size(), name, lines, parameters);
  std::string head = "\t.reg .b32 %klap_last_error;\n\tmov.u32 %klap_last_error, 0;\n";
  for (size_t i = 0; i < sites.size(); ++i) {
    if (sites[i].keeps_launch) {
      keep_launch(sites[i], i, edits, head, lines);
      continue;
    }
    drop_callee_address(parent, sites[i].site, edits);
    record_edits(m, sites[i], i, edits, lines);
    head += fmt::format("\t.reg .b32 {};\n", numbered(kErrorRegister, i));
    if (sites[i].layout.passes_once()) {
      head += fmt::format("\t.reg .b64 {};\n\t.reg .pred {};\n", numbered(kOnceRegister, i),
                          numbered(kIsFirstPredicate, i));
    }
  }
  if (runs_children(sites)) read_coherently(parent, edits);
  if (in_slices) head += read_slice(parent, edits);
  edits.insert_after(parent.function.body.tokens.first, head);
  for (const analysis::ErrorQuery& query : parent.error_queries) {
    if (!sites.front().keeps_launch) edits.replace(query.scope->tokens, query_text(query));
  }
  for (const auto& [statement, around] : without_private_streams(parent, ""))
    edits.replace(statement->tokens, around.before);
  return edits;
}

// A group's launches, or a child's code, take more registers than most kernels have. They must not keep the
// largest blocks out.
void keep_largest_blocks(const FunctionFacts& parent, Edits& edits) {
  if (parent.function.attributes.empty())
    edits.insert_before(parent.function.body.tokens.first, ".maxntid 1024, 1, 1\n");
}

// Returns each declaration once.
std::vector<std::string> without_repetition(const std::vector<std::string>& declarations) {
  std::vector<std::string> out;
  for (const std::string& text : declarations) {
    if (std::ranges::find(out, text) == out.end()) out.push_back(text);
  }
  return out;
}

}  // namespace

Generated recording_parent(const FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                           const std::string& name, LineTables& lines, bool in_slices) {
  Edits edits = recording_edits(parent, sites, name, lines, in_slices);
  if (runs_children(sites)) keep_largest_blocks(parent, edits);
  return {name, edits.apply(parent.function.tokens), {}, {}};
}

Generated fused_parent(const FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                       const FusedParts& parts, const std::string& name, LineTables& lines) {
  Edits edits = recording_edits(parent, sites, name, lines, parts.in_slices, extents_parameter(parts));
  if (!runs_children(sites)) read_coherently(parent, edits);
  const std::string consumers = add_consumers(parent, parts, edits, lines);
  return {name, edits.apply(parent.function.tokens), {}, {consumers}};
}

Generated launching_parent(const FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                           const std::vector<DeviceLaunch>& launches, const std::string& name,
                           LineTables& lines, bool in_slices) {
  Edits edits = recording_edits(parent, sites, name, lines, in_slices);
  if (launches.front().group_blocks != 0 || runs_children(sites)) keep_largest_blocks(parent, edits);
  std::vector<const Site*> launched;
  for (const RecordingSite& site : sites) launched.push_back(&site.site);
  const auto declarations =
      add_exits(parent, launched, launches, analysis::find_exits(parent, false), edits, lines);
  return {name, edits.apply(parent.function.tokens), without_repetition(declarations), {}};
}

namespace {

void surround(const Surroundings& surroundings, Edits& edits) {
  for (const auto& [statement, around] : surroundings) {
    if (around.instead) {
      edits.replace(statement->tokens, around.before + around.after);
      continue;
    }
    edits.insert_before(statement->tokens.first, around.before + "\t");
    edits.insert_after(statement->tokens.last - 1, "\n" + around.after);
  }
}

// Adds the exits of a parent whose sites all share a queue. The queue may have no room for a launch. Then
// the program's own launch is made, and a thread that gets no buffer for it may exit.
std::vector<std::string> add_exits_of_queue(const FunctionFacts& parent, const DeviceLaunch& launch,
                                            Edits& edits, LineTables& lines) {
  keep_largest_blocks(parent, edits);
  return add_exits(parent, {&parent.sites.front()}, {launch}, analysis::find_exits(parent, true), edits,
                   lines);
}

}  // namespace

Generated worklist_parent(const FunctionFacts& parent, const std::vector<LaunchTarget>& targets,
                          const Module& record, const std::string& name, LineTables& lines,
                          const DeviceLaunch* launch) {
  Edits edits = copy_with_queues(parent, 1, name, lines);
  const WorklistSites work_queues(parent, targets, record, "klap_f_", "%klap_queue", lines);
  edits.insert_after(parent.function.body.tokens.first, work_queues.registers());
  surround(work_queues.in_parent(), edits);
  std::vector<std::string> declarations;
  if (launch != nullptr) declarations = add_exits_of_queue(parent, *launch, edits, lines);
  return {name, edits.apply(parent.function.tokens), without_repetition(declarations), {}};
}

Generated loop_launches_parent(const FunctionFacts& parent, const analysis::LoopLaunches& loop_launches,
                               const Module& record, const std::string& name, LineTables& lines,
                               const DeviceLaunch* launch) {
  Edits edits = copy_with_queues(parent, 1, name, lines);
  const bool in_groups = launch != nullptr && launch->group_blocks != 0;
  const LoopSites sites(parent, loop_launches, record, "%klap_queue", in_groups, lines);
  edits.insert_after(parent.function.body.tokens.first, sites.entry());
  surround(sites.in_parent(), edits);
  std::vector<std::string> declarations = sites.declarations();
  if (launch != nullptr) {
    for (std::string& text : add_exits_of_queue(parent, *launch, edits, lines))
      declarations.push_back(std::move(text));
  }
  return {name, edits.apply(parent.function.tokens), without_repetition(declarations), {}};
}

Generated executed_parent(const FunctionFacts& parent, const std::vector<LaunchTarget>& targets,
                          const Module& record, const std::string& name, LineTables& lines) {
  Edits edits = copy_with_queues(parent, 1, name, lines);
  const ExecutorSites sites(parent, targets, record, "klap_f_", "%klap_queue", lines);
  edits.insert_after(parent.function.body.tokens.first, sites.entry());
  surround(sites.in_parent(), edits);
  return {name, edits.apply(parent.function.tokens), sites.declarations(), {}};
}

uint32_t queue_parameter_offset(const Function& parent) { return round_up(parent.parameter_bytes, 8); }

}  // namespace klap::transform
