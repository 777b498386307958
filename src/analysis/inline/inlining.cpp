#include "analysis/inline/inlining.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "analysis/effects/effects.h"
#include "analysis/graph/register_bits.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {

using ptx::Function;
using ptx::FunctionKind;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

namespace {

// The limits for one function with all that is inlined into it, and for a kernel.
constexpr size_t kMostStatements = 10'000, kMostOfKernel = 50'000;

const Function* called_function(const Module& m, const Call& call) {
  const Function* f = call.direct ? m.find_function(call.callee) : nullptr;
  const bool has_body = f != nullptr && f->is_definition && f->kind == FunctionKind::Func;
  return has_body && runtime_function(m, *f).empty() ? f : nullptr;
}

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
    if (!form) form = callee_form(m_, f);
    return *form;
  }

  std::optional<InlinableCall> call_of(const Function& caller, const PlacedCall& placed) {
    const Function* callee = called_function(m_, placed.call);
    if (callee == nullptr || body(caller).loose.contains(placed.call.statement)) return std::nullopt;
    return inlinable_call(m_, *placed.scope, placed.call, body(caller).registers,
                          {*callee, form(*callee), body(*callee).registers});
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
    std::set<const Function*> expanded, called;
    std::vector<std::pair<const Function*, bool>> work = {{&kernel_, false}};
    while (!work.empty()) {
      const auto [f, is_called] = work.back();
      work.pop_back();
      for (const PlacedCall& placed : functions_.body(*f).calls) {
        const Function* callee = called_function(m_, placed.call);
        if (callee == nullptr) continue;
        const bool stays = is_called || !out_.calls.contains(placed.scope);
        if ((stays ? called : expanded).insert(callee).second) work.emplace_back(callee, stays);
      }
    }
    const bool indirect = graph_.closure(kernel_).has(EffectKind::IndirectCall);
    return std::ranges::any_of(expanded, [&](const Function* f) {
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

namespace {

// The functions that variables come to, kernels, and visible functions if they count.
std::set<std::string_view> functions_reached(const Module& m, bool from_visible) {
  std::set<std::string_view> found;
  const auto functions = defined_functions(m);
  std::vector<ptx::TokenRange> work;
  for (const ptx::Variable& v : m.variables) work.push_back(v.tokens);
  for (const Function& f : m.functions) {
    const bool is_root =
        f.kind == FunctionKind::Entry || (from_visible && f.linkage == ptx::Linkage::Visible);
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

}  // namespace

std::set<std::string_view> functions_in_use(const Module& m) { return functions_reached(m, true); }
std::set<std::string_view> functions_of_kernels(const Module& m) { return functions_reached(m, false); }

std::string not_inlined_text(const Module& m, const Function& callee) {
  if (m.debug) return {};
  const std::string problem = problem_of(m, callee);
  return problem.empty() ? "" : "; it cannot be made part of a kernel: " + problem;
}

}  // namespace klap::analysis
