#include "analysis/calls.h"

#include <fmt/format.h>

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenRange;

std::optional<Call> parse_call(const Module& module, const Statement& s, const LocalNames& names) {
  if (s.kind != StatementKind::Instruction || !module.is(s.head, "call")) return std::nullopt;
  const auto list = [&](TokenRange range) {
    std::vector<std::string_view> out;
    for (uint32_t t = range.first; t < range.last; ++t) {
      if (module.tokens[t].kind == ptx::TokenKind::Identifier) out.push_back(module.text(t));
    }
    return out;
  };
  Call call;
  call.statement = &s;
  size_t next = 0;
  if (next < s.operands.size() && module.is(s.operands[next].first, "("))
    call.results = list(s.operands[next++]);
  if (next >= s.operands.size()) throw module.error_at(s.head, "call without a function");
  call.callee = module.text(s.operands[next++].first);
  if (next < s.operands.size() && module.is(s.operands[next].first, "("))
    call.parameters = list(s.operands[next]);
  call.direct = !names.is_register(call.callee);
  return call;
}

const std::string* CallScope::actual(std::string_view parameter, uint32_t offset) const {
  const auto found = actuals.find(parameter);
  if (found == actuals.end()) return nullptr;
  const auto value = found->second.find(offset);
  return value == found->second.end() ? nullptr : &value->second;
}

CallScope read_call_scope(const Module& module, const Statement& scope, const Statement& call) {
  CallScope out;
  for (const Statement& s : scope.body) {
    if (&s == &call || s.kind == StatementKind::Directive) continue;
    const bool plain = s.kind == StatementKind::Instruction && !s.predicated && s.operands.size() == 2;
    if (plain && module.is(s.head, "st") && module.has_modifier(s, ".param")) {
      const auto address = parse_address(module, s.operands[0]);
      if (!address || address->offset < 0) {
        out.problem = fmt::format("a parameter store of unknown address ({})", module.place(s.head));
        return out;
      }
      const uint32_t width = ptx::type_bytes(module.text(s.modifiers.last - 1));
      uint32_t offset = static_cast<uint32_t>(address->offset);
      for (std::string& component : components(module, s.operands[1])) {
        out.actuals[address->base][offset] = std::move(component);
        offset += width;
      }
    } else if (plain && module.is(s.head, "ld") && module.has_modifier(s, ".param")) {
      out.result = std::string(module.text(s.operands[0]));
    } else {
      out.problem = fmt::format("the call's scope holds another instruction ({})", module.place(s.head));
      return out;
    }
  }
  return out;
}

namespace {

// The name of the function in `call NAME` is no use of its address.
bool names_callee(const Module& module, const Call& call, uint32_t token) {
  for (const TokenRange& operand : call.statement->operands) {
    if (module.is(operand.first, "(")) continue;
    return operand.first == token;
  }
  return false;
}

class CallerSearch {
 public:
  CallerSearch(const Module& module, std::string_view name) : m_(module), name_(name) {}

  Callers run() {
    for (const ptx::Function& f : m_.functions) {
      if (!f.is_definition || !mentions(f.body.tokens)) continue;
      const LocalNames names(m_, f.body);
      block(f, names, f.body);
    }
    // A table of functions: `.global .u64 table[2] = {f, g};`.
    for (const ptx::Variable& v : m_.variables) address(v.tokens);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool mentions(TokenRange range) const {
    for (uint32_t t = range.first; t < range.last; ++t) {
      if (m_.is(t, name_)) return true;
    }
    return false;
  }

  void address(TokenRange range) {
    for (uint32_t t = range.first; t < range.last && out_.address_place.empty(); ++t) {
      if (m_.is(t, name_)) out_.address_place = m_.place(t);
    }
  }

  void block(const ptx::Function& f, const LocalNames& names, const Statement& scope) {
    for (const Statement& s : scope.body) {
      if (s.kind == StatementKind::Block) {
        block(f, names, s);
        continue;
      }
      const auto call = parse_call(m_, s, names);
      if (call && call->direct && call->callee == name_) {
        out_.calls.push_back({&f, &s, &scope, m_.place(s.head)});
        continue;
      }
      if (names.contains(name_)) continue;  // a local name hides the function
      for (uint32_t t = s.tokens.first; t < s.tokens.last && out_.address_place.empty(); ++t) {
        if (m_.is(t, name_) && !(call && names_callee(m_, *call, t))) out_.address_place = m_.place(t);
      }
    }
  }

  const Module& m_;
  std::string_view name_;
  Callers out_;
};

}  // namespace

Callers callers_of(const Module& module, std::string_view function) {
  return CallerSearch(module, function).run();
}

std::string print(const Callers& callers) {
  std::string text;
  for (const Caller& c : callers.calls) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", c.function->name, c.place);
  }
  if (!callers.address_place.empty()) {
    text += fmt::format("{}through its address ({})", text.empty() ? "code that comes to it " : ", ",
                        callers.address_place);
  }
  return text.empty() ? "nothing in its unit" : text;
}

}  // namespace klap::analysis
