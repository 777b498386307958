#include "analysis/inline/inlining.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "analysis/graph/operands.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {

using ptx::Function;
using ptx::FunctionKind;
using ptx::Module;
using ptx::Parameter;
using ptx::Statement;
using ptx::StatementKind;

namespace {

// The limits for one function with all that is inlined into it, and for a kernel.
constexpr size_t kMostStatements = 10'000, kMostOfKernel = 50'000;
constexpr size_t kMostPieces = 64;

bool has_parameter_space(const Module& m, const Statement& s) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (m.text(t).starts_with(".param")) return true;
  }
  return false;
}

bool names_any(const Module& m, const Statement& s, const std::vector<std::string_view>& names) {
  for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
    if (std::ranges::find(names, m.text(t)) != names.end()) return true;
  }
  return false;
}

const Function* called_function(const Module& m, const Call& call) {
  const Function* f = call.direct ? m.find_function(call.callee) : nullptr;
  const bool has_body = f != nullptr && f->is_definition && f->kind == FunctionKind::Func;
  return has_body && runtime_function(m, *f).empty() ? f : nullptr;
}

}  // namespace

// ---- registers and accesses ----

std::optional<ParameterAccess> parameter_access(const Module& m, const Statement& s) {
  if (s.kind != StatementKind::Instruction || s.operands.size() != 2) return std::nullopt;
  ParameterAccess out;
  out.is_store = m.is(s.head, "st");
  if ((!out.is_store && !m.is(s.head, "ld")) || !has_parameter_space(m, s)) return std::nullopt;
  const auto address = parse_address(m, s.operands[out.is_store ? 0 : 1]);
  if (!address || address->offset < 0 || address->offset > INT32_MAX) return std::nullopt;
  out.name = address->base;
  out.offset = static_cast<uint32_t>(address->offset);
  out.type = m.text(s.modifiers.last - 1);
  out.components = components(m, s.operands[out.is_store ? 1 : 0]);
  return out;
}

namespace {

// ---- what is passed ----

// An access with the registers of the function that it stands in.
struct Use {
  ParameterAccess access;
  const RegisterBits* registers;
};

bool is_literal(std::string_view operand) {
  return !operand.empty() && (operand[0] == '-' || (operand[0] >= '0' && operand[0] <= '9'));
}

bool is_float(std::string_view type) { return type.starts_with(".f") || type.starts_with(".bf"); }

// Whether each component is a register or a literal that a move can take over.
bool is_movable(const Use& use) {
  const uint32_t bytes = use.access.bytes();
  if (bytes == 0 || bytes > 8) return false;
  return std::ranges::all_of(use.access.components, [&](const std::string& component) {
    if (is_literal(component)) return use.access.is_store;
    const uint32_t bits = use.registers->of(component);
    return bits >= 8 * bytes && (bits == 8 * bytes || !is_float(use.access.type));
  });
}

class Pieces {
 public:
  explicit Pieces(PassedValue& value) : value_(value) {}

  // Returns false if the pieces do not fit each other.
  bool add(const Use& use) {
    if (!is_movable(use)) return false;
    const uint32_t bytes = use.access.bytes();
    for (size_t i = 0; i < use.access.components.size(); ++i) {
      const auto offset = use.access.offset + static_cast<uint32_t>(i) * bytes;
      if (!add(offset, bytes, use.access)) return false;
    }
    return value_.pieces.size() <= kMostPieces;
  }

 private:
  // A load may take the lower part of what is stored.
  bool add(uint32_t offset, uint32_t bytes, const ParameterAccess& access) {
    for (const auto& [at, size] : value_.pieces) {
      if (at + size <= offset || offset + bytes <= at) continue;
      const bool is_part = !access.is_store && bytes < size && !is_float(access.type);
      if (at != offset || (bytes != size && !is_part)) return false;
      return true;
    }
    value_.pieces.emplace(offset, bytes);
    return true;
  }

  PassedValue& value_;
};

// Stores come first: they say what the pieces are.
PassedValue passed_value(const std::vector<Use>& uses, uint32_t bytes, uint32_t align, bool has_address) {
  PassedValue value{has_address, bytes, align, {}};
  Pieces pieces(value);
  for (const bool stores : {true, false}) {
    for (const Use& use : uses) {
      if (use.access.is_store == stores && !value.in_memory) value.in_memory = !pieces.add(use);
    }
  }
  if (value.in_memory) value.pieces.clear();
  return value;
}

// ---- a function that is called ----

// The uses that a body makes of the function's parameters and results.
struct CalleeForm {
  std::map<std::string_view, std::vector<ParameterAccess>> accesses;
  std::set<std::string_view> addressed;
  bool has_shared_memory = false;
  std::string problem;
};

class CalleeReader {
 public:
  CalleeReader(const Module& m, const Function& f) : m_(m), f_(f), names_(m, f.body) {
    for (const auto* list : {&f.parameters, &f.results}) {
      for (const Parameter& p : *list) formals_.push_back(p.name);
    }
  }

  CalleeForm run() {
    if (!has_known_header()) {
      out_.problem = "its header has an unknown form";
      return std::move(out_);
    }
    ptx::for_each_statement(f_.body, [&](const Statement& s) {
      if (!out_.problem.empty() || (s.kind == StatementKind::Directive ? directive(s) : other(s))) return;
      out_.problem = fmt::format("it has '{}' ({})", m_.compact(s.tokens), m_.place(s.tokens.first));
    });
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool has_known_header() const {
    if (!f_.attributes.empty()) return false;
    for (const auto* list : {&f_.parameters, &f_.results}) {
      for (const Parameter& p : *list) {
        if (!m_.is(p.tokens.first, ".param") || p.name.empty() || p.bytes == 0 || names_.contains(p.name))
          return false;
      }
    }
    return true;
  }

  // Memory that a function declares exists once, however often it is called, but memory of its frame does
  // not. A block's memory is moved to the kernel.
  bool directive(const Statement& s) {
    if (m_.is(s.head, ".shared")) return out_.has_shared_memory = true;
    static constexpr std::array<std::string_view, 8> kPlain = {
        ".reg", ".local", ".param", ".loc", ";", ".branchtargets", ".calltargets", ".callprototype"};
    if (std::ranges::find(kPlain, m_.text(s.head)) != kPlain.end()) return true;
    return m_.is(s.head, ".pragma") && (m_.text(s.head + 1).starts_with("\"nounroll") ||
                                        m_.text(s.head + 1).starts_with("\"used_bytes_mask"));
  }

  bool other(const Statement& s) {
    if (s.kind != StatementKind::Instruction) return true;
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "alloca" || opcode == "stacksave" || opcode == "stackrestore") return false;
    if (const auto access = parameter_access(m_, s)) return access_is_known(s, *access);
    if (has_parameter_space(m_, s)) return false;
    return !names_any(m_, s, formals_) || takes_address(s);
  }

  bool access_is_known(const Statement& s, const ParameterAccess& access) {
    const bool is_result = is_one_of(f_.results, access.name);
    if (!is_result && !is_one_of(f_.parameters, access.name))
      return !names_.is_register(access.name) && !names_any(m_, s, formals_);
    out_.accesses[access.name].push_back(access);
    return is_result == access.is_store;
  }

  // `mov.b64 %rd1, f_param_0;` is the address of a copy in the frame.
  bool takes_address(const Statement& s) {
    if (!m_.is(s.head, "mov") || s.operands.size() != 2 || s.operands[1].size() != 1) return false;
    const std::string_view name = m_.text(s.operands[1].first);
    if (!is_one_of(f_.parameters, name) || ptx::type_bytes(m_.text(s.modifiers.last - 1)) != 8) return false;
    out_.addressed.insert(name);
    return true;
  }

  static bool is_one_of(const std::vector<Parameter>& list, std::string_view name) {
    return std::ranges::any_of(list, [&](const Parameter& p) { return p.name == name; });
  }

  const Module& m_;
  const Function& f_;
  const LocalNames names_;
  std::vector<std::string_view> formals_;
  CalleeForm out_;
};

// ---- a call ----

// The `.param` variable that a directive declares.
struct Declared {
  std::string_view name;
  uint32_t bytes = 0, align = 1;
};
std::optional<Declared> declared_parameter(const Module& m, const Statement& s) {
  Declared out;
  uint32_t element = 0;
  for (uint32_t t = s.head + 1; t < s.tokens.last && !m.is(t, ";"); ++t) {
    if (m.is(t, ".align")) {
      out.align = static_cast<uint32_t>(ptx::integer_value(m.text(++t)).value_or(0));
    } else if (m.is(t, "[")) {
      out.bytes = element * static_cast<uint32_t>(ptx::integer_value(m.text(t + 1)).value_or(0));
      t += 2;
    } else if (m.tokens[t].kind == ptx::TokenKind::Identifier && out.name.empty()) {
      out.name = m.text(t);
      out.bytes = element;
    } else if (element = ptx::type_bytes(m.text(t)); element == 0 || !out.name.empty()) {
      return std::nullopt;
    }
  }
  out.align = std::max(out.align, element);
  if (out.name.empty() || out.bytes == 0) return std::nullopt;
  return out;
}

class CallReader {
 public:
  CallReader(const Module& m, const Statement& scope, const Call& call, const RegisterBits& registers)
      : m_(m), scope_(scope), call_(call), registers_(registers) {}

  // Nothing if the scope is not of the known form.
  std::optional<InlinableCall> run(const Function& callee, const CalleeForm& form,
                                   const RegisterBits& callee_registers) {
    if (call_.parameters.size() != callee.parameters.size() || call_.results.size() != callee.results.size())
      return std::nullopt;
    actuals_ = call_.parameters;
    actuals_.insert(actuals_.end(), call_.results.begin(), call_.results.end());
    if (std::set(actuals_.begin(), actuals_.end()).size() != actuals_.size()) return std::nullopt;
    if (!std::ranges::all_of(scope_.body, [&](const Statement& s) { return statement(s); }))
      return std::nullopt;
    InlinableCall out{&callee, call_.statement, call_.parameters, call_.results, {}, {}};
    for (const bool results : {false, true}) {
      const auto& formals = results ? callee.results : callee.parameters;
      const auto& actuals = results ? call_.results : call_.parameters;
      for (size_t i = 0; i < formals.size(); ++i) {
        auto value = passed(actuals[i], formals[i], form, callee_registers);
        if (!value) return std::nullopt;
        (results ? out.returned : out.passed).push_back(std::move(*value));
      }
    }
    return out;
  }

 private:
  bool statement(const Statement& s) {
    if (s.kind == StatementKind::Block) return false;
    if (&s == call_.statement) return true;
    if (s.kind == StatementKind::Directive && m_.is(s.head, ".param")) {
      const auto declared = declared_parameter(m_, s);
      if (!declared || std::ranges::find(actuals_, declared->name) == actuals_.end()) return false;
      return declared_.emplace(declared->name, *declared).second;
    }
    if (s.kind == StatementKind::Instruction && m_.is(s.head, "call")) return false;
    if (!names_any(m_, s, actuals_)) return true;
    const auto access = parameter_access(m_, s);
    if (!access || std::ranges::find(actuals_, access->name) == actuals_.end()) return false;
    const bool is_parameter = std::ranges::find(call_.parameters, access->name) != call_.parameters.end();
    accesses_[access->name].push_back(*access);
    return access->is_store == is_parameter;
  }

  std::optional<PassedValue> passed(std::string_view actual, const Parameter& formal, const CalleeForm& form,
                                    const RegisterBits& callee_registers) {
    const auto declared = declared_.find(actual);
    if (declared == declared_.end()) return std::nullopt;
    std::vector<Use> uses;
    for (const ParameterAccess& access : accesses_[actual]) uses.push_back({access, &registers_});
    if (const auto found = form.accesses.find(formal.name); found != form.accesses.end()) {
      for (const ParameterAccess& access : found->second) uses.push_back({access, &callee_registers});
    }
    return passed_value(uses, std::max(declared->second.bytes, formal.bytes),
                        std::max(declared->second.align, formal.align), form.addressed.contains(formal.name));
  }

  const Module& m_;
  const Statement& scope_;
  const Call& call_;
  const RegisterBits& registers_;
  std::vector<std::string_view> actuals_;
  std::map<std::string_view, Declared> declared_;
  std::map<std::string_view, std::vector<ParameterAccess>> accesses_;
};

// ---- functions and their calls ----

// A call with the block around it.
struct PlacedCall {
  Call call;
  const Statement* scope = nullptr;
};

struct Body {
  Body(const Module& m, const Function& f) : registers(m, f) {
    const LocalNames names(m, f.body);
    visit(m, names, f.body);
    ptx::for_each_statement(f.body, [&](const Statement&) { ++statements; });
    for (const PlacedCall& c : calls) {
      if (c.scope == &f.body) loose.insert(c.call.statement);
    }
  }

  RegisterBits registers;
  std::vector<PlacedCall> calls;
  std::set<const Statement*> loose;  // calls that stand in no scope of their own
  size_t statements = 0;

 private:
  void visit(const Module& m, const LocalNames& names, const Statement& scope) {
    for (const Statement& s : scope.body) {
      if (s.kind == StatementKind::Block) {
        visit(m, names, s);
      } else if (const auto call = parse_call(m, s, names)) {
        calls.push_back({*call, &scope});
      }
    }
  }
};

// Facts about the functions of one module, each found once.
class Functions {
 public:
  explicit Functions(const Module& m) : m_(m) {}

  const Body& body(const Function& f) {
    auto& body = bodies_[&f];
    if (!body) body.emplace(m_, f);
    return *body;
  }

  const CalleeForm& form(const Function& f) {
    auto& form = forms_[&f];
    if (!form) form = CalleeReader(m_, f).run();
    return *form;
  }

  std::optional<InlinableCall> call_of(const Function& caller, const PlacedCall& placed) {
    const Function* callee = called_function(m_, placed.call);
    if (callee == nullptr || body(caller).loose.contains(placed.call.statement)) return std::nullopt;
    return CallReader(m_, *placed.scope, placed.call, body(caller).registers)
        .run(*callee, form(*callee), body(*callee).registers);
  }

 private:
  const Module& m_;
  std::map<const Function*, std::optional<Body>> bodies_;
  std::map<const Function*, std::optional<CalleeForm>> forms_;
};

// True for effects that a consumer or a rewrite of the launch has to see in the kernel itself.
bool depends_on_place(const Effects& effects) {
  using enum EffectKind;
  return effects.has(PositionRegister) || effects.has(LaneRegister) || effects.has(BlockBarrier) ||
         effects.has(PartialBarrier) || effects.has(WarpSync) || effects.has(Exit);
}

bool has_launch(const Effects& effects) {
  return std::ranges::any_of(effects.all(), [](const Effect& e) {
    return e.kind == EffectKind::DeviceRuntime && idioms().is_kind(e.what, "launch");
  });
}

class KernelReader {
 public:
  KernelReader(const Module& m, Functions& functions, const Function& kernel, bool is_launched)
      : m_(m), functions_(functions), graph_(m, kernel), kernel_(kernel), is_launched_(is_launched) {
    launches_ = has_launch(graph_.closure(kernel));
  }

  InlinedKernel run() {
    out_.kernel = &kernel_;
    if (!launches_ && !is_launched_) return std::move(out_);
    if (add(kernel_) > kMostOfKernel || divides_shared_memory()) out_.calls.clear();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_wanted(const Function& callee) const {
    if (graph_.is_recursive(callee)) return false;
    const Effects& effects = graph_.closure(callee);
    return (launches_ && effects.has(EffectKind::DeviceRuntime)) ||
           (is_launched_ && depends_on_place(effects));
  }

  // Adds the calls of `f` that are to be inlined, and returns the size of `f` with them.
  size_t add(const Function& f) {
    const auto known = sizes_.find(&f);
    if (known != sizes_.end()) return known->second;
    size_t size = functions_.body(f).statements;
    for (const PlacedCall& placed : functions_.body(f).calls) {
      auto call = functions_.call_of(f, placed);
      if (!call || !is_wanted(*call->callee) || !functions_.form(*call->callee).problem.empty()) continue;
      const size_t more = add(*call->callee);
      if (more > kMostStatements) continue;
      size += more;
      out_.calls.emplace(placed.scope, std::move(*call));
    }
    return sizes_[&f] = size;
  }

  // True if a function with shared memory of its own is inlined here and called there: each would have
  // another variable.
  bool divides_shared_memory() {
    std::set<const Function*> written_out, called;
    std::vector<std::pair<const Function*, bool>> work = {{&kernel_, false}};
    while (!work.empty()) {
      const auto [f, is_called] = work.back();
      work.pop_back();
      for (const PlacedCall& placed : functions_.body(*f).calls) {
        const Function* callee = called_function(m_, placed.call);
        if (callee == nullptr) continue;
        const bool stays = is_called || !out_.calls.contains(placed.scope);
        if ((stays ? called : written_out).insert(callee).second) work.emplace_back(callee, stays);
      }
    }
    const bool indirect = graph_.closure(kernel_).has(EffectKind::IndirectCall);
    return std::ranges::any_of(written_out, [&](const Function* f) {
      return functions_.form(*f).has_shared_memory && (indirect || called.contains(f));
    });
  }

  const Module& m_;
  Functions& functions_;
  CallGraph graph_;
  const Function& kernel_;
  bool is_launched_, launches_ = false;
  std::map<const Function*, size_t> sizes_;
  InlinedKernel out_;
};

bool calls_any(const Module& m, const Function& f, const std::unordered_set<std::string_view>& functions) {
  bool found = false;
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (found || s.kind != StatementKind::Instruction || !m.is(s.head, "call")) return;
    for (uint32_t t = s.modifiers.last; t < s.tokens.last; ++t)
      found = found || functions.contains(m.text(t));
  });
  return found;
}

bool is_kernel(const Function& f) { return f.kind == FunctionKind::Entry && f.is_definition; }

std::unordered_set<std::string_view> defined_functions(const Module& m) {
  std::unordered_set<std::string_view> out;
  for (const Function& f : m.functions) {
    if (f.kind == FunctionKind::Func && f.is_definition) out.insert(f.name);
  }
  return out;
}

std::string problem_of(const Module& m, const Function& callee) {
  if (CallGraph(m, callee).is_recursive(callee)) return "it calls itself";
  Functions functions(m);
  if (!functions.form(callee).problem.empty()) return functions.form(callee).problem;
  for (const Caller& caller : callers_of(m, callee.name).calls) {
    for (const PlacedCall& placed : functions.body(*caller.function).calls) {
      if (placed.call.statement != caller.call) continue;
      if (!functions.call_of(*caller.function, placed))
        return fmt::format("the call at {} has an unknown form", caller.place);
    }
  }
  if (functions.body(callee).statements > kMostStatements) return "it is too long";
  return {};
}

}  // namespace

bool may_inline(const Module& m) {
  if (m.debug) return false;  // left as they are
  const auto functions = defined_functions(m);
  if (functions.empty()) return false;
  return std::ranges::any_of(m.functions,
                             [&](const Function& f) { return is_kernel(f) && calls_any(m, f, functions); });
}

std::vector<InlinedKernel> kernels_to_inline(const Module& m, const KernelNames& launched) {
  std::vector<InlinedKernel> out;
  if (!may_inline(m)) return out;
  const auto defined = defined_functions(m);
  Functions functions(m);
  for (const Function& f : m.functions) {
    if (!is_kernel(f) || !calls_any(m, f, defined)) continue;
    InlinedKernel kernel = KernelReader(m, functions, f, launched.contains(f.name)).run();
    if (!kernel.calls.empty()) out.push_back(std::move(kernel));
  }
  return out;
}

void add_launched(const Module& m, KernelNames& launched) {
  std::unordered_set<std::string_view> kernels;
  for (const Function& f : m.functions) {
    if (f.kind == FunctionKind::Entry) kernels.insert(f.name);
  }
  for (const Function& f : m.functions) {
    if (!f.is_definition) continue;
    for (uint32_t t = f.body.tokens.first; t < f.body.tokens.last; ++t) {
      if (m.tokens[t].kind == ptx::TokenKind::Identifier && kernels.contains(m.text(t)))
        launched.emplace(m.text(t));
    }
  }
}

std::set<std::string_view> functions_in_use(const Module& m) {
  std::set<std::string_view> found;
  const auto functions = defined_functions(m);
  std::vector<ptx::TokenRange> work;
  for (const ptx::Variable& v : m.variables) work.push_back(v.tokens);
  for (const Function& f : m.functions) {
    const bool is_root = f.kind == FunctionKind::Entry || f.linkage == ptx::Linkage::Visible;
    if (!f.is_definition || !is_root) continue;
    if (f.kind == FunctionKind::Func) found.insert(f.name);
    work.push_back(f.body.tokens);
  }
  while (!work.empty()) {
    const ptx::TokenRange range = work.back();
    work.pop_back();
    for (uint32_t t = range.first; t < range.last; ++t) {
      const auto named = functions.find(m.text(t));
      if (named != functions.end() && found.insert(*named).second)
        work.push_back(m.find_function(*named)->body.tokens);
    }
  }
  return found;
}

std::string not_inlined_text(const Module& m, const Function& callee) {
  if (m.debug) return {};
  const std::string problem = problem_of(m, callee);
  return problem.empty() ? "" : "; it cannot be made part of a kernel: " + problem;
}

}  // namespace klap::analysis
