#include "transform/text/inliner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/inline/inlinable_calls.h"
#include "ptx/edit.h"
#include "transform/text/made_text.h"
#include "transform/text/splicer.h"

namespace klap::transform {
namespace {

using analysis::InlinableCall;
using analysis::InlinedKernel;
using analysis::ParameterAccess;
using analysis::PassedValue;
using analysis::RegisterBits;
using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

constexpr std::string_view kAnnotation = "__klap_";

// ---- one body ----

// A parameter or a result of a call, and what its registers or its array are called after.
struct Binding {
  const PassedValue* value = nullptr;
  std::string stem;

  [[nodiscard]] std::string piece(uint32_t offset) const { return fmt::format("%{}_{}", stem, offset); }
};
using Bindings = std::map<std::string_view, Binding>;

// The state that all bodies that are inlined in one kernel share.
struct Kernel {
  const InlinedKernel& plan;
  MadeText& parts;
  analysis::LocalNames names;  // that the kernel itself declares
  uint32_t calls = 0;
  bool hides = false;  // a function means something else by one of these names
  std::map<const Function*, std::string> shared = {};  // prefixes of the functions' own shared variables
  std::string declarations = {};                       // of these
};

class CallSplicer final : public Splicer {
 public:
  CallSplicer(const Module& m, const Function& f, std::string prefix, Bindings formals, std::string through,
              Kernel& kernel)
      : Splicer(m, f, std::move(prefix)),
        kernel_(kernel),
        formals_(std::move(formals)),
        through_(std::move(through)),
        registers_(m, f) {
    if (!prefix_.empty() && names_.declares_shared()) move_shared_variables();
  }

  // A function's body, which falls through at its end.
  std::string called_body() {
    const ptx::View<Statement>& statements = function_.body.body;
    size_t last = statements.size();
    if (last > 0 && is_plain_return(statements[last - 1])) --last;
    for (size_t i = 0; i < last; ++i) statement(statements[i]);
    const bool ends_in_label = last > 0 && statements[last - 1].kind == StatementKind::Label;
    if (returns_early_ || ends_in_label) out_ += landing(end_label());
    return std::move(out_);
  }

  // The scope around a call that is inlined.
  std::string call_text(const Statement& scope, const InlinableCall& call) {
    write_call(scope, call);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool keeps_exits() const override { return true; }
  std::string location(const Statement& loc) override { return std::string(m_.text(loc.tokens)); }
  void begin(const Statement& s) override {
    out_ += kernel_.parts.mark(m_.tokens[s.tokens.first].begin, false, through_);
  }

  [[nodiscard]] bool is_plain_return(const Statement& s) const {
    return s.kind == StatementKind::Instruction && m_.is(s.head, "ret") && !s.predicated;
  }

  // A block has such variables once, wherever the function is called: they move to the kernel.
  void move_shared_variables() {
    const auto [entry, is_first] = kernel_.shared.try_emplace(&function_);
    if (is_first) entry->second = fmt::format("klap_s{}_", kernel_.shared.size() - 1);
    shared_prefix_ = entry->second;
    if (!is_first) return;
    ptx::for_each_statement(function_.body, [&](const Statement& s) {
      if (!is_shared_declaration(s)) return;
      kernel_.declarations +=
          "\n\t" + kernel_.parts.mark(m_.tokens[s.tokens.first].begin, false, through_) + renamed(s.tokens);
    });
  }
  [[nodiscard]] bool is_shared_declaration(const Statement& s) const {
    return s.kind == StatementKind::Directive && m_.is(s.head, ".shared");
  }
  [[nodiscard]] const Around* around(const Statement& s) const override {
    static const Around kNothing{"", "", true};
    return !shared_prefix_.empty() && is_shared_declaration(s) ? &kNothing : nullptr;
  }

  bool special_scope(const Statement& scope) override {
    const auto call = kernel_.plan.calls.find(&scope);
    if (call == kernel_.plan.calls.end()) return false;
    write_call(scope, call->second);
    return true;
  }

  // ---- statements ----

  bool special(const Statement& s) override {
    if (m_.is(s.head, "ret")) {
      line(guard(s) + "bra " + end_label());
      return returns_early_ = true;
    }
    if (const auto access = analysis::parameter_access(m_, s)) {
      const Binding* const binding = find(access->name);
      if (binding == nullptr) return false;
      if (binding->value->in_memory) {
        access_array(s, *access, *binding);
      } else {
        access_pieces(s, *access, *binding);
      }
      return true;
    }
    return m_.is(s.head, "mov") && s.operands.size() == 2 && address_of_array(s);
  }

  bool address_of_array(const Statement& s) {
    const auto formal = formals_.find(m_.text(s.operands[1].first));
    if (formal == formals_.end()) return false;
    line(fmt::format("{}mov.u64 {}, {}", guard(s), renamed(s.operands[0]), formal->second.stem));
    return true;
  }

  [[nodiscard]] const Binding* find(std::string_view name) const {
    for (const Bindings* bindings : {&actuals_, &formals_}) {
      if (const auto found = bindings->find(name); found != bindings->end()) return &found->second;
    }
    return nullptr;
  }

  // `ld.param.v2.u32 {%r1, %r2}, [param0+8]` as the load of the array that it then is.
  void access_array(const Statement& s, const ParameterAccess& access, const Binding& binding) {
    const std::string address = fmt::format("[{}+{}]", binding.stem, access.offset);
    const std::string value = renamed(s.operands[access.is_store ? 1 : 0]);
    const std::string modifiers = ".local" + modifiers_without(s, ".param");
    line(access.is_store ? fmt::format("{}st{} {}, {}", guard(s), modifiers, address, value)
                         : fmt::format("{}ld{} {}, {}", guard(s), modifiers, value, address));
  }

  void access_pieces(const Statement& s, const ParameterAccess& access, const Binding& binding) {
    for (size_t i = 0; i < access.components.size(); ++i) {
      const uint32_t offset = access.offset + static_cast<uint32_t>(i) * access.bytes();
      const std::string piece = binding.piece(offset), &component = access.components[i];
      line(guard(s) + (access.is_store
                           ? store_text(access, piece, component)
                           : load_text(access, binding.value->pieces.at(offset), component, piece)));
    }
  }

  [[nodiscard]] std::string component_text(const std::string& component) const {
    return names_.contains(component) ? prefixed(component) : component;
  }

  static bool is_float_literal(std::string_view operand) {
    return operand.size() > 2 && operand[0] == '0' &&
           std::string_view("fFdD").find(operand[1]) != std::string_view::npos;
  }

  // A store cuts a value that is too wide for it. One byte lies in a register of two bytes.
  [[nodiscard]] std::string store_text(const ParameterAccess& access, const std::string& piece,
                                       const std::string& component) const {
    const uint32_t bits = std::max(16u, 8 * access.bytes()), from = registers_.of(component);
    if (from > bits) return fmt::format("cvt.u{}.u{} {}, {}", bits, from, piece, component_text(component));
    const char kind = from == 0 && is_float_literal(component) ? 'f' : 'b';
    return fmt::format("mov.{}{} {}, {}", kind, bits, piece, component_text(component));
  }

  // A load extends a value that is narrower than its register, by the sign if its type has one.
  [[nodiscard]] std::string load_text(const ParameterAccess& access, uint32_t piece_bytes,
                                      const std::string& component, const std::string& piece) const {
    const uint32_t bits = 8 * access.bytes(), to = registers_.of(component);
    const std::string operands = component_text(component) + ", " + piece;
    if (to > bits) {
      const char kind = access.type.starts_with(".s") ? 's' : 'u';
      return fmt::format("cvt.{0}{1}.{0}{2} {3}", kind, to, bits, operands);
    }
    if (access.bytes() < piece_bytes) return fmt::format("cvt.u{}.u{} {}", to, 8 * piece_bytes, operands);
    return fmt::format("mov.b{} {}", bits, operands);
  }

  std::string outside(uint32_t token) override {
    const std::string_view name = m_.text(token);
    if (!prefix_.empty()) kernel_.hides = kernel_.hides || is_of_kernel(name);
    return std::string(name);
  }
  [[nodiscard]] bool is_of_kernel(std::string_view name) const {
    if (name.starts_with(kAnnotation)) return false;
    return kernel_.names.contains(name) ||
           std::ranges::find(kernel_.plan.kernel->parameters, name, &ptx::Parameter::name) !=
               kernel_.plan.kernel->parameters.end();
  }
  [[nodiscard]] std::string prefixed(std::string_view name) const override {
    if (name.starts_with(kAnnotation)) return std::string(name);
    if (!shared_prefix_.empty() && names_.is_shared(name)) return shared_prefix_ + std::string(name);
    return Splicer::prefixed(name);
  }

  // ---- calls ----

  void write_call(const Statement& scope, const InlinableCall& call) {
    const std::string prefix = fmt::format("klap_i{}_", kernel_.calls++);
    Bindings formals;
    actuals_.clear();
    bind(call.parameters, call.passed, call.callee->parameters, prefix + "in", formals);
    bind(call.results, call.returned, call.callee->results, prefix + "out", formals);
    out_ += "\t{\n";
    for (const auto& [name, binding] : actuals_) declare(binding);
    for (const Statement& s : scope.body) {
      if (&s == call.call) {
        body_of(s, call, prefix, formals);
      } else if (s.kind != StatementKind::Directive || !m_.is(s.head, ".param")) {
        statement(s);
      }
    }
    out_ += "\t}\n";
    actuals_.clear();
  }

  void bind(const std::vector<std::string_view>& actuals, const std::vector<PassedValue>& values,
            const std::vector<ptx::Parameter>& parameters, const std::string& stem, Bindings& formals) {
    for (size_t i = 0; i < actuals.size(); ++i) {
      const Binding binding{&values[i], fmt::format("{}{}", stem, i)};
      actuals_[actuals[i]] = formals[parameters[i].name] = binding;
    }
  }

  void declare(const Binding& binding) {
    if (binding.value->in_memory) {
      line(fmt::format(".local .align {} .b8 {}[{}]", binding.value->align, binding.stem,
                       binding.value->bytes));
    }
    for (const auto& [offset, bytes] : binding.value->pieces)
      line(fmt::format(".reg .b{} {}", std::max(16u, 8 * bytes), binding.piece(offset)));
  }

  void body_of(const Statement& s, const InlinableCall& call, const std::string& prefix,
               const Bindings& formals) {
    begin(s);
    const std::string skip = "$" + prefix + "skip";
    if (s.predicated) {
      line(fmt::format("@{}{} bra {}", s.predicate_negated ? "" : "!", rename(s.predicate), skip));
    }
    const std::string through = fmt::format("{}, called at {}{}", call.callee->name, m_.place(s.head),
                                            through_.empty() ? "" : " of " + through_);
    CallSplicer inner(m_, *call.callee, prefix, formals, through, kernel_);
    out_ += inner.called_body();
    begin(s);
    if (s.predicated) {
      out_ += fmt::format("\t{}:\n\t.reg .pred %{}skip;\n\tmov.pred %{}skip, 0;\n", skip, prefix, prefix);
    }
  }

  Kernel& kernel_;
  const Bindings formals_;
  Bindings actuals_;  // of the scope that is being written
  const std::string through_;
  std::string shared_prefix_;
  const RegisterBits registers_;
  bool returns_early_ = false;
};

// Text in place of some tokens.
using Replacements = std::vector<std::pair<ptx::TokenRange, std::string>>;

// The outermost scopes of a body that is inlined.
void replace_calls(const Module& m, const Statement& block, Kernel& kernel, Replacements& out) {
  for (const Statement& s : block.body) {
    if (s.kind != StatementKind::Block) continue;
    const auto call = kernel.plan.calls.find(&s);
    if (call == kernel.plan.calls.end()) {
      replace_calls(m, s, kernel, out);
      continue;
    }
    const std::string text =
        CallSplicer(m, *kernel.plan.kernel, "", {}, "", kernel).call_text(s, call->second);
    const uint32_t end = m.tokens[s.tokens.last - 1].end;
    out.emplace_back(s.tokens, kernel.parts.mark(m.tokens[s.tokens.first].begin, false, "") + text +
                                   kernel.parts.mark(end, true, ""));
  }
}

}  // namespace

Module with_inlined_calls(const Module& module, const std::vector<InlinedKernel>& kernels) {
  ptx::Edits edits(module);
  MadeText parts;
  for (const InlinedKernel& plan : kernels) {
    const Statement& body = plan.kernel->body;
    Kernel kernel{plan, parts, analysis::LocalNames(module, body)};
    Replacements replacements;
    replace_calls(module, body, kernel, replacements);
    if (kernel.hides) continue;  // such a kernel keeps its calls
    for (auto& [tokens, text] : replacements) edits.replace(tokens, std::move(text));
    if (kernel.declarations.empty()) continue;
    const uint32_t open = body.tokens.first;
    edits.insert_after(open, kernel.declarations + parts.mark(module.tokens[open].end, true, ""));
  }
  return parts.edited(module, edits);
}

}  // namespace klap::transform
