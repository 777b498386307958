#include "analysis/launches/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

const std::string* CallScope::actual(std::string_view parameter, uint32_t offset, uint32_t bytes) const {
  const auto found = actuals.find(parameter);
  if (found == actuals.end()) return nullptr;
  const auto value = found->second.find(offset);
  const bool fits = value != found->second.end() && (bytes == 0 || value->second.bytes == bytes);
  return fits ? &value->second.operand : nullptr;
}

namespace {

class ScopeReader {
 public:
  ScopeReader(const Module& module, const Statement& scope, const Statement& call)
      : m_(module), scope_(scope), names_(module, scope), call_(*parse_call(module, call, names_)) {}

  CallScope run() {
    for (const Statement& s : scope_.body) {
      if (s.kind == StatementKind::Directive) {
        declaration(s);
        continue;
      }
      if (&s == call_.statement) {
        called_ = true;
        continue;
      }
      std::string_view wrong = instruction(s);
      if (!wrong.empty()) return refused(wrong, s);
    }
    for (const std::string_view result : call_.results) {
      if (result != "_" && !declared_.contains(result))
        return refused("the call's result is not a parameter of its scope", *call_.statement);
    }
    return std::move(out_);
  }

 private:
  CallScope refused(std::string_view what, const Statement& s) {
    out_.problem = fmt::format("{} ({})", what, m_.place(s.head));
    return std::move(out_);
  }

  void declaration(const Statement& s) {
    if (!m_.is(s.head, ".param")) return;
    for (uint32_t t = s.head + 1; t < s.tokens.last; ++t) {
      if (m_.tokens[t].kind == ptx::TokenKind::Identifier) declared_.insert(m_.text(t));
    }
  }

  // The problem with an instruction of the scope; empty if there is none.
  std::string_view instruction(const Statement& s) {
    const bool plain = s.kind == StatementKind::Instruction && !s.predicated && s.operands.size() == 2 &&
                       m_.has_modifier(s, ".param");
    if (plain && m_.is(s.head, "st")) return store(s);
    if (plain && m_.is(s.head, "ld")) return load(s);
    return "the call's scope holds another instruction";
  }

  std::string_view store(const Statement& s) {
    const auto address = parse_address(m_, s.operands[0]);
    const uint32_t width = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    if (!address || address->offset < 0 || width == 0) return "a parameter store of unknown address";
    const bool passed = std::ranges::find(call_.parameters, address->base) != call_.parameters.end();
    if (!passed || !declared_.contains(address->base) || called_)
      return "the call's scope stores to something else than its parameters";
    uint32_t offset = static_cast<uint32_t>(address->offset);
    for (std::string& component : components(m_, s.operands[1])) {
      if (names_.is_register(component)) return "a register of the call's scope is passed";
      if (overlaps(address->base, offset, width)) return "a parameter of the call is stored twice";
      out_.actuals[address->base][offset] = {std::move(component), width};
      offset += width;
    }
    return {};
  }

  bool overlaps(std::string_view parameter, uint32_t offset, uint32_t width) {
    const auto& stored = out_.actuals[parameter];
    return std::ranges::any_of(stored, [&](const auto& other) {
      return other.first < offset + width && offset < other.first + other.second.bytes;
    });
  }

  std::string_view load(const Statement& s) {
    const auto address = parse_address(m_, s.operands[1]);
    const std::vector<std::string> to = components(m_, s.operands[0]);
    const bool of_result = address && address->offset == 0 && call_.results.size() == 1 &&
                           address->base == call_.results[0] && to.size() == 1;
    if (!of_result || !called_) return "the call's scope loads something else than its result";
    if (!out_.result.empty()) return "the call's result is loaded twice";
    if (names_.is_register(to[0])) return "the call's result is loaded to a register of its scope";
    out_.result = to[0];
    out_.result_bytes = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    return {};
  }

  const Module& m_;
  const Statement& scope_;
  const LocalNames names_;  // of the scope
  const Call call_;
  std::set<std::string_view> declared_;  // parameters
  bool called_ = false;
  CallScope out_;
};

}  // namespace

CallScope read_call_scope(const Module& module, const Statement& scope, const Statement& call) {
  return ScopeReader(module, scope, call).run();
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
