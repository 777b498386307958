#include "analysis/legality.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/retry.h"
#include "analysis/variance.h"
#include "analysis/waiting.h"
#include "analysis/wrappers.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

const char* to_string(Reason reason) {
  switch (reason) {
#define KLAP_REASON(name, text, meaning) \
  case Reason::name:                     \
    return text;
    KLAP_REASONS(KLAP_REASON)
#undef KLAP_REASON
  }
  return "unknown";
}

const char* meaning(Reason reason) {
  switch (reason) {
#define KLAP_REASON(name, text, meaning) \
  case Reason::name:                     \
    return meaning;
    KLAP_REASONS(KLAP_REASON)
#undef KLAP_REASON
  }
  return "unknown";
}

namespace {

using Names = std::set<std::string_view>;

// Instructions whose effect does not depend on which kernel, block or warp a thread runs in.
const Names& safe_opcodes() {
  static const Names kSafe = {
      "abs",       "add",   "addc",  "and",       "atom",   "bfe",    "bfi",      "bfind",    "bmsk",
      "bra",       "brev",  "brx",   "call",      "clz",    "cnot",   "copysign", "cos",      "cvt",
      "cvta",      "div",   "dp2a",  "dp4a",      "ex2",    "exit",   "fence",    "fma",      "fns",
      "ld",        "lg2",   "lop3",  "mad",       "mad24",  "madc",   "max",      "membar",   "min",
      "mov",       "mul",   "mul24", "nanosleep", "neg",    "not",    "or",       "popc",     "prefetch",
      "prefetchu", "prmt",  "rcp",   "red",       "rem",    "ret",    "rsqrt",    "sad",      "selp",
      "set",       "setp",  "shf",   "shl",       "shr",    "sin",    "slct",     "sqrt",     "st",
      "sub",       "subc",  "szext", "tanh",      "testp",  "trap",   "xor",      "vabsdiff", "vabsdiff2",
      "vabsdiff4", "vadd",  "vadd2", "vadd4",     "vavrg2", "vavrg4", "vmad",     "vmax",     "vmax2",
      "vmax4",     "vmin",  "vmin2", "vmin4",     "vset",   "vset2",  "vset4",    "vshl",     "vshr",
      "vsub",      "vsub2", "vsub4"};
  return kSafe;
}

const Names& texture_opcodes() {
  static const Names kTexture = {"tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"};
  return kTexture;
}

// Library functions outside the program whose effect does not depend on the caller's place.
bool is_known_external(std::string_view name) {
  static const Names kKnown = {"vprintf", "malloc", "free", "__assertfail"};
  return kKnown.contains(name);
}

bool is_lane_register(std::string_view name) { return name == "%laneid" || name.starts_with("%lanemask_"); }
bool is_neutral_special_register(std::string_view name) {
  static const Names kNeutral = {"%clock",          "%clock64",        "%clock_hi", "%globaltimer",
                                 "%globaltimer_lo", "%globaltimer_hi", "%smid",     "%nsmid"};
  return kNeutral.contains(name);
}

Objection object(Reason reason, std::string detail) { return {reason, std::move(detail)}; }

std::string place(const Module& module, uint32_t token) { return fmt::format("line {}", module.line(token)); }

// Special registers: identifiers that begin with '%' and are declared nowhere in the function.
template <typename Visit>
void for_each_special_register(const Module& module, const Function& function, Visit&& visit) {
  const LocalNames names(module, function.body);
  for (uint32_t t = function.body.tokens.first; t < function.body.tokens.last; ++t) {
    if (module.tokens[t].kind != ptx::TokenKind::Identifier) continue;
    const std::string_view text = module.text(t);
    if (text[0] == '%' && !names.contains(text) && !names.is_range(text)) visit(text, t);
  }
}

// ---- instructions of the child and of what it calls ----

std::optional<Objection> object_to_instruction(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  const std::string at = fmt::format("{} ({})", m.full_opcode(s), place(m, s.head));
  if (opcode == "bar" || opcode == "barrier") {
    const bool warp = m.has_modifier(s, ".warp");
    return object(warp ? Reason::ChildWarpSync : Reason::ChildBarrier, at);
  }
  if (texture_opcodes().contains(opcode)) return object(Reason::ChildTexture, at);
  if (m.has_modifier(s, ".sync") || opcode == "shfl" || opcode == "vote" || opcode == "activemask") {
    return object(Reason::ChildWarpSync, at);
  }
  if (!safe_opcodes().contains(opcode)) return object(Reason::ChildInstruction, at);
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view modifier = m.text(t);
    if (modifier.starts_with(".shared")) return object(Reason::ChildSharedMemory, at);
    if (modifier.starts_with(".proxy") || modifier.starts_with(".mbarrier") || modifier == ".async" ||
        modifier == ".bulk" || modifier == ".cluster" || modifier.starts_with(".tensormap")) {
      return object(Reason::ChildInstruction, at);
    }
  }
  return std::nullopt;
}

std::optional<Objection> object_to_instructions(const Module& m, const Function& f) {
  std::optional<Objection> found;
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (found || s.kind != StatementKind::Instruction) return;
    found = object_to_instruction(m, s);
  });
  if (!found && LocalNames(m, f.body).declares_shared()) {
    found = object(Reason::ChildSharedMemory, fmt::format("{} declares shared memory", f.name));
  }
  if (!found) {
    // Shared memory may also be declared at module level and reached by its name.
    for (uint32_t t = f.body.tokens.first; t < f.body.tokens.last && !found; ++t) {
      if (m.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      const ptx::Variable* v = m.find_variable(m.text(t));
      if (v != nullptr && v->space == ".shared") {
        found = object(Reason::ChildSharedMemory, fmt::format("{} ({})", v->name, place(m, t)));
      } else if (v != nullptr && v->space != ".global" && v->space != ".const") {
        found = object(Reason::ChildTexture, fmt::format("{} ({})", v->name, place(m, t)));
      }
    }
  }
  return found;
}

std::optional<Objection> object_to_special_registers(const Module& m, const Function& child) {
  std::optional<Objection> found;
  for_each_special_register(m, child, [&](std::string_view name, uint32_t token) {
    if (found) return;
    if (!is_virtual_special_register(name) && !is_lane_register(name) && !is_neutral_special_register(name)) {
      found = object(Reason::ChildSpecialRegister, fmt::format("{} ({})", name, place(m, token)));
    }
  });
  return found;
}

// The kernels that a kernel and what it calls launch, as far as they are known.
struct Launched {
  std::string kernel;
  uint32_t line = 0;
};
std::vector<Launched> launched_by(const Module& m, const Function& kernel) {
  std::vector<const Function*> functions = call_closure(m, kernel).functions;
  functions.insert(functions.begin(), &kernel);
  std::vector<Launched> out;
  for (const Function* f : functions) {
    for (const Site& site : FunctionFacts(m, *f).sites) {
      if (!site.callee.empty()) out.push_back({site.callee, site.line});
    }
  }
  return out;
}

// True if `kernel`, or what it launches at any depth, launches `target`.
bool leads_to(const Module& m, const std::string& kernel, const std::string& target) {
  std::vector<std::string> work = {kernel};
  for (size_t next = 0; next < work.size(); ++next) {
    const Function* f = m.find_function(work[next]);
    if (f == nullptr || !f->is_definition) continue;
    for (const Launched& launched : launched_by(m, *f)) {
      if (launched.kernel == target) return true;
      if (std::find(work.begin(), work.end(), launched.kernel) == work.end()) work.push_back(launched.kernel);
    }
  }
  return false;
}

// What a child asks of the device runtime, `function` being its first call there.
std::string launches_text(const Module& m, const Function& child, std::string_view function) {
  if (!idioms().is_kind(function, "launch")) return idioms().describe(function);
  const std::vector<Launched> launched = launched_by(m, child);
  if (launched.empty()) return idioms().describe(function);
  for (const Launched& l : launched) {
    if (l.kernel == child.name) return fmt::format("launches itself (line {}): recursion", l.line);
  }
  for (const Launched& l : launched) {
    if (leads_to(m, l.kernel, child.name))
      return fmt::format("launches {} (line {}), which leads back to it: mutual recursion", l.kernel, l.line);
  }
  return fmt::format("launches {} (line {})", launched[0].kernel, launched[0].line);
}

std::optional<Objection> object_to_calls(const Module& m, const Function& child, const CallClosure& closure) {
  if (closure.indirect) return object(Reason::ChildCallsUnknown, "an indirect call");
  for (const std::string& name : closure.external) {
    if (idioms().is_device_runtime(name)) return object(Reason::ChildLaunches, launches_text(m, child, name));
    if (!is_known_external(name)) {
      return object(Reason::ChildCallsUnknown, fmt::format("{} is defined in another unit", name));
    }
  }
  for (const Function* callee : closure.functions) {
    if (callee == &child) return object(Reason::ChildCallsUnknown, "calls itself");
    if (auto objection = object_to_instructions(m, *callee)) return objection;
    std::optional<Objection> found;
    for_each_special_register(m, *callee, [&](std::string_view name, uint32_t token) {
      if (found || is_neutral_special_register(name)) return;
      found = object(Reason::ChildCallsUnknown,
                     fmt::format("{}, called by it, reads {} ({})", callee->name, name, place(m, token)));
    });
    if (found) return found;
    ptx::for_each_statement(callee->body, [&](const Statement& s) {
      if (s.kind == StatementKind::Instruction && m.is(s.head, "exit") && !found) {
        found = object(Reason::ChildCallsUnknown,
                       fmt::format("{}, called by it, may exit ({})", callee->name, place(m, s.head)));
      }
    });
    if (found) return found;
  }
  return std::nullopt;
}

// ---- waiting ----

// An instruction by which a loop may see what other threads write while it runs.
bool watches_memory(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  return is_strong_load(m, s) || opcode == "atom" || opcode == "membar" || opcode == "fence" ||
         opcode == "nanosleep" || opcode == "call";
}

std::optional<Objection> object_to_parent_waiting(const FunctionFacts& parent, uint32_t site) {
  const auto& instructions = parent.flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const Statement& s = *instructions[i].statement;
    if (!watches_memory(parent.module, s)) continue;
    if (parent.flow.can_follow(site, i) && parent.flow.in_loop(i)) {
      return object(Reason::ParentWaits,
                    fmt::format("{} in a loop after the launch ({})", parent.module.full_opcode(s),
                                place(parent.module, s.head)));
    }
  }
  // Threads that do not launch may wait for the children of those that do.
  if (const auto waiting = may_wait(parent.module, parent.flow, parent.data)) {
    return object(Reason::ParentWaits, *waiting);
  }
  return std::nullopt;
}

std::optional<Objection> object_to_child_waiting(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const DataFlow data(m, f, flow);
  if (const auto waiting = may_wait(m, flow, data)) return object(Reason::ChildWaits, *waiting);
  return std::nullopt;
}

// ---- the parent ----

// A device-runtime call that is no part of a launch understood. `subject` is empty for the parent itself.
Objection object_to_runtime_call(std::string_view function, const std::string& subject,
                                 const std::string& where) {
  const std::string text =
      fmt::format("{}{}{}", subject, idioms().describe(function), where.empty() ? "" : ", " + where);
  if (!idioms().is_kind(function, "wait")) return object(Reason::RuntimeCall, text);
  return object(
      Reason::ParentWaits,
      text + ": only version 1 of dynamic parallelism can, and ptxas refuses it for sm_90 and later");
}

std::optional<Objection> object_to_parent_call(const FunctionFacts& parent, const Site& site,
                                               const FlatInstruction& instruction) {
  const Statement& s = *instruction.statement;
  const auto call = parse_call(parent.module, s, parent.data.names());
  if (!call || &s == site.get_call || &s == site.launch_call) return std::nullopt;
  const std::string where = place(parent.module, s.head);
  if (!call->direct) return object(Reason::ParentCallsUnknown, "an indirect call at " + where);
  const std::string_view function = runtime_function(parent.module, call->callee);
  if (function.empty() || idioms().is_last_error(function) || idioms().is_peek_last_error(function))
    return std::nullopt;
  Objection objection = object_to_runtime_call(function, "", where);
  const bool own_stream = std::any_of(site.streams.begin(), site.streams.end(), [](const StreamValue& v) {
    return v.kind == StreamClass::Created || v.kind == StreamClass::Array;
  });
  if (own_stream && idioms().is_kind(function, "stream-create"))
    objection.detail += "; the launch's stream is " + print(site.streams);
  return objection;
}

std::optional<Objection> object_to_parent_calls(const FunctionFacts& parent, const Site& site) {
  const Module& m = parent.module;
  for (const FlatInstruction& f : parent.flow.instructions()) {
    if (auto objection = object_to_parent_call(parent, site, f)) return objection;
  }
  for (const ErrorQuery& query : parent.error_queries) {
    if (!query.problem.empty()) return object(Reason::RuntimeCall, "a last-error query: " + query.problem);
  }
  const CallClosure closure = call_closure(m, parent.function);
  if (closure.indirect)
    return object(Reason::ParentCallsUnknown, "a called function calls through a pointer");
  for (const std::string& name : closure.external) {
    if (!idioms().is_device_runtime(name) && !is_known_external(name)) {
      return object(Reason::ParentCallsUnknown, fmt::format("{} is defined in another unit", name));
    }
  }
  for (const Function* callee : closure.functions) {
    // What a wrapper calls counts as called where the wrapper is.
    if (!runtime_function(m, *callee).empty()) continue;
    for (const std::string& name : call_closure(m, *callee).external) {
      if (idioms().is_device_runtime(name))
        return object_to_runtime_call(name, fmt::format("{}, called by it, ", callee->name), "");
    }
  }
  return std::nullopt;
}

// With one launch per thread, two launches of a block can be ordered by a barrier only if threads that have
// launched can meet, at a barrier, threads that have not.
std::optional<Objection> object_to_barriers(const FunctionFacts& parent, uint32_t site) {
  bool before = false, after = false;
  for (uint32_t i = 0; i < parent.flow.instructions().size(); ++i) {
    const Statement& s = *parent.flow.instructions()[i].statement;
    if (!parent.module.is(s.head, "bar") && !parent.module.is(s.head, "barrier")) continue;
    if (parent.module.has_modifier(s, ".warp")) continue;
    before = before || parent.flow.can_follow(i, site);
    after = after || parent.flow.can_follow(site, i);
  }
  if (!before || !after) return std::nullopt;
  return object(Reason::BarrierBetweenLaunches,
                "barriers stand both before and after the launch, in the NULL stream");
}

// What a parameter of a called function is at its calls: "a (line 12), b (line 40)".
std::string passed_by_callers(const FunctionFacts& callee, uint64_t parameter) {
  const Module& m = callee.module;
  std::string text;
  for (const Caller& caller : callers_of(m, callee.function.name).calls) {
    const FunctionFacts facts(m, *caller.function);
    const auto call = parse_call(m, *caller.call, facts.data.names());
    std::string passed = "unknown";
    if (caller.scope != &caller.function->body && parameter < call->parameters.size()) {
      const CallScope scope = read_call_scope(m, *caller.scope, *caller.call);
      const std::string* operand = scope.actual(call->parameters[parameter], 0);
      if (operand != nullptr) passed = print(origins_of(facts, *operand), *caller.function);
    }
    text += fmt::format("{}{} (line {})", text.empty() ? "" : ", ", passed, caller.line);
  }
  return text;
}

// Where an address of a kernel comes from that is not simply its name.
std::string callee_text(const FunctionFacts& parent, const Site& site) {
  const std::vector<Origin> origins = origins_of(parent, site.callee_operand);
  const bool selected =
      origins.size() > 1 && std::all_of(origins.begin(), origins.end(),
                                        [](const Origin& o) { return o.kind == OriginKind::Symbol; });
  std::string text = fmt::format("the kernel's address is {}{}", selected ? "selected: " : "",
                                 print(origins, parent.function));
  for (const Origin& origin : origins) {
    if (origin.kind != OriginKind::Parameter || parent.function.kind == ptx::FunctionKind::Entry) continue;
    const std::string passed = passed_by_callers(parent, origin.value);
    text += passed.empty() ? ", which nothing in its unit calls" : ", which is given " + passed;
  }
  return text;
}

bool has_attribute(const Module& m, const Function& f, std::initializer_list<std::string_view> names) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    if (std::find(names.begin(), names.end(), m.text(t)) != names.end()) return true;
  }
  return false;
}

bool uses_clusters(const Module& m, const Function& f) {
  return has_attribute(m, f,
                       {".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"});
}

// Kernel parameters may take 4,096 bytes, or 32,764 from PTX 8.1 on.
uint32_t parameter_limit(const Module& m) {
  return m.version.size() > 2 && m.version >= "8.1" ? 32764 : 4096;
}

// ---- the launch ----

// `.maxntid 256, 1, 1` and `.reqntid`: the numbers behind a performance directive; 1 where fewer than three
// stand.
std::optional<std::array<uint64_t, 3>> dimensions_attribute(const Module& m, const Function& f,
                                                            std::string_view name) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    if (!m.is(t, name)) continue;
    std::array<uint64_t, 3> out = {1, 1, 1};
    size_t axis = 0;
    for (++t; t < f.attributes.last && axis < 3; ++t) {
      if (m.is(t, ",")) continue;
      const auto value = ptx::integer_value(m.text(t));
      if (!value) break;
      out[axis++] = *value;
    }
    return out;
  }
  return std::nullopt;
}

std::optional<Objection> object_to_block(const Module& m, const Function& child,
                                         const std::array<uint32_t, 3>& block) {
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  const std::string text = fmt::format("{}x{}x{}", block[0], block[1], block[2]);
  if (threads == 0 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024) {
    return object(Reason::BlockRefused, text);
  }
  if (const auto most = dimensions_attribute(m, child, ".maxntid")) {
    if (threads > (*most)[0] * (*most)[1] * (*most)[2]) {
      return object(Reason::BlockRefused, text + " exceeds the child's launch bounds");
    }
  }
  if (const auto exact = dimensions_attribute(m, child, ".reqntid")) {
    if ((*exact)[0] != block[0] || (*exact)[1] != block[1] || (*exact)[2] != block[2]) {
      return object(Reason::BlockRefused, text + " is not the block size the child requires");
    }
  }
  return std::nullopt;
}

std::optional<Objection> object_to_arguments(const Function& child, const Site& site, const DataFlow& data) {
  if (site.idiom->form == LaunchForm::Documented) {
    const auto bytes = data.constant(site.buffer_bytes);
    if (!bytes || *bytes < child.parameter_bytes) {
      return object(Reason::ArgumentMismatch,
                    fmt::format("a buffer of {} bytes, parameters of {} bytes",
                                bytes ? std::to_string(*bytes) : site.buffer_bytes, child.parameter_bytes));
    }
  }
  for (const Argument& argument : site.arguments) {
    if (argument.offset + argument.bytes > child.parameter_bytes) {
      return object(Reason::ArgumentMismatch,
                    fmt::format("an argument at offset {} of {} bytes, parameters of {} bytes",
                                argument.offset, argument.bytes, child.parameter_bytes));
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_virtual_special_register(std::string_view name) {
  return name == "%tid" || name == "%ctaid" || name == "%ntid" || name == "%nctaid";
}

bool reads_lane(const Module& module, const Function& function) {
  bool found = false;
  for_each_special_register(
      module, function, [&](std::string_view name, uint32_t) { found = found || is_lane_register(name); });
  return found;
}

// Where the stream depends on a condition, the site is judged by the strictest of its streams. That is exact:
// each check for the NULL stream is about a pair of launches that may both go there, and holds for the
// launches that do, whichever they are; the laxer streams promise nothing that the check for the strictest
// does not cover.
StreamKind stream_kind(const Site& site) {
  if (site.streams.empty()) return StreamKind::Other;
  StreamKind strictest = StreamKind::FireAndForget;
  for (const StreamValue& stream : site.streams) {
    StreamKind kind = StreamKind::Other;
    if (stream.kind == StreamClass::Null) kind = StreamKind::Null;
    if (stream.kind == StreamClass::PerThread) kind = StreamKind::PerThread;
    if (stream.kind == StreamClass::FireAndForget) kind = StreamKind::FireAndForget;
    strictest = std::max(strictest, kind);
  }
  return strictest;
}

std::vector<Origin> origins_of(const FunctionFacts& facts, std::string_view operand) {
  return origins_of({facts.module, facts.function, facts.flow, facts.data}, operand);
}

std::optional<std::array<uint32_t, 3>> constant_block(const Site& site, const DataFlow& data) {
  std::array<uint32_t, 3> out{};
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto value = data.constant(site.block[axis]);
    if (!value) return std::nullopt;
    out[axis] = static_cast<uint32_t>(*value);
  }
  return out;
}

CallClosure call_closure(const Module& module, const Function& function) {
  CallClosure out;
  std::vector<const Function*> work = {&function};
  for (size_t next = 0; next < work.size(); ++next) {
    const Function& f = *work[next];
    const LocalNames names(module, f.body);
    ptx::for_each_statement(f.body, [&](const Statement& s) {
      const auto call = parse_call(module, s, names);
      if (!call) return;
      if (!call->direct) {
        out.indirect = true;
        return;
      }
      const Function* callee = module.find_function(call->callee);
      if (callee == nullptr || !callee->is_definition) {
        if (std::find(out.external.begin(), out.external.end(), call->callee) == out.external.end()) {
          out.external.emplace_back(call->callee);
        }
      } else if (std::find(out.functions.begin(), out.functions.end(), callee) == out.functions.end()) {
        out.functions.push_back(callee);
        work.push_back(callee);
      }
    });
  }
  return out;
}

std::optional<Objection> object_to_parent(const FunctionFacts& parent, const Site& site) {
  const Module& m = parent.module;
  if (m.debug) return object(Reason::DebugBuild, "the unit's target says debug");
  if (!site.understood()) return object(Reason::NotUnderstood, site.problem);
  if (site.callee.empty()) return object(Reason::CalleeUnknown, callee_text(parent, site));
  if (parent.function.kind != ptx::FunctionKind::Entry) {
    return object(Reason::LaunchInFunction,
                  fmt::format("{} is called, not launched: by {}", parent.function.name,
                              print(callers_of(m, parent.function.name))));
  }
  if (parent.sites.size() > 1) {
    return object(Reason::SeveralSites, fmt::format("{} launch sites", parent.sites.size()));
  }
  const uint32_t at = parent.flow.index_of(site.get_call);
  if (parent.flow.in_loop(at)) {
    const std::string retry = print_retry(retry_line({m, parent.function, parent.flow, parent.data}, site));
    return object(Reason::SiteInLoop,
                  fmt::format("control can come back to {}{}{}", place(m, site.get_call->head),
                              retry.empty() ? "" : ": ", retry));
  }
  if (auto objection = object_to_parent_calls(parent, site)) return objection;
  const StreamKind stream = stream_kind(site);
  if (stream == StreamKind::Other)
    return object(Reason::StreamUnsupported, "the stream is " + print(site.streams));
  if (auto objection = object_to_parent_waiting(parent, at)) return objection;
  if (stream == StreamKind::Null) {
    if (auto objection = object_to_barriers(parent, at)) return objection;
  }
  if (uses_clusters(m, parent.function)) return object(Reason::ParentCluster, "by its own directive");
  if (parent.function.parameter_bytes + 16 > parameter_limit(m)) {
    return object(Reason::ParameterSpace,
                  fmt::format("{} bytes of parameters", parent.function.parameter_bytes));
  }
  if (parent.data.constant(site.shared) != 0) {
    return object(Reason::DynamicSharedMemory, "the launch passes " + site.shared + " bytes");
  }
  if (!constant_block(site, parent.data)) {
    return object(Reason::BlockNotConstant,
                  fmt::format("block ({}, {}, {})", site.block[0], site.block[1], site.block[2]));
  }
  if (site.idiom->is_version_1())
    return object(Reason::OldRuntime, fmt::format("it calls {}", site.idiom->launch));
  return std::nullopt;
}

std::optional<Objection> object_to_child(const Module& m, const Function& child, const FunctionFacts& parent,
                                         const Site& site) {
  if (child.kind != ptx::FunctionKind::Entry || !child.is_definition) {
    return object(Reason::ChildNotFound, fmt::format("{} is not a kernel defined there", child.name));
  }
  if (m.debug) return object(Reason::DebugBuild, "the child's unit's target says debug");
  if (auto objection = object_to_block(m, child, *constant_block(site, parent.data))) return objection;
  if (auto objection = object_to_arguments(child, site, parent.data)) return objection;
  if (uses_clusters(m, child)) return object(Reason::ChildCluster, "by its own directive");
  const CallClosure closure = call_closure(m, child);
  if (auto objection = object_to_calls(m, child, closure)) return objection;
  if (auto objection = object_to_instructions(m, child)) return objection;
  if (auto objection = object_to_special_registers(m, child)) return objection;
  if (auto objection = object_to_child_waiting(m, child)) return objection;
  for (const Function* callee : closure.functions) {
    if (auto objection = object_to_child_waiting(m, *callee)) return objection;
  }
  if (stream_kind(site) == StreamKind::Null) {
    if (const auto update = shared_update(m, child, closure, varying_parameters(parent, site, child))) {
      return object(Reason::ChildReadModifyWrite, *update);
    }
  }
  return std::nullopt;
}

}  // namespace klap::analysis
