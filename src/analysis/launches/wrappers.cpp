#include "analysis/launches/wrappers.h"

#include <map>
#include <optional>
#include <string>

#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Parameter;
using ptx::Statement;
using ptx::StatementKind;

// Longer functions do more than pass their parameters on; the longest of the runtime's takes 40 statements.
constexpr size_t kMostTokens = 1200;

// The value that a register or a word of the frame may hold.
struct Value {
  enum class Kind { Parameter, Frame, Result } kind = Kind::Parameter;
  std::string_view name;  // the parameter, or the frame's variable
  int64_t offset = 0;
  uint32_t bytes = 0;
  friend bool operator==(const Value&, const Value&) = default;
};

class Evaluator {
 public:
  Evaluator(const Module& module, const Function& function)
      : m_(module), f_(function), names_(module, function.body) {}

  // The function that is called; empty if the function does anything but pass its parameters on.
  std::string_view run() {
    if (!block(f_.body)) return {};
    return returned_ || f_.results.empty() ? callee_ : std::string_view();
  }

 private:
  bool block(const Statement& scope) {
    for (const Statement& s : scope.body) {
      if (s.kind == StatementKind::Block && (hides_registers(s) || !block(s))) return false;
      // A label is harmless: nothing branches.
      if (s.kind == StatementKind::Instruction && !instruction(s)) return false;
    }
    return true;
  }

  // Values are kept by name, so an inner register must not bear the name of an outer one.
  [[nodiscard]] bool hides_registers(const Statement& scope) const {
    for (const Statement& s : scope.body) {
      if (s.kind != StatementKind::Directive || !m_.is(s.head, ".reg")) continue;
      for (uint32_t t = s.head + 1; t < s.tokens.last; ++t) {
        if (registers_.contains(m_.text(t)) || m_.is(t, "<")) return true;
      }
    }
    return false;
  }

  bool instruction(const Statement& s) {
    if (s.predicated || ended_) return false;
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "ret") return ended_ = true;
    if (opcode == "call") return call(s);
    if (s.operands.size() == 3 && opcode == "add") return add(s);
    if (s.operands.size() != 2) return false;
    if (opcode == "ld") return load(s);
    if (opcode == "st") return store(s);
    if (opcode == "mov" || (opcode == "cvta" && m_.has_modifier(s, ".local"))) {
      const auto value = value_of(s.operands[1]);
      if (!value) return false;
      registers_[m_.text(s.operands[0])] = *value;
      return true;
    }
    return false;
  }

  std::optional<Value> value_of(ptx::TokenRange operand) {
    if (operand.size() != 1) return std::nullopt;
    const std::string_view text = m_.text(operand.first);
    if (names_.variables().contains(text)) return Value{Value::Kind::Frame, text, 0, 8};
    const auto found = registers_.find(text);
    if (found == registers_.end()) return std::nullopt;
    return found->second;
  }

  // The address of a place in the frame: `add.u64 %rd1, %SP, 8`.
  bool add(const Statement& s) {
    auto value = value_of(s.operands[1]);
    const auto offset = ptx::integer_value(m_.text(s.operands[2]));
    if (!value || value->kind != Value::Kind::Frame || !offset) return false;
    value->offset += static_cast<int64_t>(*offset);
    registers_[m_.text(s.operands[0])] = *value;
    return true;
  }

  // The frame's word that a memory operand names.
  std::optional<Value> frame_place(ptx::TokenRange operand, uint32_t bytes) {
    const auto address = parse_address(m_, operand);
    if (!address) return std::nullopt;
    Value place{Value::Kind::Frame, address->base, 0, 8};
    if (!names_.variables().contains(address->base)) {
      const auto found = registers_.find(address->base);
      if (found == registers_.end() || found->second.kind != Value::Kind::Frame) return std::nullopt;
      place = found->second;
    }
    place.offset += address->offset;
    place.bytes = bytes;
    return place;
  }

  bool load(const Statement& s) {
    const uint32_t bytes = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    const auto address = parse_address(m_, s.operands[1]);
    if (bytes == 0 || !address || s.operands[0].size() != 1) return false;
    Value value;
    if (m_.has_modifier(s, ".param")) {
      const bool result = address->base == result_ && !result_.empty();
      if (!result && parameter(address->base) == nullptr) return false;
      value = {result ? Value::Kind::Result : Value::Kind::Parameter, address->base, address->offset, bytes};
    } else {
      const auto place = frame_place(s.operands[1], bytes);
      const auto found = place ? frame_.find({place->name, place->offset}) : frame_.end();
      if (found == frame_.end() || found->second.bytes != bytes) return false;
      value = found->second;
    }
    registers_[m_.text(s.operands[0])] = value;
    return true;
  }

  bool store(const Statement& s) {
    const uint32_t bytes = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    const auto value = value_of(s.operands[1]);
    const auto address = parse_address(m_, s.operands[0]);
    if (bytes == 0 || !value || value->bytes != bytes || !address) return false;
    if (m_.has_modifier(s, ".param")) {
      if (is_own_result(address->base)) {
        returned_ = value->kind == Value::Kind::Result && address->offset == 0 && value->offset == 0 &&
                    bytes == f_.results[0].bytes;
        return returned_;
      }
      actuals_[{address->base, address->offset}] = *value;
      return true;
    }
    const auto place = frame_place(s.operands[0], bytes);
    // Only whole words at multiples of their size, so that no two of them overlap in part.
    if (!place || place->offset % bytes != 0) return false;
    for (const auto& [at, word] : frame_) {
      const bool apart = at.first != place->name || at.second + word.bytes <= place->offset ||
                         place->offset + bytes <= at.second;
      const bool same = at.first == place->name && at.second == place->offset && word.bytes == bytes;
      if (!apart && !same) return false;
    }
    frame_[{place->name, place->offset}] = *value;
    return true;
  }

  bool call(const Statement& s) {
    const auto call = parse_call(m_, s, names_);
    if (!call || !call->direct || !callee_.empty() || !idioms().is_device_runtime(call->callee)) return false;
    const Function* declared = m_.find_function(call->callee);
    if (declared == nullptr || call->parameters.size() != f_.parameters.size() ||
        declared->parameters.size() != f_.parameters.size() || call->results.size() != f_.results.size()) {
      return false;
    }
    for (size_t i = 0; i < f_.parameters.size(); ++i) {
      if (declared->parameters[i].bytes != f_.parameters[i].bytes) return false;
      if (!passes_on(call->parameters[i], f_.parameters[i])) return false;
    }
    callee_ = call->callee;
    if (!call->results.empty()) result_ = call->results[0];
    return true;
  }

  // Every byte of the wrapper's parameter stands at its place in the actual one.
  bool passes_on(std::string_view actual, const Parameter& parameter) {
    int64_t at = 0;
    while (at < parameter.bytes) {
      const auto found = actuals_.find({actual, at});
      if (found == actuals_.end()) return false;
      const Value& value = found->second;
      if (value.kind != Value::Kind::Parameter || value.name != parameter.name || value.offset != at)
        return false;
      at += value.bytes;
    }
    return at == parameter.bytes;
  }

  [[nodiscard]] const Parameter* parameter(std::string_view name) const {
    for (const Parameter& p : f_.parameters) {
      if (p.name == name) return &p;
    }
    return nullptr;
  }
  [[nodiscard]] bool is_own_result(std::string_view name) const {
    return !f_.results.empty() && f_.results[0].name == name;
  }

  using Place = std::pair<std::string_view, int64_t>;
  const Module& m_;
  const Function& f_;
  LocalNames names_;
  std::map<std::string_view, Value> registers_;
  std::map<Place, Value> frame_, actuals_;
  std::string_view callee_, result_;
  bool returned_ = false, ended_ = false;
};

}  // namespace

std::string_view runtime_function(const Module& module, const Function& function) {
  if (idioms().is_device_runtime(function.name)) return function.name;
  if (!function.is_definition || function.kind != ptx::FunctionKind::Func) return {};
  if (function.body.tokens.size() > kMostTokens) return {};
  return Evaluator(module, function).run();
}

std::string_view runtime_function(const Module& module, std::string_view name) {
  if (idioms().is_device_runtime(name)) return name;
  const Function* f = module.find_function(name);
  return f == nullptr ? std::string_view() : runtime_function(module, *f);
}

bool is_wrapper_of_calls(const Module& module, const Function& function) {
  if (function.linkage != ptx::Linkage::Internal || idioms().is_device_runtime(function.name)) return false;
  if (runtime_function(module, function).empty()) return false;
  const Callers callers = callers_of(module, function.name);
  return !callers.calls.empty() && callers.address_place.empty();
}

}  // namespace klap::analysis
