#include "analysis/launches/origins.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/launches/calls.h"
#include "ptx/argument_words.h"

namespace klap::analysis {
namespace {

using ptx::Statement;
using ptx::TokenRange;

class Search {
 public:
  explicit Search(const OriginQuery& query) : q_(query) {}

  std::vector<Origin> run(std::string_view operand) {
    leaf_or_register(operand, nullptr);
    return std::move(found_);
  }

 private:
  // `at` is the instruction that reads the operand, null for the one that was asked about.
  void leaf_or_register(std::string_view operand, const Statement* at) {
    if (q_.data.names().is_register(operand)) {
      if (seen_.emplace(operand).second) register_value(operand, at);
      return;
    }
    const bool negative = operand.starts_with('-');
    if (const auto number = ptx::integer_value(operand.substr(negative ? 1 : 0))) {
      add({OriginKind::Constant, "", negative ? ~*number + 1 : *number, at, {}});
    } else if (operand.starts_with('%')) {
      add({OriginKind::SpecialRegister, std::string(operand), 0, at, {}});
    } else {
      add({OriginKind::Symbol, std::string(operand), 0, at, {}});
    }
  }

  void register_value(std::string_view name, const Statement* at) {
    const auto& definitions = q_.data.definitions(name);
    if (definitions.empty()) add({OriginKind::Undefined, std::string(name), 0, at, {}});
    for (uint32_t index : definitions) definition(q_.flow.instructions()[index]);
  }

  void definition(const FlatInstruction& instruction) {
    const Statement& s = *instruction.statement;
    const std::string_view opcode = q_.module.text(s.head);
    if (opcode == "mov" && s.operands.size() == 2 && s.operands[0].size() == 1) {
      if (const auto source = plain(s.operands[1])) return leaf_or_register(*source, &s);
    } else if (opcode == "selp" && s.operands.size() == 4) {
      const auto first = plain(s.operands[1]), second = plain(s.operands[2]);
      if (first && second) {
        leaf_or_register(*first, &s);
        return leaf_or_register(*second, &s);
      }
    } else if (opcode == "cvta" && s.operands.size() == 2) {
      if (const auto source = plain(s.operands[1])) return leaf_or_register(*source, &s);
    } else if (opcode == "ld" && s.operands.size() == 2) {
      return load(instruction);
    }
    add({OriginKind::Computed, q_.module.full_opcode(s), 0, &s, {}});
  }

  // An operand of one token, a special register's component (%tid.x), or a signed literal.
  std::optional<std::string> plain(TokenRange operand) const {
    const std::string_view first = q_.module.text(operand.first);
    if (operand.size() == 1) return std::string(first);
    if (operand.size() == 2 && first.starts_with('%') && !q_.data.names().is_register(first))
      return std::string(q_.module.text(operand));
    const bool negative = operand.size() == 2 && q_.module.is(operand.first, "-") &&
                          q_.module.tokens[operand.first + 1].kind == ptx::TokenKind::Number;
    if (negative) return "-" + std::string(q_.module.text(operand.first + 1));
    return std::nullopt;
  }

  void load(const FlatInstruction& instruction) {
    const Statement& s = *instruction.statement;
    const auto address = parse_address(q_.module, s.operands[1]);
    const auto is_parameter = [](std::string_view modifier) { return modifier.starts_with(".param"); };
    std::string space = "generic";
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view modifier = q_.module.text(t);
      if (is_parameter(modifier)) {
        if (!address) break;
        return parameter_load(instruction, *address);
      }
      for (const std::string_view known : {".global", ".local", ".shared", ".const"}) {
        if (modifier.starts_with(known)) space = known.substr(1);
      }
    }
    add({OriginKind::Load, space, 0, &s, {}});
  }

  // The function's own parameter, or the result of a call in the same scope.
  void parameter_load(const FlatInstruction& instruction, const Address& address) {
    const Statement& s = *instruction.statement;
    if (instruction.scope != &q_.function.body) {
      for (const Statement& other : instruction.scope->body) {
        const auto call = parse_call(q_.module, other, q_.data.names());
        if (!call) continue;
        const bool is_result =
            std::find(call->results.begin(), call->results.end(), address.base) != call->results.end();
        if (!is_result) continue;
        return add({OriginKind::CallResult, call->direct ? std::string(call->callee) : "", 0, &other, {}});
      }
    }
    const auto& parameters = q_.function.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == address.base) {
        return add({OriginKind::Parameter, parameters[i].name, i, &s, {}});
      }
    }
    add({OriginKind::Load, "param", 0, &s, {}});
  }

  void add(Origin origin) {
    if (origin.statement != nullptr) origin.place = q_.module.place(origin.statement->head);
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Origin& o) {
      const bool by_place = origin.kind == OriginKind::Load || origin.kind == OriginKind::Computed ||
                            origin.kind == OriginKind::CallResult;
      return o.kind == origin.kind && o.name == origin.name && o.value == origin.value &&
             (!by_place || o.statement == origin.statement);
    });
    if (!known) found_.push_back(std::move(origin));
  }

  const OriginQuery& q_;
  std::vector<Origin> found_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

std::vector<Origin> origins_of(const OriginQuery& query, std::string_view operand) {
  return Search(query).run(operand);
}

namespace {

std::string parameter_text(uint64_t index, const ptx::Function& function) {
  if (index >= function.parameters.size()) return fmt::format("argument {} of {}", index + 1, function.name);
  const ptx::Parameter& p = function.parameters[index];
  return ptx::argument_words(function, p.offset, p.bytes);
}

}  // namespace

std::string print(const Origin& o, const ptx::Function& function) {
  switch (o.kind) {
    case OriginKind::Constant:
      return fmt::format("the constant {}", o.value);
    case OriginKind::Symbol:
      return fmt::format("the address of {}", o.name);
    case OriginKind::Parameter:
      return parameter_text(o.value, function);
    case OriginKind::Load:
      return fmt::format("loaded from {} memory ({})", o.name, o.place);
    case OriginKind::CallResult:
      return o.name.empty() ? fmt::format("the result of an indirect call ({})", o.place)
                            : fmt::format("the result of {} ({})", o.name, o.place);
    case OriginKind::SpecialRegister:
      return o.name;
    case OriginKind::Computed:
      return fmt::format("computed by {} ({})", o.name, o.place);
    case OriginKind::Undefined:
      return fmt::format("{}, which nothing writes", o.name);
  }
  return "unknown";
}

std::string print(const std::vector<Origin>& origins, const ptx::Function& function) {
  std::string text;
  for (const Origin& o : origins) text += (text.empty() ? "" : " or ") + print(o, function);
  return text.empty() ? "unknown" : text;
}

}  // namespace klap::analysis
