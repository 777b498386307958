#include "transform/promotion/promote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "analysis/values/values.h"
#include "ptx-patterns/templates/promote/promote.h"
#include "ptx/edit.h"
#include "transform/promotion/promoted_batch.h"
#include "transform/promotion/promoted_body.h"
#include "transform/promotion/residency.h"
#include "transform/runtime_calls/private_streams.h"
#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

using analysis::CarriedArgument;
using analysis::ChainArgument;
using analysis::ChainFacts;
using analysis::FunctionFacts;
using analysis::LinkArgument;
using analysis::LinkCondition;
using ptx::Edits;
using ptx::Function;
using ptx::Module;
using ptx::Statement;

constexpr char kPromotedKernel[] = "__klap_promoted";
constexpr char kAcquireFunction[] = "__klap_link_acquire";
constexpr char kCombineFunction[] = "__klap_link_combine";
constexpr char kReleaseFunction[] = "__klap_link_release";
constexpr char kNextBufferFunction[] = "__klap_next_buffer";
constexpr char kNextLaunchFunction[] = "__klap_next_launch";
constexpr char kChainRegister[] = "%klap_chain";
constexpr char kLinkRegister[] = "%klap_link";
constexpr char kBodyPrefix[] = "klap_b_";

// The additions to the kernel's own parameters: names, and the operands that are launched with them.
struct PromotedKernel {
  std::string name;
  std::vector<std::string> added;  // names of the parameters: the chain; where it launches, the places
};

// The device runtime's functions that the program's own launch calls, by the templates' names for them.
MarkedFunctions launch_functions(const FunctionFacts& kernel) {
  const analysis::Idiom& idiom = rewriting_idiom(kernel.sites.front());
  return {{kGetBufferMarker, idiom.get_buffer}, {kDeviceLaunchMarker, idiom.launch}};
}

// Launches the next link's block, for the thread that calls, in a scope of its own (templates/
// promote_launch.cu). The link is in kLinkRegister; `is_new` is an operand.
std::string launch_text(const PromotedParts& parts, const PromotedKernel& promoted, const Module& launch,
                        const std::string& is_new) {
  const auto call = [&](const char* function, std::vector<std::string> arguments) {
    InlineCall inlined;
    inlined.prefix = "klap_d_";
    inlined.arguments = std::move(arguments);
    inlined.results = {{0, "%klap_next_buffer"}};
    for (const auto& [marker, name] : launch_functions(parts.kernel)) inlined.symbols[marker] = name;
    return "\t" + inline_function(launch, template_function(launch, function), inlined, parts.lines) + "\n";
  };
  std::string text =
      "{\n\t.reg .b64 %klap_next_kernel, %klap_next_buffer, %klap_next_chain, %klap_next_places;\n"
      "\t.reg .pred %klap_no_buffer;\n";
  text += fmt::format("\tld.param.u64 %klap_next_chain, [{}];\n\tld.param.u64 %klap_next_places, [{}];\n",
                      promoted.added[0], promoted.added[1]);
  text += fmt::format("\tmov.u64 %klap_next_kernel, {};\n", promoted.name);
  text += call(kNextBufferFunction,
               {"%klap_next_chain", kLinkRegister, "%klap_next_places", "%klap_next_kernel", is_new});
  text += "\tsetp.eq.u64 %klap_no_buffer, %klap_next_buffer, 0;\n" +
          copy_parameters_text(parts, "%klap_next_buffer", "@!%klap_no_buffer ");
  const uint32_t at = queue_parameter_offset(parts.kernel.function);
  text += fmt::format(
      "\t@!%klap_no_buffer st.u64 [%klap_next_buffer+{}], %klap_next_chain;\n"
      "\t@!%klap_no_buffer st.u64 [%klap_next_buffer+{}], %klap_next_places;\n",
      at, at + 8);
  return text + call(kNextLaunchFunction, {kLinkRegister, "%klap_next_buffer"}) + "\t}";
}

// The site and the boundary, in a body whose names have the prefix and whose link is in the register.
class LinkText {
 public:
  LinkText(const PromotedParts& parts, const PromotedShape& shape, const PromotionTemplates& templates,
           const PromotedKernel& promoted, std::string prefix, std::string link)
      : parts_(parts),
        shape_(shape),
        link_template_(templates.link),
        launch_(templates.launch),
        promoted_(promoted),
        site_(*parts.chain.site),
        prefix_(std::move(prefix)),
        link_(std::move(link)) {}

  LinkBody body() {
    LinkBody body;
    body.prefix = prefix_;
    body.link = link_;
    body.around = without_private_streams(parts_.kernel, prefix_);
    for (const analysis::ErrorQuery& query : parts_.kernel.error_queries)
      body.around[query.scope] = {set_zero(query.result), "", true};
    launch(body.around);
    const bool has_boundary = shape_.mode != PromotionMode::Aggregated;
    if (has_boundary) {
      body.boundary = outermost(parts_.chain.boundary, body.around);
      body.at_boundary = boundary();
      check_moved(*body.boundary);
    }
    order_barriers(body.around);
    return body;
  }

  // The first thread's values, combined, where the look-back takes them from.
  [[nodiscard]] std::string store_values() const {
    std::string text =
        "\t.reg .pred %klap_is_first;\n\t.reg .b32 %klap_at, %klap_value32;\n\t.reg .b64 %klap_value64;\n"
        "\tmov.u32 %klap_at, %tid.x;\n";
    for (const char* axis : {"y", "z"}) {
      text += fmt::format("\tmov.u32 %klap_value32, %tid.{};\n\tor.b32 %klap_at, %klap_at, %klap_value32;\n",
                          axis);
    }
    text += "\tsetp.eq.u32 %klap_is_first, %klap_at, 0;\n";
    for (const ChainArgument& argument : parts_.chain.arguments) {
      if (argument.kind == LinkArgument::Postponed) text += store_value(argument);
    }
    return text;
  }

  [[nodiscard]] std::string combine() const { return call(kCombineFunction); }

 private:
  [[nodiscard]] std::string own(const std::string& operand) const {
    return part_operand(parts_, operand, prefix_);
  }

  // A statement, also where there is nothing to set: a label may stand in front.
  [[nodiscard]] std::string set_zero(const std::string& result) const {
    if (result.empty()) return "{\n\t.reg .b32 %klap_none;\n\tmov.b32 %klap_none, 0;\n\t}\n";
    return fmt::format("mov.b32 {}, 0;\n", own(result));
  }

  [[nodiscard]] std::string call(const char* function) const {
    InlineCall call;
    call.prefix = "klap_l_";
    call.arguments = {kChainRegister, link_};
    return inline_function(link_template_, template_function(link_template_, function), call, parts_.lines);
  }

  void launch(Surroundings& around) const {
    around[site_.get_scope] = {fmt::format("mov.b64 {}, 16;\n", own(site_.buffer)), "", true};
    for (const analysis::Argument& argument : site_.arguments) around[argument.store] = {"", "", true};
    std::string launch = set_zero(site_.result);
    if (!shape_.combines) {
      for (const ChainArgument& argument : parts_.chain.arguments)
        around[argument.store].before += store_text(argument);
      // If the launch tells that the next link exists, its block can also be launched there.
      if (shape_.launches && shape_.condition == LinkCondition::AtSite)
        launch = launch_text(parts_, promoted_, *launch_, "1") + "\n\t" + launch;
      launch = call(kReleaseFunction) + "\n\t" + launch;
    }
    around[site_.launch_scope] = {launch, "", true};
    drop_callee_address(around);
  }

  // The store of an argument that is passed on, or that shares its words.
  [[nodiscard]] std::string store_text(const ChainArgument& argument) const {
    if (argument.kind == LinkArgument::Unchanged || !shape_.passes(argument.offset, argument.bytes))
      return {};
    const uint32_t at = KLAP_LINK_AREA + 2 * shape_.area_bytes + argument.offset;
    return fmt::format("st.shared{} [{}+{}], {};\n\t", argument.type, link_, at, own(argument.source));
  }

  // `mov.u64 %rd, kernel;` whose register only fed the launch: without it the variant does not refer to the
  // program's kernel.
  void drop_callee_address(Surroundings& around) const {
    const auto& definitions = parts_.kernel.data.definitions(site_.callee_operand);
    const auto& uses = parts_.kernel.data.uses(site_.callee_operand);
    if (definitions.size() != 1 || uses.size() != 1) return;
    const Statement& definition = *parts_.kernel.flow.instructions()[definitions[0]].statement;
    if (!parts_.kernel.module.is(definition.head, "mov") || definition.predicated) return;
    around[&definition] = {fmt::format("mov.b64 {}, 0;\n", own(site_.callee_operand)), "", true};
  }

  // The scope to edit for a statement: a statement of a scope that is replaced stands for that scope.
  [[nodiscard]] const Statement* outermost(const Statement* statement, const Surroundings& around) const {
    const analysis::ControlFlow& flow = parts_.kernel.flow;
    const Statement* out = statement;
    const Statement* scope = flow.instructions()[flow.index_of(statement)].scope;
    for (; scope != nullptr; scope = flow.enclosing(scope)) {
      const auto found = around.find(scope);
      if (found != around.end() && found->second.instead) out = scope;
    }
    return out;
  }

  // The code that gets the values that earlier links passed on, for all threads.
  [[nodiscard]] std::string boundary() const {
    if (!shape_.combines) return call(kAcquireFunction);
    return shape_.batch > 1 ? "" : "{\n" + store_values() + "\t" + combine() + "\n\t}";
  }

  [[nodiscard]] std::string store_value(const ChainArgument& argument) const {
    const CarriedArgument& carried = *argument.carried;
    const std::string value = fmt::format("%klap_value{}", 8 * argument.bytes);
    const std::string type = carried.operation.substr(carried.operation.find('.'));
    std::string text;
    for (size_t i = 0; i < carried.values.size(); ++i) {
      const std::string operand = own(carried.values[i]);
      text += i == 0 ? fmt::format("\tmov{} {}, {};\n", type, value, operand)
                     : fmt::format("\t{0} {1}, {1}, {2};\n", carried.operation, value, operand);
    }
    const uint32_t at = KLAP_LINK_AREA + shape_.area_bytes + argument.offset;
    text +=
        fmt::format("\t@%klap_is_first st.shared.b{} [{}+{}], {};\n", 8 * argument.bytes, link_, at, value);
    return text;
  }

  // Checks that the moved instructions mean the same registers at the boundary.
  void check_moved(const Statement& boundary) const {
    const analysis::ControlFlow& flow = parts_.kernel.flow;
    std::set<const Statement*> visible = {&parts_.kernel.function.body};
    const uint32_t at = flow.index_of(parts_.chain.boundary);
    for (const Statement* scope = flow.instructions()[at].scope; scope != nullptr;
         scope = flow.enclosing(scope)) {
      if (scope != &boundary) visible.insert(scope);
    }
    const analysis::VirtualRegisters registers(flow);
    for (const Statement* moved : parts_.chain.moved) {
      for (const analysis::Access& access : registers.accesses(flow.index_of(moved))) {
        if (visible.contains(registers[access.reg].scope)) continue;
        throw Error(ErrorCode::Unsupported, "a register of a scope of its own cannot be set elsewhere")
            .kernel(parts_.kernel.function.name);
      }
    }
  }

  // Memory that threads have loaded before a barrier that leads to the launch may be overwritten by the next
  // link (templates/promote/promote_link.cu). So a fence stands before the barrier.
  void order_barriers(Surroundings& around) const {
    const Module& m = parts_.kernel.module;
    const analysis::ControlFlow& flow = parts_.kernel.flow;
    const uint32_t launch = flow.index_of(site_.launch_call);
    const bool from_boundary = shape_.mode != PromotionMode::Aggregated;
    const uint32_t boundary = from_boundary ? flow.index_of(parts_.chain.boundary) : 0;
    for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
      const Statement& s = *flow.instructions()[i].statement;
      if (!(m.is(s.head, "bar") || m.is(s.head, "barrier")) || m.has_modifier(s, ".warp")) continue;
      if (!flow.can_follow(i, launch)) continue;
      if (from_boundary && i != boundary && !flow.can_follow(boundary, i)) continue;
      const Statement* const at = outermost(&s, around);
      around[at].before = "fence.acq_rel.gpu;\n\t" + around[at].before;
    }
  }

  const PromotedParts& parts_;
  const PromotedShape& shape_;
  const Module& link_template_;
  const Module* launch_;
  const PromotedKernel& promoted_;
  const analysis::Site& site_;
  const std::string prefix_, link_;
};

// The operands that a marker's call passes, and the register of its result. Its scope may hold other
// instructions as well, such as those that compute the operands.
struct MarkerCall {
  std::vector<std::string> arguments;
  std::string result;
  std::string before, after;
};
MarkerCall read_marker(const Module& m, const Statement& scope) {
  MarkerCall out;
  bool is_called = false;
  for (const Statement& s : scope.body) {
    if (s.kind != ptx::StatementKind::Instruction) continue;
    if (m.is(s.head, "st") && m.has_modifier(s, ".param")) {
      out.arguments.emplace_back(m.text(s.operands[1]));
    } else if (m.is(s.head, "ld") && m.has_modifier(s, ".param")) {
      out.result = m.text(s.operands[0]);
    } else if (m.is(s.head, "call")) {
      is_called = true;
    } else {
      (is_called ? out.after : out.before) += fmt::format("\t{}\n", m.text(s.tokens));
    }
  }
  return out;
}

// The text in place of one marker. Its operands are copied first, because the text behind it has names of its
// own.
class Markers {
 public:
  Markers(const PromotedParts& parts, const PromotedShape& shape, const PromotionTemplates& templates,
          const PromotedKernel& promoted)
      : parts_(parts), shape_(shape), templates_(templates), promoted_(promoted) {}

  // Empty for a function that is no marker.
  std::string text(std::string_view marker, const MarkerCall& call) {
    std::string body;
    if (marker == "__klap_copy_arguments" && call.arguments.size() == 1) {
      body = named("area", call.arguments[0]) + copy_arguments_text(parts_, "%klap_area");
    } else if (marker == "__klap_link_condition" && call.arguments.size() == 1) {
      body = named("area", call.arguments[0]) + condition_text(call.result);
    } else if (marker == "__klap_next_arguments" && call.arguments.size() == 2) {
      body = named("area", call.arguments[0]) + named("next", call.arguments[1]) + next_text();
    } else if (marker == "__klap_link_body" && call.arguments.size() == 1) {
      body = named("link", call.arguments[0]) + body_text();
    } else if (marker == "__klap_launch_next" && call.arguments.size() == 2 && shape_.launches) {
      body = named("link", call.arguments[0]) + named("is_new", call.arguments[1]) + "\t" +
             launch_text(parts_, promoted_, *templates_.launch, "%klap_is_new") + "\n";
    }
    return body.empty() ? body : "{\n" + call.before + body + call.after + "\t}";
  }

  [[nodiscard]] const std::string& spliced() const { return spliced_; }

 private:
  static std::string named(const char* name, const std::string& operand) {
    return fmt::format("\t.reg .b32 %klap_{0};\n\tmov.b32 %klap_{0}, {1};\n", name, operand);
  }

  // Computes whether all tests hold for the thread. If links are counted, no counter may have wrapped around
  // either.
  [[nodiscard]] std::string condition_text(const std::string& result) const {
    std::string text = slice_text(parts_, parts_.chain.test_slice, "klap_t_", "%klap_area");
    text += "\t.reg .pred %klap_holds, %klap_test;\n\tsetp.eq.u32 %klap_holds, 0, 0;\n";
    for (const analysis::ChainTest& test : parts_.chain.tests) {
      const std::string predicate = part_operand(parts_, test.predicate, "klap_t_");
      text += fmt::format("\t{} %klap_test, {};\n\tand.pred %klap_holds, %klap_holds, %klap_test;\n",
                          test.negated ? "not.pred" : "mov.pred", predicate);
    }
    if (shape_.condition == LinkCondition::Counted && !parts_.chain.counters.empty()) {
      text += number_text();
      for (const analysis::ChainCounter& counter : parts_.chain.counters) text += counter_text(counter);
    }
    if (!result.empty()) text += fmt::format("\tselp.u32 {}, 1, 0, %klap_holds;\n", result);
    return text;
  }

  // Gives the link that the area's arguments are for. The template asks for the link before its own, or for
  // its own if that launches.
  [[nodiscard]] std::string number_text() const {
    return fmt::format(
        "\t.reg .b64 %klap_number, %klap_first;\n\tld.shared.u64 %klap_number, [%klap_area+{}];\n"
        "\tld.shared.u64 %klap_first, [%klap_area+{}];\n\tsub.u64 %klap_number, %klap_number, %klap_first;\n"
        "\tsub.u64 %klap_number, %klap_number, {};\n",
        static_cast<int>(offsetof(KlapLink, number)) - KLAP_LINK_AREA,
        static_cast<int>(offsetof(KlapLink, first)) - KLAP_LINK_AREA, shape_.launches ? 0 : 1);
  }

  // The inequalities of analysis::ChainCounter, in 64 bits.
  [[nodiscard]] std::string counter_text(const analysis::ChainCounter& counter) const {
    const uint32_t bits = counter.bits;
    const char sign = counter.is_signed ? 's' : 'u';
    const auto own = [&](const std::string& operand) { return part_operand(parts_, operand, "klap_t_"); };
    const auto widened = [&](const char* to, const char* from) {
      return bits == 64 ? fmt::format("\tmov.b64 {}, {};\n", to, from)
                        : fmt::format("\tcvt.{0}64.{0}{1} {2}, {3};\n", sign, bits, to, from);
    };
    std::string text = fmt::format(
        "\t{{\n\t.reg .b{0} %klap_v, %klap_m;\n\t.reg .b64 %klap_last, %klap_begin;\n\tmov.b{0} %klap_v, "
        "{1};\n",
        bits, own(counter.value));
    if (!counter.minus.empty()) {
      text += fmt::format("\tmov.b{0} %klap_m, {1};\n\tsub.s{0} %klap_v, %klap_v, %klap_m;\n", bits,
                          own(counter.minus));
    }
    text += widened("%klap_last", "%klap_v");
    text += fmt::format("\tmul.lo.u64 %klap_begin, %klap_number, {};\n", counter.step);
    text += fmt::format("\t{}.s64 %klap_begin, %klap_last, %klap_begin;\n", counter.falls ? "add" : "sub");
    if (bits != 64)
      text += fmt::format("\tcvt.u{}.u64 %klap_v, %klap_begin;\n", bits) + widened("%klap_begin", "%klap_v");
    const std::string both = "\tand.pred %klap_holds, %klap_holds, %klap_test;\n";
    text += fmt::format("\tsetp.{}.{}64 %klap_test, %klap_begin, %klap_last;\n", counter.falls ? "ge" : "le",
                        sign) +
            both;
    const uint64_t largest = bits == 64 ? ~0ull : (1ull << bits) - 1, most = largest / counter.step;
    if (most != ~0ull) text += fmt::format("\tsetp.le.u64 %klap_test, %klap_number, {};\n", most) + both;
    return text + "\t}\n";
  }

  [[nodiscard]] std::string next_text() const {
    std::string text = slice_text(parts_, parts_.chain.next_slice, "klap_n_", "%klap_area");
    for (const ChainArgument& argument : parts_.chain.arguments) {
      if (argument.kind != LinkArgument::Available) continue;
      text += fmt::format("\tst.shared{} [%klap_next+{}], {};\n", argument.type, argument.offset,
                          part_operand(parts_, argument.source, "klap_n_"));
    }
    return text;
  }

  std::string body_text() {
    const auto text_of = [&](const std::string& prefix, const std::string& link) {
      return LinkText(parts_, shape_, templates_, promoted_, prefix, link);
    };
    LinkText link = text_of(kBodyPrefix, kLinkRegister);
    const std::string& parameter = promoted_.added.front();
    const FunctionFacts& kernel = parts_.kernel;
    spliced_ = fmt::format("\t.reg .b64 {0};\n\tld.param.u64 {0}, [{1}];\n\t", kChainRegister, parameter);
    if (shape_.batch == 1) {
      spliced_ += link_body(parts_, link.body()) + "\n";
    } else {
      const MakeLinkCopy copy = [&](const std::string& prefix, const std::string& part) {
        LinkText text = text_of(prefix, part);
        return LinkCopy{text.body(), text.store_values()};
      };
      spliced_ += batched_body(parts_, shape_, kLinkRegister, copy, link.combine()) + "\n";
    }
    // The text behind the body is the template's again.
    return spliced_ + "\t" + parts_.lines.head(kernel.module, kernel.function) + "\n";
  }

  const PromotedParts& parts_;
  const PromotedShape& shape_;
  const PromotionTemplates& templates_;
  const PromotedKernel& promoted_;
  std::string spliced_;
};

std::string residency_text(const FunctionFacts& kernel, const PromotedShape& shape) {
  if (shape.filled_sm == 0 || shape.mode != PromotionMode::LookBack || shape.threads == 0) return {};
  const uint32_t words =
      std::max(kernel.values().liveness.maximum().pressure.words, shape.batch * shape.kept_words);
  const uint32_t blocks = min_chain_blocks(words, shape.threads, shape.filled_sm);
  return blocks == 0 ? "" : fmt::format("\n.minnctapersm {}", blocks);
}

// The kernel's own parameters and launch bounds around the template's body. Without bounds the variant must
// still get room for the chain's block.
std::string header_text(const FunctionFacts& kernel, const ChainFacts& chain, const PromotedShape& shape,
                        const std::string& name, const std::string& added) {
  const Function& f = kernel.function;
  std::string parameters;
  for (const ptx::Parameter& p : f.parameters)
    parameters += fmt::format("\t{},\n", kernel.module.text(p.tokens));
  std::string bounds(kernel.module.text(f.attributes));
  if (bounds.empty())
    bounds = fmt::format(".maxntid {}, {}, {}", chain.block[0], chain.block[1], chain.block[2]);
  const auto says = [&](const char* directive) { return bounds.find(directive) != std::string::npos; };
  if (!says(".minnctapersm") && !says(".maxnreg")) bounds += residency_text(kernel, shape);
  return fmt::format("{}.entry {}(\n{}\t{}\n)\n{}\n", linkage_text(f), name, parameters, added, bounds);
}

}  // namespace

Generated promoted_kernel(const FunctionFacts& kernel, const ChainFacts& chain, const PromotedShape& shape,
                          const PromotionTemplates& templates, const std::string& name, LineTables& lines) {
  const Module& resident = templates.resident;
  const Function& f = template_function(resident, kPromotedKernel);
  if (!resident.variables.empty() || !templates.link.variables.empty())
    throw Error(ErrorCode::Internal, "the template of a promoted kernel declares variables");
  const PromotedParts parts{kernel, chain, lines};
  PromotedKernel promoted{name, {}};
  std::vector<std::string> added;
  for (const ptx::Parameter& p : f.parameters) {
    promoted.added.push_back(p.name);
    added.emplace_back(resident.text(p.tokens));
  }
  if (added.size() != (shape.launches ? 2 : 1) || shape.launches != (templates.launch != nullptr))
    throw Error(ErrorCode::Internal, "the template of a promoted kernel is for another mode");
  Markers markers(parts, shape, templates, promoted);
  const analysis::ControlFlow flow(resident, f);
  const analysis::LocalNames names(resident, f.body);
  Edits edits(resident);
  lines.keep(resident, f.body, edits);
  edits.insert_after(f.body.tokens.first, "\n\t" + lines.head(kernel.module, kernel.function));
  for (const analysis::FlatInstruction& i : flow.instructions()) {
    const auto call = analysis::parse_call(resident, *i.statement, names);
    if (!call) continue;
    const std::string text = markers.text(call->callee, read_marker(resident, *i.scope));
    if (text.empty())
      throw Error(ErrorCode::Internal,
                  fmt::format("the template of a promoted kernel calls {}", call->callee));
    edits.replace(i.scope->tokens, text);
  }
  if (markers.spliced().empty())
    throw Error(ErrorCode::Internal, "the template of a promoted kernel does not call its markers");
  std::vector<std::string> declarations;
  if (shape.launches)
    declarations = marker_declarations(kernel.module, *templates.launch, launch_functions(kernel));
  const std::string head =
      header_text(kernel, chain, shape, name, fmt::format("{}", fmt::join(added, ",\n\t")));
  return {name, head + edits.apply(f.body.tokens), std::move(declarations), {markers.spliced()}};
}

}  // namespace klap::transform
