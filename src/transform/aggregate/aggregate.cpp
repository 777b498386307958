#include "transform/aggregate/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/order/exits.h"
#include "ptx-patterns/templates/common/queue.h"
#include "ptx/edit.h"
#include "transform/aggregate/argument_stores.h"
#include "transform/aggregate/chain.h"
#include "transform/aggregate/feed.h"
#include "transform/aggregate/kept_launches.h"
#include "transform/aggregate/own_children.h"
#include "transform/aggregate/own_streams.h"
#include "transform/aggregate/slices.h"
#include "transform/aggregate/warp.h"
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
using ptx::StatementKind;

constexpr char kRecordFunction[] = "__klap_record";
constexpr char kConsumerKernel[] = "__klap_consumer";
constexpr char kChildMarker[] = "__klap_child_body";
constexpr char kArgumentsMarker[] = "__klap_child_arguments";
constexpr char kLeaveFunction[] = "__klap_leave";
constexpr char kLaunchFunction[] = "__klap_launch_children";
constexpr char kFirstTurnFunction[] = "__klap_first_turn";
constexpr char kLaunchTurnFunction[] = "__klap_launch_turn";
constexpr char kNextTurnFunction[] = "__klap_next_turn";
constexpr char kQueueParameter[] = "__klap_queue";
constexpr char kQueueRegister[] = "%klap_queue";
constexpr char kErrorRegister[] = "%klap_error";
constexpr char kOnceRegister[] = "%klap_once";
constexpr char kIsFirstPredicate[] = "%klap_is_first";
constexpr std::array<const char*, 3> kOwnExtentRegisters = {"%klap_block_x", "%klap_block_y",
                                                            "%klap_block_z"};

// Names of one site end in its number, except for the first site.
std::string numbered(const char* name, size_t number) {
  return number == 0 ? std::string(name) : name + std::to_string(number);
}

}  // namespace

const Function& template_function(const Module& module, const char* name) {
  const Function* f = module.find_function(name);
  if (f == nullptr || !f->is_definition) {
    throw Error(ErrorCode::Internal, fmt::format("the compiled template does not define {}", name));
  }
  return *f;
}

std::string linkage_text(const Function& f) {
  return f.linkage == ptx::Linkage::Weak ? ".weak " : ".visible ";
}

void drop_debug_labels(const Module& m, const Statement& body, Edits& edits) {
  std::map<std::string_view, int> mentions;
  for (uint32_t t = body.tokens.first; t < body.tokens.last; ++t) ++mentions[m.text(t)];
  ptx::for_each_statement(body, [&](const Statement& s) {
    if (s.kind == StatementKind::Label && mentions[m.text(s.head)] == 1) edits.replace(s.tokens, "");
  });
}

namespace {

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

// The marker call's operands, in the order of its parameters.
std::vector<std::string> marker_arguments(const Module& m, const Statement& scope) {
  std::vector<std::string> operands;
  for (const Statement& s : scope.body) {
    if (s.kind != StatementKind::Instruction || !m.is(s.head, "st")) continue;
    operands.emplace_back(m.text(s.operands[1]));
  }
  return operands;
}

// Tells where the child's arguments are, and declares the registers that hold that. `record` is the
// template's operand for the record of this child.
std::string place_arguments(InlineKernel& kernel, const RecordLayout& layout, const ConsumerShape& shape,
                            const std::string& prefix, const std::string& record,
                            const std::string& parameter) {
  kernel.prefix = prefix;
  kernel.arguments = "%" + prefix + "arguments";
  kernel.coherent = shape.feeds || shape.chain == Chain::InOrder || shape.awaits_parent;
  kernel.in_parameters = shape.lanes != 0;
  kernel.places = layout.places;
  std::string text = fmt::format("\t.reg .b64 {0};\n\tmov.b64 {0}, {1};\n", kernel.arguments, record);
  if (!layout.passes_once()) return text;
  kernel.once = "%" + prefix + "once";
  if (shape.lanes != 0) {
    return text + fmt::format("\t.reg .b64 {0};\n\tmov.b64 {0}, {1};\n\tadd.s64 {0}, {0}, {2};\n",
                              kernel.once, parameter, first_arguments(layout, shape.lanes));
  }
  text += fmt::format("\t.reg .b64 {0};\n\tld.param.b64 {0}, [{1}+{2}];\n", kernel.once, parameter,
                      shape.exact ? KLAP_SEQUENCE_ONCE : 0);
  if (!shape.exact) text += fmt::format("\tadd.s64 {0}, {0}, {1};\n", kernel.once, KLAP_ONCE_OFFSET);
  return text;
}

// The text of an extent: a literal, or a register for own extents (own_block_text).
std::string extent_text(const std::array<uint32_t, 3>& block, size_t axis) {
  return block.at(axis) == kOwnExtent ? kOwnExtentRegisters.at(axis) : std::to_string(block.at(axis));
}

// The block that the host launched the parent with, the second parameter of the consumer.
std::string own_block_text(const std::string& parameter) {
  std::string text;
  for (size_t axis = 0; axis < 3; ++axis) {
    text += fmt::format("\n\t.reg .b32 {0};\n\tld.param.u32 {0}, [{1}+{2}];", kOwnExtentRegisters.at(axis),
                        parameter, 4 * axis);
  }
  return text;
}

// The child's body in place of one marker call; `sites` are its own launch sites. The marker's operands are
// copied first. The body runs many times, and its own names must not depend on the template's.
std::string child_text(const Module& child_module, const Function& child, const FedBody& body,
                       const ConsumerShape& shape, const std::vector<std::string>& operands,
                       const std::string& prefix, const std::string& parameter, LineTables& lines,
                       const FeedingSites* sites, const std::vector<HeldArgument>& held) {
  static constexpr std::array<const char*, 12> kNames = {"ctaid_x",  "ctaid_y",  "ctaid_z", "nctaid_x",
                                                         "nctaid_y", "nctaid_z", "tid_x",   "tid_y",
                                                         "tid_z",    "ntid_x",   "ntid_y",  "ntid_z"};
  const size_t names = shape.blocks_differ() || shape.in_one_row() ? kNames.size() : 9;
  if (operands.size() != names + 1) {
    throw Error(ErrorCode::Internal, "the consumer template calls its marker in an unknown form");
  }
  InlineKernel kernel;
  std::string text = "{\n" + place_arguments(kernel, body.layout, shape, prefix, operands[0], parameter);
  kernel.held = held;
  for (size_t axis = 0; axis < 3; ++axis) kernel.ntid[axis] = extent_text(body.block, axis);
  kernel.keep_exits = shape.exact;
  kernel.may_leave = body.may_leave;
  kernel.block_is_real = shape.lanes != 0;
  kernel.loops = shape.loops;
  if (sites != nullptr) {
    kernel.around = sites->in_consumer(prefix);
    text += sites->registers();
  }
  if (shape.warp_block) {
    kernel.warp_block = &*shape.warp_block;
    kernel.groups = shape.pack;
    kernel.group = "%" + prefix + "group";
    text += fmt::format("\t.reg .b32 {0};\n\tmov.u32 {0}, %tid.x;\n\tshr.u32 {0}, {0}, 5;\n", kernel.group);
  }
  if (shape.lanes != 0) {
    // The operand counts from where the template's own parameter begins.
    const std::string begin = "%" + prefix + "parameters";
    text += fmt::format("\t.reg .b64 {0};\n\tmov.b64 {0}, {1};\n\tadd.s64 {2}, {2}, {0};\n", begin, parameter,
                        kernel.arguments);
  }
  const std::array vectors = {&kernel.ctaid, &kernel.nctaid, &kernel.tid, &kernel.ntid};
  for (size_t i = 0; i < names; ++i) {
    const std::string name = fmt::format("%{}{}", prefix, kNames.at(i));
    text += fmt::format("\t.reg .b32 {0};\n\tmov.b32 {0}, {1};\n", name, operands[i + 1]);
    vectors.at(i / 3)->at(i % 3) = name;
  }
  // The text behind the body is the template's again.
  return text + "\t" + inline_kernel(child_module, child, kernel, lines) + "\n\t" +
         lines.head(child_module, child) + "\n\t}";
}

}  // namespace

namespace {

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
  const std::string once = numbered(kOnceRegister, number);
  const std::string is_first = numbered(kIsFirstPredicate, number);
  call.results = {{0, site.buffer}, {8, error}, {16, once}};
  std::string text = inline_function(record, template_function(record, kRecordFunction), call, lines);
  if (recording.layout.passes_once()) text += fmt::format("\n\tsetp.ne.u64 {}, {}, 0;", is_first, once);
  const ArgumentStores stores(m, site, recording.layout, once, is_first);
  if (recording.own) text += own_child_text(m, recording, lines);
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
  if (recording.own) fill += own_child_end();
  edits.replace(site.get_scope->tokens, fmt::format("mov.b64 {}, 1;", site.buffer));
  text += "\n" + fill + "\t" + launch_text(site, error);
  edits.replace(site.launch_scope->tokens, recording.own ? "{\n\t" + text + "\n\t}" : text);
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
  return std::ranges::any_of(
      sites, [](const RecordingSite& site) { return site.own && site.own->most_threads != 0; });
}

// All edits of a recording parent but the ways out.
Edits recording_edits(const FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                      const std::string& name, LineTables& lines, bool in_slices) {
  const Module& m = parent.module;
  Edits edits = copy_with_queues(parent, sites.size(), name, lines, in_slices ? slice_parameter() : "");
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
  for (const auto& [statement, around] : without_own_streams(parent, ""))
    edits.replace(statement->tokens, around.before);
  return edits;
}

// Counts the thread out and ends it; the last one goes on to launch the children.
std::string leave_text(const Module& leave, int number, LineTables& lines) {
  InlineCall call;
  call.prefix = fmt::format("klap_l{}_", number);
  call.arguments = {"%klap_queue"};
  call.results = {{0, "%klap_last"}};
  return inline_function(leave, template_function(leave, kLeaveFunction), call, lines) +
         "\n\tsetp.ne.u32 %klap_is_last, %klap_last, 0;\n\t@%klap_is_last bra $klap_launch;\n\tret;\n";
}

// The text that replaces one `ret`, `exit` or branch to one, which only some threads may take.
std::string way_out_text(const Module& m, const Statement& way, const Module& leave, int number,
                         LineTables& lines) {
  const std::string text = "\t" + leave_text(leave, number, lines);
  if (!way.predicated) return "{\n" + text + "\t}";
  return fmt::format(
      "{{\n\t@{}{} bra $klap_stay{};\n{}$klap_stay{}:\n\t.reg .pred %klap_stay;\n"
      "\tmov.pred %klap_stay, 0;\n\t}}",
      way.predicate_negated ? "" : "!", m.text(way.predicate), number, text, number);
}

}  // namespace

const analysis::Idiom& rewriting_idiom(const Site& site) {
  const analysis::Idiom* idiom = analysis::idioms().by_name(site.idiom->rewrite_with);
  if (idiom == nullptr)
    throw Error(ErrorCode::Internal, "a launch that cannot be rewritten: " + site.idiom->name);
  return *idiom;
}

std::vector<std::string> marker_declarations(const Module& m, const Module& compiled,
                                             const MarkedFunctions& functions) {
  std::vector<std::string> out;
  for (const auto& [marker, name] : functions) {
    if (m.find_function(name) != nullptr) continue;
    const Function* declared = compiled.find_function(marker);
    if (declared == nullptr)
      throw Error(ErrorCode::Internal, fmt::format("the compiled template does not declare {}", marker));
    Edits edits(compiled);
    edits.replace({declared->name_token, declared->name_token + 1}, name);
    out.push_back(edits.apply(declared->tokens) + "\n");
  }
  return out;
}

namespace {

// The text of one of the functions that launch the children in a queue.
std::string launch_queue_text(const char* function, const Site& site, const DeviceLaunch& launch,
                              std::vector<std::string> arguments, LineTables& lines) {
  InlineCall call;
  call.prefix = "klap_d_";
  call.arguments = std::move(arguments);
  const analysis::Idiom& idiom = rewriting_idiom(site);
  call.symbols = {{kGetBufferMarker, idiom.get_buffer}, {kDeviceLaunchMarker, idiom.launch}};
  return fmt::format("\tmov.u64 %klap_consumer, {};\n\t", launch.consumer) +
         inline_function(launch.leave, template_function(launch.leave, function), call, lines) + "\n";
}

// The launches if only the last thread of the grid or group arrives.
std::string launch_children_text(const std::vector<const Site*>& sites,
                                 const std::vector<DeviceLaunch>& launches, LineTables& lines) {
  std::string text;
  for (size_t i = 0; i < sites.size(); ++i) {
    text += launch_queue_text(kLaunchFunction, *sites[i], launches[i],
                              {numbered(kQueueRegister, i), "%klap_consumer"}, lines);
  }
  return text + "\tret;\n";
}

// The launches if the groups take turns, each to launch all of its queues.
std::string launch_in_turns_text(const std::vector<const Site*>& sites,
                                 const std::vector<DeviceLaunch>& launches, LineTables& lines) {
  const Module& leave = launches.front().leave;
  const auto turn = [&](const char* function, std::vector<std::string> arguments) {
    InlineCall call;
    call.prefix = "klap_t_";
    call.arguments = std::move(arguments);
    call.results = {{0, "%klap_turn"}};
    return "\t" + inline_function(leave, template_function(leave, function), call, lines) + "\n";
  };
  std::string text = "\t.reg .b64 %klap_turn;\n\t.reg .pred %klap_no_turn;\n";
  text += turn(kFirstTurnFunction, {kQueueRegister});
  text += "$klap_turns:\n\tsetp.eq.s64 %klap_no_turn, %klap_turn, -1;\n\t@%klap_no_turn ret;\n";
  for (size_t i = 0; i < sites.size(); ++i) {
    text += launch_queue_text(kLaunchTurnFunction, *sites[i], launches[i],
                              {numbered(kQueueRegister, i), "%klap_consumer", "%klap_turn"}, lines);
  }
  return text + turn(kNextTurnFunction, {kQueueRegister, "%klap_turn"}) + "\tbra $klap_turns;\n";
}

}  // namespace

namespace {

// Makes all threads leave as templates/aggregate/leave_grid.cu or leave_chain.cu says. There is one of these
// for each site; the first one counts the threads for all. Returns the declarations of the functions that
// this uses.
std::vector<std::string> add_leaving(const FunctionFacts& parent, const std::vector<const Site*>& sites,
                                     const std::vector<DeviceLaunch>& launches, const analysis::Exits& exits,
                                     Edits& edits, LineTables& lines) {
  const Module& m = parent.module;
  const ptx::TokenRange body = parent.function.body.tokens;
  edits.insert_after(body.first,
                     "\n\t.reg .b64 %klap_consumer;\n\t.reg .b32 %klap_last;\n\t.reg .pred %klap_is_last;\n");
  const Module& leave = launches.front().leave;
  int number = 0;
  for (const Statement* way : exits.ways) {
    edits.replace(way->tokens, way_out_text(m, *way, leave, number, lines));
    ++number;
  }
  std::string end = exits.falls_off_end ? "\t" + leave_text(leave, number, lines) : "";
  const bool in_turns = launches.front().group_blocks != 0 && sites.size() > 1;
  end += "$klap_launch:\n" + (in_turns ? launch_in_turns_text(sites, launches, lines)
                                       : launch_children_text(sites, launches, lines));
  std::vector<std::string> declarations;
  for (size_t i = 0; i < sites.size(); ++i) {
    const analysis::Idiom& idiom = rewriting_idiom(*sites[i]);
    const MarkedFunctions markers = {{kGetBufferMarker, idiom.get_buffer},
                                     {kDeviceLaunchMarker, idiom.launch}};
    for (std::string& text : marker_declarations(m, leave, markers)) declarations.push_back(std::move(text));
    if (!launches[i].declaration.empty()) declarations.push_back(launches[i].declaration);
  }
  edits.insert_before(body.last - 1, "\n" + end);
  return declarations;
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

Generated launching_parent(const FunctionFacts& parent, const std::vector<RecordingSite>& sites,
                           const std::vector<DeviceLaunch>& launches, const std::string& name,
                           LineTables& lines, bool in_slices) {
  Edits edits = recording_edits(parent, sites, name, lines, in_slices);
  if (launches.front().group_blocks != 0 || runs_children(sites)) keep_largest_blocks(parent, edits);
  std::vector<const Site*> launched;
  for (const RecordingSite& site : sites) launched.push_back(&site.site);
  const auto declarations =
      add_leaving(parent, launched, launches, analysis::find_exits(parent, false), edits, lines);
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

// Adds the leaving of a parent whose sites all share a queue. The queue may have no room for a launch. Then
// the program's own launch is made, and a thread that gets no buffer for it may leave.
std::vector<std::string> add_leaving_of_queue(const FunctionFacts& parent, const DeviceLaunch& launch,
                                              Edits& edits, LineTables& lines) {
  keep_largest_blocks(parent, edits);
  return add_leaving(parent, {&parent.sites.front()}, {launch}, analysis::find_exits(parent, true), edits,
                     lines);
}

}  // namespace

Generated feeding_parent(const FunctionFacts& parent, const std::vector<uint32_t>& targets,
                         const Module& record, const std::string& name, LineTables& lines,
                         const DeviceLaunch* launch) {
  Edits edits = copy_with_queues(parent, 1, name, lines);
  const FeedingSites feeding(parent, targets, record, "klap_f_", "%klap_queue", lines);
  edits.insert_after(parent.function.body.tokens.first, feeding.registers());
  surround(feeding.in_parent(), edits);
  std::vector<std::string> declarations;
  if (launch != nullptr) declarations = add_leaving_of_queue(parent, *launch, edits, lines);
  return {name, edits.apply(parent.function.tokens), without_repetition(declarations), {}};
}

Generated chaining_parent(const FunctionFacts& parent, const analysis::Chained& chained_launches,
                          const Module& record, const std::string& name, LineTables& lines,
                          const DeviceLaunch* launch) {
  Edits edits = copy_with_queues(parent, 1, name, lines);
  const bool in_groups = launch != nullptr && launch->group_blocks != 0;
  const ChainedSites chained(parent, chained_launches, record, "%klap_queue", in_groups, lines);
  edits.insert_after(parent.function.body.tokens.first, chained.entry());
  surround(chained.in_parent(), edits);
  std::vector<std::string> declarations = chained.declarations();
  if (launch != nullptr) {
    for (std::string& text : add_leaving_of_queue(parent, *launch, edits, lines))
      declarations.push_back(std::move(text));
  }
  return {name, edits.apply(parent.function.tokens), without_repetition(declarations), {}};
}

std::string consumer_declaration(const Module& consumer, const std::string& name) {
  std::string parameters;
  for (const ptx::Parameter& p : template_function(consumer, kConsumerKernel).parameters) {
    parameters += (parameters.empty() ? "" : ", ") + std::string(consumer.text(p.tokens));
  }
  return fmt::format(".extern .entry {}({})\n;\n", name, parameters);
}

namespace {

// The child's arguments, read into the registers that hold them.
std::string arguments_text(const Function& child, const ConsumerShape& shape,
                           const std::vector<HeldArgument>& held, const std::string& record,
                           const std::string& parameter) {
  InlineKernel kernel;
  std::string text = "{\n" + place_arguments(kernel, shape.layout, shape, "klap_h_", record, parameter);
  kernel.held = held;
  return text + load_held(child, kernel) + "\t}";
}

// The markers of templates/worklist/feed.cu and chain.cu end in the number of the kernel that is meant. Other
// markers have no number.
size_t marked_number(std::string_view marker) {
  size_t number = 0;
  for (const char digit : marker.substr(std::string_view(kChildMarker).size())) {
    if (digit != '_') number = 10 * number + static_cast<size_t>(digit - '0');
  }
  return number;
}

// The sites of the kernel of that number, with names that begin with `prefix`.
FeedingSites sites_of(const FedKernels& fed, size_t number, const std::string& prefix, LineTables& lines) {
  const FedKernel& kernel = fed.kernels.at(number);
  return {kernel.kernel, kernel.targets, fed.record, prefix, "%klap_queue", lines};
}

}  // namespace

Generated consumer_kernel(const Module& child_module, const Function& child, const ConsumerShape& shape,
                          const Module& consumer, const std::string& name, LineTables& lines,
                          const FedKernels* fed) {
  const Function& f = template_function(consumer, kConsumerKernel);
  // Variables in shared memory stand in the kernel's body, so the template's unit declares none.
  if (!consumer.variables.empty())
    throw Error(ErrorCode::Internal, "the consumer template declares variables");
  const analysis::ControlFlow flow(consumer, f);
  const analysis::LocalNames names(consumer, f.body);
  Edits edits(consumer);
  edits.replace({f.tokens.first, f.name_token}, linkage_text(child) + ".entry");
  edits.replace({f.name_token, f.name_token + 1}, name);
  lines.keep(consumer, f.body, edits);
  // Other consumers have the template's block and launch bounds.
  if (shape.lanes != 0 && !child.attributes.empty())
    edits.insert_before(f.body.tokens.first, std::string(child_module.text(child.attributes)) + "\n");
  edits.insert_after(f.body.tokens.first, "\n\t" + lines.head(child_module, child));
  if (fed != nullptr) {
    edits.insert_after(f.body.tokens.first,
                       fmt::format("\n\t.reg .b64 %klap_queue;\n\tld.param.u64 %klap_queue, [{}];\n",
                                   f.parameters.at(0).name));
  }
  if (shape.has_own_extents())
    edits.insert_after(f.body.tokens.first, own_block_text(f.parameters.at(1).name));
  const std::string& parameter = f.parameters.front().name;
  const std::vector<HeldArgument> held = held_arguments(child_module, child, "klap_held", shape.held_words);
  std::string registers;
  for (const HeldArgument& argument : held)
    registers += fmt::format("\n\t.reg .b{} {};", argument.bits, argument.name);
  edits.insert_after(f.body.tokens.first, registers);
  std::vector<std::string> spliced, declarations;
  const auto text = [&](size_t number, const Statement& scope) {
    const std::string prefix = fmt::format("klap_c{}_", spliced.size());
    const std::vector<std::string> operands = marker_arguments(consumer, scope);
    if (fed == nullptr) {
      const FedBody only = {shape.block, shape.layout, shape.may_leave, &child, shape.shared_bytes};
      const FedBody& body = shape.bodies.empty() ? only : shape.bodies.at(number);
      return child_text(child_module, *body.kernel, body, shape, operands, prefix, parameter, lines, nullptr,
                        held);
    }
    const FeedingSites sites = sites_of(*fed, number, prefix + "f_", lines);
    for (std::string& declaration : sites.declarations()) declarations.push_back(std::move(declaration));
    return child_text(child_module, fed->kernels[number].kernel.function, shape.bodies.at(number), shape,
                      operands, prefix, parameter, lines, &sites, {});
  };
  for (const analysis::FlatInstruction& i : flow.instructions()) {
    const auto call = analysis::parse_call(consumer, *i.statement, names);
    if (call && call->callee == kArgumentsMarker) {
      const std::string record = marker_arguments(consumer, *i.scope).at(0);
      edits.replace(i.scope->tokens,
                    held.empty() ? "" : arguments_text(child, shape, held, record, parameter));
    }
    if (!call || !call->callee.starts_with(kChildMarker)) continue;
    spliced.push_back(text(marked_number(call->callee), *i.scope));
    edits.replace(i.scope->tokens, spliced.back());
  }
  if (spliced.empty()) throw Error(ErrorCode::Internal, "the consumer template does not call its marker");
  return {name, edits.apply(f.tokens), std::move(declarations), std::move(spliced)};
}

}  // namespace klap::transform
