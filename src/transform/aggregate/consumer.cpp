#include "transform/aggregate/consumer.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx-patterns/templates/aggregate/range_parts.h"
#include "ptx-patterns/templates/common/queue.h"
#include "ptx/edit.h"
#include "transform/aggregate/warp.h"
#include "transform/aggregate/worklist.h"
#include "transform/runtime_calls/executor_sites.h"
#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

using ptx::Edits;
using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

constexpr char kConsumerKernel[] = "__klap_consumer";
constexpr char kChildMarker[] = "__klap_child_body";
constexpr char kJoinFunction[] = "__klap_join_parts";
constexpr char kArgumentsMarker[] = "__klap_child_arguments";
constexpr std::array<const char*, 3> kInheritedExtentRegisters = {"%klap_block_x", "%klap_block_y",
                                                                  "%klap_block_z"};

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
// template's operand for the record of this child. `parameter` is the consumer's parameter, or the register
// with its value if it is a part of the parent's kernel.
std::string place_arguments(InlineKernel& kernel, const RecordLayout& layout, const ConsumerShape& shape,
                            const std::string& prefix, const std::string& record,
                            const std::string& parameter) {
  kernel.prefix = prefix;
  kernel.arguments = "%" + prefix + "arguments";
  kernel.coherent =
      shape.is_recursive || shape.loop_queue == LoopQueue::InOrder || shape.awaits_parent || shape.fused;
  kernel.in_parameters = shape.lanes != 0;
  kernel.places = layout.places;
  std::string text = fmt::format("\t.reg .b64 {0};\n\tmov.b64 {0}, {1};\n", kernel.arguments, record);
  if (!layout.passes_once()) return text;
  kernel.once = "%" + prefix + "once";
  if (shape.lanes != 0) {
    return text + fmt::format("\t.reg .b64 {0};\n\tmov.b64 {0}, {1};\n\tadd.s64 {0}, {0}, {2};\n",
                              kernel.once, parameter, first_arguments(layout, shape.lanes));
  }
  text += fmt::format("\t.reg .b64 {};\n", kernel.once);
  text += shape.fused ? fmt::format("\tmov.b64 {}, {};\n", kernel.once, parameter)
                      : fmt::format("\tld.param.b64 {}, [{}+{}];\n", kernel.once, parameter,
                                    shape.exact ? KLAP_SEQUENCE_ONCE : 0);
  if (!shape.exact) text += fmt::format("\tadd.s64 {0}, {0}, {1};\n", kernel.once, KLAP_ONCE_OFFSET);
  return text;
}

// The text of an extent: a literal, or a register for inherited extents (inherited_block_text).
std::string extent_text(const std::array<uint32_t, 3>& block, size_t axis) {
  return block.at(axis) == kInheritedExtent ? kInheritedExtentRegisters.at(axis)
                                            : std::to_string(block.at(axis));
}

// The block that the host launched the parent with, the second parameter of the consumer.
std::string inherited_block_text(const std::string& parameter) {
  std::string text;
  for (size_t axis = 0; axis < 3; ++axis) {
    text += fmt::format("\n\t.reg .b32 {0};\n\tld.param.u32 {0}, [{1}+{2}];",
                        kInheritedExtentRegisters.at(axis), parameter, 4 * axis);
  }
  return text;
}

// A body's own launch sites: what stands around its statements, and the texts before and behind it.
struct SitesInBody {
  Surroundings around;
  std::string before, behind;
};

// The operands by which the executor's markers go on where others end: the block, and what its threads share.
constexpr size_t kMarkedExtents = 12;

// The number of threads of the child's block.
std::string count_threads_text(const std::string& prefix) {
  return fmt::format(
      "\t.reg .b32 %{0}threads;\n\tmul.lo.u32 %{0}threads, %{0}ntid_x, %{0}ntid_y;\n"
      "\tmul.lo.u32 %{0}threads, %{0}threads, %{0}ntid_z;\n",
      prefix);
}

// The number of parts that are run as one.
std::string merged_parts(const analysis::RangeSplit& range, const std::string& prefix) {
  return range.merges ? "%" + prefix + "ctaid_y" : "1";
}

// Replaces the ends of a child's range by those of the parts that are run as one, of which `ctaid_x` is the
// first. Where the range is not cut, which `uncut` says, a part has the next threads of the program's block.
std::string take_part_text(const analysis::RangeSplit& range, const std::string& prefix,
                           const std::string& begin, const std::string& end) {
  static constexpr char kText[] = R"(
	.reg .b32 %{0}next, %{0}step;
	.reg .pred %{0}uncut, %{0}more;
	setp.gt.u32 %{0}uncut, {1}, {5};
	setp.gt.or.u32 %{0}uncut, {2}, {5}, %{0}uncut;
	sub.s32 %{0}next, {2}, {1};
	setp.gt.or.s32 %{0}uncut, %{0}next, {6}, %{0}uncut;
	selp.b32 %{0}step, {4}, {3}, %{0}uncut;
	mad.lo.s32 {1}, %{0}ctaid_x, %{0}step, {1};
	add.u32 %{0}next, %{0}ctaid_x, {7};
	setp.lt.and.u32 %{0}more, %{0}next, %{0}nctaid_x, !%{0}uncut;
	@%{0}more mad.lo.s32 {2}, {3}, {7}, {1};
)";
  return fmt::format(kText, prefix, begin, end, range.elements, range.threads, KLAP_MOST_RANGE_END,
                     KLAP_MOST_RANGE_ELEMENTS, merged_parts(range, prefix));
}

// Gives the body the parts of the child's range that belong to its virtual block. The body is then the only
// block of a grid, as the program launches it.
std::string range_part_text(const Module& child_module, const Function& child,
                            const analysis::RangeSplit& range, const std::string& prefix,
                            InlineKernel& kernel) {
  kernel.preloaded.clear();
  std::string text;
  const auto add_end = [&](uint32_t offset, const std::string& name) {
    const std::vector<PreloadedArgument> reads = argument_reads(child_module, child, offset);
    for (PreloadedArgument read : reads) {
      read.name = name;
      kernel.preloaded.push_back(read);
    }
    text += fmt::format("\t.reg .b32 {};\n", name);
    return reads.empty() ? "" : load_preloaded(child, kernel.preloaded.back(), kernel);
  };
  const std::string begin = "%" + prefix + "begin", end = "%" + prefix + "end";
  if (range.begin_offset) {
    text += add_end(*range.begin_offset, begin);
  } else {
    text += fmt::format("\t.reg .b32 {0};\n\tmov.u32 {0}, 0;\n", begin);
  }
  text += add_end(range.end_offset, end);
  if (range.joined && range.higher.behind != nullptr) {
    kernel.higher = &range.higher;
    for (PreloadedArgument whole : kernel.preloaded) {
      whole.name += "_whole";
      kernel.elsewhere.push_back(whole);
    }
    for (const std::string& part : {begin, end})
      text += fmt::format("\t.reg .b32 {0}_whole;\n\tmov.u32 {0}_whole, {0};\n", part);
  }
  text += take_part_text(range, prefix, begin, end);
  if (!range.begin_offset) {
    kernel.higher = &range.higher;
    kernel.higher_index = "%" + prefix + "higher";
    text += fmt::format("\t.reg .b32 {0};\n\tadd.s32 {0}, {1}, {2};\n", kernel.higher_index, kernel.tid[0],
                        begin);
  }
  kernel.ctaid = {"0", "0", "0"};
  kernel.nctaid = {"1", "1", "1"};
  return text;
}

// The body beside a second one for parts of a range that is not cut, whose loop steps by the width of the
// program's block. Apart, each of them has a width that the assembler knows.
template <class Body>
std::string beside_uncut(const analysis::RangeSplit& range, const std::string& prefix,
                         const InlineKernel& kernel, const Body& body) {
  InlineKernel uncut = kernel;
  uncut.prefix = prefix + "u_";
  uncut.higher = &range.higher;
  uncut.wider_block = std::to_string(range.program_threads);
  const std::string cut_text = body(kernel), uncut_text = body(uncut);
  return fmt::format(
      "@%{0}uncut bra ${0}uncut;\n\t{1}\n\tbra.uni ${0}done;\n${0}uncut:\n\t{2}\n${0}done:\n"
      "\tmov.u32 %{0}next, 0;\n",
      prefix, cut_text, uncut_text);
}

// Joins the parts behind their loop. The body that goes on has the totals in the registers of its sums.
void join_parts(const analysis::RangeSplit& range, const RecordLayout& layout, const Module& join,
                const std::string& prefix, InlineKernel& kernel, LineTables& lines) {
  const analysis::JoinedParts& joined = *range.joined;
  const auto own = [&](std::string_view name) { return fmt::format("%{}joined_{}", prefix, name); };
  const std::string record = own("record"), goes_on = own("goes_on"), flag = own("flag");
  InlineCall call;
  call.prefix = kernel.prefix + "j_";
  call.arguments = {record, merged_parts(range, prefix), "%" + prefix + "nctaid_x", kernel.tid[0]};
  call.results[0] = flag;
  std::string text =
      fmt::format("\t.reg .b64 {0};\n\t.reg .b32 {1};\n\t.reg .pred {2};\n\tsub.s64 {0}, {3}, {4};\n", record,
                  flag, goes_on, kernel.arguments, layout.arguments_offset);
  std::string back;
  uint32_t place = sizeof(uint32_t);  // in the template's result
  for (size_t i = 0; const analysis::JoinedParts::Sum& sum : joined.sums) {
    const uint32_t bytes = sum.operation.ends_with("64") ? 8 : 4;
    const std::string total = own(fmt::format("sum{}", i++)), reg = with_prefix(sum.reg, kernel.prefix);
    place = round_up(place, bytes);
    call.arguments.push_back(reg);
    call.results[place] = total;
    place += bytes;
    text += fmt::format("\t.reg .b{} {};\n", 8 * bytes, total);
    back += fmt::format("\tmov.b{} {}, {};\n", 8 * bytes, reg, total);
  }
  text += "\t" + inline_function(join, template_function(join, kJoinFunction), call, lines) + "\n" + back;
  kernel.parting = joined.behind;
  kernel.parting_text = text + fmt::format("\tsetp.ne.u32 {}, {}, 0;\n", goes_on, flag);
  kernel.parting_predicate = goes_on;
}

// The shared memory in which variables of several kernels lie over each other.
constexpr char kOverlay[] = "klap_overlay";

// The child's body in place of one marker call; `sites` are its own launch sites. The marker's operands are
// copied first. The body runs many times, and its own names must not depend on the template's.
std::string child_text(const Module& child_module, const Function& child, const ConsumerBody& body,
                       const ConsumerShape& shape, const std::vector<std::string>& operands,
                       const std::string& prefix, const std::string& parameter, LineTables& lines,
                       const SitesInBody* sites, const std::vector<PreloadedArgument>& preloaded,
                       const Module* join) {
  static constexpr std::array<const char*, kMarkedExtents> kNames = {
      "ctaid_x", "ctaid_y", "ctaid_z", "nctaid_x", "nctaid_y", "nctaid_z",
      "tid_x",   "tid_y",   "tid_z",   "ntid_x",   "ntid_y",   "ntid_z"};
  const bool has_block = shape.blocks_differ() || shape.in_one_row() || shape.is_executed;
  const size_t names = has_block ? kNames.size() : 9;
  if (operands.size() != names + 1 + (shape.is_executed ? 1 : 0)) {
    throw Error(ErrorCode::Internal, "the consumer template calls its marker in an unknown form");
  }
  InlineKernel kernel;
  std::string text = "{\n" + place_arguments(kernel, body.layout, shape, prefix, operands[0], parameter);
  kernel.preloaded = preloaded;
  for (size_t axis = 0; axis < 3; ++axis) kernel.ntid[axis] = extent_text(body.block, axis);
  kernel.keep_exits = shape.exact;
  kernel.may_exit = body.may_exit;
  kernel.block_is_real = shape.lanes != 0;
  kernel.loops = shape.loops;
  kernel.overlaid = body.overlaid;
  kernel.overlay = kOverlay;
  if (sites != nullptr) {
    kernel.around = sites->around;
    text += sites->before;
  }
  if (shape.is_executed)
    text += fmt::format("\t.reg .b64 %{0}block;\n\tmov.b64 %{0}block, {1};\n", prefix, operands.back());
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
  if (body.counts_barriers) text += count_threads_text(prefix);
  if (shape.range) {
    text += range_part_text(child_module, child, *shape.range, prefix, kernel);
    kernel.streamed = &shape.range->streamed;
  }
  const auto inlined = [&](InlineKernel of_body) {
    if (join != nullptr) join_parts(*shape.range, body.layout, *join, prefix, of_body, lines);
    return inline_kernel(child_module, child, of_body, lines);
  };
  const bool has_uncut_parts = shape.range && shape.range->uncut_parts() != 1;
  text += "\t" + (has_uncut_parts ? beside_uncut(*shape.range, prefix, kernel, inlined) : inlined(kernel));
  // The text behind the body is the template's again.
  return text + "\n\t" + lines.head(child_module, child) + "\n" + (sites == nullptr ? "" : sites->behind) +
         "\t}";
}

// The child's arguments, read into the registers that hold them.
std::string arguments_text(const Function& child, const ConsumerShape& shape,
                           const std::vector<PreloadedArgument>& preloaded, const std::string& record,
                           const std::string& parameter) {
  InlineKernel kernel;
  std::string text = "{\n" + place_arguments(kernel, shape.layout, shape, "klap_h_", record, parameter);
  kernel.preloaded = preloaded;
  return text + load_preloaded(child, kernel) + "\t}";
}

// The markers of templates/worklist/worklist.cu and loop.cu end in the number of the kernel that is meant.
// Other markers have no number.
size_t marked_number(std::string_view marker) {
  size_t number = 0;
  for (const char digit : marker.substr(std::string_view(kChildMarker).size())) {
    if (digit != '_') number = 10 * number + static_cast<size_t>(digit - '0');
  }
  return number;
}

// The launch sites of a kernel of the consumer, whose body has names that begin with `prefix`. Declarations
// of what they call are added to `declarations`.
SitesInBody sites_in_body(const GroupKernels& group_kernels, const GroupKernel& kernel,
                          const ConsumerShape& shape, const std::string& prefix, bool counts_barriers,
                          LineTables& lines, std::vector<std::string>& declarations) {
  constexpr char kQueue[] = "%klap_queue";
  SitesInBody out;
  std::vector<std::string> used;
  if (shape.is_executed) {
    const ExecutorSites sites(kernel.kernel, kernel.targets, group_kernels.record, prefix + "f_", kQueue,
                              lines);
    const std::string block = "%" + prefix + "block", self = "%" + prefix + "arguments";
    const std::string threads = counts_barriers ? "%" + prefix + "threads" : "";
    out = {sites.in_executor(prefix, self, block, threads), sites.registers(), sites.behind(self, block)};
    used = sites.declarations();
  } else {
    const WorklistSites sites(kernel.kernel, kernel.targets, group_kernels.record, prefix + "f_", kQueue,
                              lines);
    out = {sites.in_consumer(prefix), sites.registers(), ""};
    used = sites.declarations();
  }
  for (std::string& declaration : used) declarations.push_back(std::move(declaration));
  return out;
}

// The body that a consumer of one kernel runs.
ConsumerBody only_body(const ConsumerShape& shape, const Function& child) {
  return {shape.block, shape.layout, shape.may_exit, &child, shape.shared_bytes};
}

}  // namespace

std::string consumer_text(const Module& child_module, const Function& child, const ConsumerShape& shape,
                          const Module& consumer, const std::array<std::string, 3>& operands,
                          LineTables& lines) {
  const ConsumerBody body = only_body(shape, child);
  InlineCall call;
  call.prefix = "klap_w_";
  call.arguments = {operands.begin(), operands.end()};
  call.body_marker = kChildMarker;
  call.body = [&](const std::vector<std::string>& marked) {
    return child_text(child_module, child, body, shape, marked, "klap_c_", operands.front(), lines, nullptr,
                      {}, nullptr);
  };
  return inline_function(consumer, template_function(consumer, kConsumerKernel), call, lines);
}

std::string consumer_declaration(const Module& consumer, const std::string& name) {
  std::string parameters;
  for (const ptx::Parameter& p : template_function(consumer, kConsumerKernel).parameters) {
    parameters += (parameters.empty() ? "" : ", ") + std::string(consumer.text(p.tokens));
  }
  return fmt::format(".extern .entry {}({})\n;\n", name, parameters);
}

Generated consumer_kernel(const Module& child_module, const Function& child, const ConsumerShape& shape,
                          const Module& consumer, const std::string& name, LineTables& lines,
                          const GroupKernels* group_kernels, const Module* join) {
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
  if (group_kernels != nullptr) {
    edits.insert_after(f.body.tokens.first,
                       fmt::format("\n\t.reg .b64 %klap_queue;\n\tld.param.u64 %klap_queue, [{}];\n",
                                   f.parameters.at(0).name));
  }
  if (shape.overlay_bytes != 0) {
    edits.insert_after(f.body.tokens.first, fmt::format("\n\t.shared .align {} .b8 {}[{}];",
                                                        shape.overlay_align, kOverlay, shape.overlay_bytes));
  }
  if (shape.has_inherited_extents())
    edits.insert_after(f.body.tokens.first, inherited_block_text(f.parameters.at(1).name));
  const std::string& parameter = f.parameters.front().name;
  const std::vector<PreloadedArgument> preloaded =
      preloaded_arguments(child_module, child, "klap_preloaded", shape.preloaded_words);
  std::string registers;
  for (const PreloadedArgument& argument : preloaded)
    registers += fmt::format("\n\t.reg .b{} {};", argument.bits, argument.name);
  edits.insert_after(f.body.tokens.first, registers);
  std::vector<std::string> spliced, declarations;
  const auto text = [&](size_t number, const Statement& scope) {
    const std::string prefix = fmt::format("klap_c{}_", spliced.size());
    const std::vector<std::string> operands = marker_arguments(consumer, scope);
    if (group_kernels == nullptr) {
      const ConsumerBody only = only_body(shape, child);
      const ConsumerBody& body = shape.bodies.empty() ? only : shape.bodies.at(number);
      return child_text(child_module, *body.kernel, body, shape, operands, prefix, parameter, lines, nullptr,
                        preloaded, join);
    }
    const GroupKernel& kernel = group_kernels->kernels.at(number);
    const SitesInBody sites = sites_in_body(*group_kernels, kernel, shape, prefix,
                                            shape.bodies.at(number).counts_barriers, lines, declarations);
    return child_text(child_module, kernel.kernel.function, shape.bodies.at(number), shape, operands, prefix,
                      parameter, lines, &sites, {}, nullptr);
  };
  for (const analysis::FlatInstruction& i : flow.instructions()) {
    const auto call = analysis::parse_call(consumer, *i.statement, names);
    if (call && call->callee == kArgumentsMarker) {
      const std::string record = marker_arguments(consumer, *i.scope).at(0);
      edits.replace(i.scope->tokens,
                    preloaded.empty() ? "" : arguments_text(child, shape, preloaded, record, parameter));
    }
    if (!call || !call->callee.starts_with(kChildMarker)) continue;
    spliced.push_back(text(marked_number(call->callee), *i.scope));
    edits.replace(i.scope->tokens, spliced.back());
  }
  if (spliced.empty()) throw Error(ErrorCode::Internal, "the consumer template does not call its marker");
  return {name, edits.apply(f.tokens), std::move(declarations), std::move(spliced)};
}

}  // namespace klap::transform
