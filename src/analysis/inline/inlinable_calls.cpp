#include "analysis/inline/inlinable_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/graph/operands.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Parameter;
using ptx::Statement;
using ptx::StatementKind;

namespace {

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

}  // namespace

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

}  // namespace

CalleeForm callee_form(const Module& m, const Function& callee) { return CalleeReader(m, callee).run(); }

std::optional<InlinableCall> inlinable_call(const Module& m, const Statement& scope, const Call& call,
                                            const RegisterBits& registers, const Callee& callee) {
  return CallReader(m, scope, call, registers).run(callee.function, callee.form, callee.registers);
}

}  // namespace klap::analysis
