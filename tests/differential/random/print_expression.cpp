#include "random/print_expression.h"

#include <string_view>

namespace klap::differential::random {

namespace {

struct RegisterKind {
  char kind;
  const char* name;
  const char* type;
};
constexpr std::array<RegisterKind, 5> kRegisters = {
    {{'p', "%p", "pred"}, {'s', "%rs", "b16"}, {'f', "%f", "f32"}, {'r', "%r", "b32"}, {'d', "%rd", "b64"}}};

}  // namespace

std::string Code::new_register(char kind) {
  for (size_t i = 0; i < kRegisters.size(); ++i) {
    if (kRegisters.at(i).kind == kind) return kRegisters.at(i).name + std::to_string(++counts_.at(i));
  }
  return "%none";
}

std::string Code::declarations() const {
  std::string text;
  for (size_t i = 0; i < kRegisters.size(); ++i) {
    if (counts_.at(i) == 0) continue;
    text += fmt::format("\t.reg .{} \t{}<{}>;\n", kRegisters.at(i).type, kRegisters.at(i).name,
                        counts_.at(i) + 1);
  }
  return text;
}

std::string ExpressionPrinter::in_register(const std::string& operand) {
  if (operand.starts_with('%')) return operand;
  const std::string into = code_.new_register('r');
  code_.emit("mov.u32 \t{}, {};", into, operand);
  return into;
}

std::string ExpressionPrinter::binary(const Expression& e, const char* opcode) {
  const std::string a = in_register(print(e.operands[0])), b = print(e.operands[1]);
  const std::string into = code_.new_register('r');
  code_.emit("{} \t{}, {}, {};", opcode, into, a, b);
  return into;
}

std::string ExpressionPrinter::by_constant(const Expression& e, const char* opcode, uint32_t value) {
  const std::string a = in_register(print(e.operands[0])), into = code_.new_register('r');
  code_.emit("{} \t{}, {}, {};", opcode, into, a, static_cast<int32_t>(value));
  return into;
}

std::string ExpressionPrinter::comparison(const Expression& e, const char* opcode) {
  const std::string a = in_register(print(e.operands[0])), b = print(e.operands[1]);
  const std::string p = code_.new_register('p'), into = code_.new_register('r');
  code_.emit("{} \t{}, {}, {};", opcode, p, a, b);
  code_.emit("selp.u32 \t{}, 1, 0, {};", into, p);
  return into;
}

std::string ExpressionPrinter::print(const Expression& e) {
  switch (e.op) {
    case Op::Constant:
      return std::to_string(static_cast<int32_t>(e.value));  // as nvcc writes unsigned ones, too
    case Op::Divide:
      return by_constant(e, "div.u32", e.value);
    case Op::Remainder:
      return by_constant(e, "rem.u32", e.value);
    case Op::ShiftLeft:
      return by_constant(e, "shl.b32", e.value % 32);
    case Op::ShiftRight:
      return by_constant(e, "shr.u32", e.value % 32);
    case Op::Add:
      return binary(e, "add.s32");
    case Op::Subtract:
      return binary(e, "sub.s32");
    case Op::Multiply:
      return binary(e, "mul.lo.s32");
    case Op::And:
      return binary(e, "and.b32 ");
    case Op::Or:
      return binary(e, "or.b32 ");
    case Op::Xor:
      return binary(e, "xor.b32 ");
    case Op::Minimum:
      return binary(e, "min.u32");
    case Op::Maximum:
      return binary(e, "max.u32");
    case Op::Equal:
      return comparison(e, "setp.eq.s32");
    case Op::Less:
      return comparison(e, "setp.lt.u32");
    case Op::LessSigned:
      return comparison(e, "setp.lt.s32");
    case Op::Select: {
      const std::string c = in_register(print(e.operands[0]));
      const std::string a = print(e.operands[1]), b = print(e.operands[2]);
      const std::string p = code_.new_register('p'), into = code_.new_register('r');
      code_.emit("setp.ne.s32 \t{}, {}, 0;", p, c);
      if (branches_) {
        const std::string chosen = code_.new_label();
        code_.emit("mov.b32 \t{}, {};", into, a);
        code_.emit("@{} bra \t{};", p, chosen);
        code_.emit("mov.b32 \t{}, {};", into, b);
        code_.place(chosen);
      } else {
        code_.emit("selp.b32 \t{}, {}, {}, {};", into, a, b, p);
      }
      return into;
    }
    default:
      return leaf_(e);
  }
}

}  // namespace klap::differential::random
