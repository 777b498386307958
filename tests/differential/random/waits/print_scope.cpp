#include "random/waits/print_scope.h"

namespace klap::differential::waits {

namespace {

struct RegisterKind {
  const char* prefix;
  const char* type;
};
constexpr std::array<RegisterKind, kTypes> kRegisters = {{{"%word", "b32"},
                                                          {"%half", "b16"},
                                                          {"%wide", "b64"},
                                                          {"%real", "f32"},
                                                          {"%long", "f64"},
                                                          {"%flag", "pred"}}};

}  // namespace

PrintedScope::PrintedScope(const Kernel& of, std::string called, const std::string& labels,
                           const std::vector<Type>& types)
    : kernel(of),
      name(std::move(called)),
      code(name, labels),
      types_(types),
      expressions_(code, [this](const Expression& e) { return leaf(e); }) {
  for (const Type type : types) {
    const auto kind = static_cast<size_t>(type);
    variables_.push_back(kRegisters.at(kind).prefix + std::to_string(counts_.at(kind)++));
  }
}

std::string PrintedScope::declarations() const {
  std::string text = code.declarations();
  for (size_t kind = 0; kind < kTypes; ++kind) {
    if (counts_.at(kind) == 0) continue;
    text += fmt::format("\t.reg .{} \t{}<{}>;\n", kRegisters.at(kind).type, kRegisters.at(kind).prefix,
                        counts_.at(kind));
  }
  return text;
}

void PrintedScope::begin(bool is_function) {
  load_parameters(is_function);
  const auto global = [this](uint32_t number) {
    std::string to = code.new_register('d');
    code.emit("cvta.to.global.u64 \t{}, {};", to, parameter(number));
    return to;
  };
  input = global(kInput);
  own = global(kOwn);
  above = global(kAbove);
  thread = counted_through("tid", "ntid");
  block = counted_through("ctaid", "nctaid");
  linear = multiply_add(block, std::to_string(kernel.threads()), thread);
  own_words = word_address(own, linear, 0);
}

void PrintedScope::load_parameters(bool is_function) {
  const uint32_t count = kParameters + kernel.values + (is_function ? 1 : 0);
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_wide = i < kParameters && kPlaces.at(i).bytes == 8;
    parameters_.push_back(code.new_register(is_wide ? 'd' : 'r'));
    code.emit("ld.param.u{} \t{}, [{}];", is_wide ? 64 : 32, parameters_.back(), parameter_name(i));
  }
  slot = is_function ? parameters_.back() : "0";
}

std::string PrintedScope::special(const char* what, uint32_t axis) {
  std::string to = code.new_register('r');
  code.emit("mov.u32 \t{}, %{}.{};", to, what, "xyz"[axis]);
  return to;
}

std::string PrintedScope::counted_through(const char* index, const char* extent) {
  const std::string row = multiply_add(special(index, 2), special(extent, 1), special(index, 1));
  return multiply_add(row, special(extent, 0), special(index, 0));
}

std::string PrintedScope::multiply_add(const std::string& a, const std::string& by,
                                       const std::string& offset) {
  std::string to = code.new_register('r');
  code.emit("mad.lo.s32 \t{}, {}, {}, {};", to, in_register(a), by, offset);
  return to;
}

std::string PrintedScope::words_behind(const std::string& base, const std::string& words) {
  const std::string bytes = code.new_register('d');
  std::string to = code.new_register('d');
  code.emit("mul.wide.u32 \t{}, {}, 4;", bytes, in_register(words));
  code.emit("add.s64 \t{}, {}, {};", to, base, bytes);
  return to;
}

std::string PrintedScope::word_address(const std::string& base, const std::string& of_thread,
                                       uint32_t words_before) {
  return words_behind(base, multiply_add(of_thread, std::to_string(kAllWords), std::to_string(words_before)));
}

std::string PrintedScope::in_register(const std::string& operand) {
  if (operand.starts_with('%')) return operand;
  std::string to = code.new_register('r');
  code.emit("mov.u32 \t{}, {};", to, operand);
  return to;
}

std::string PrintedScope::predicate(const Expression& e) {
  if (e.op == Op::Local && types_[e.value] == Type::Predicate) return variables_[e.value];
  std::string p = code.new_register('p');
  code.emit("setp.ne.s32 \t{}, {}, 0;", p, in_register(e));
  return p;
}

void PrintedScope::assign(uint32_t number, const std::string& operand) {
  const std::string& to = variables_.at(number);
  const Type type = types_[number];
  if (type == Type::Word) return code.emit("mov.u32 \t{}, {};", to, operand);
  const std::string from = in_register(operand);
  switch (type) {
    case Type::Half:
      return code.emit("cvt.u16.u32 \t{}, {};", to, from);
    case Type::Wide: {
      const std::string wide = code.new_register('d');
      code.emit("cvt.u64.u32 \t{}, {};", wide, from);
      return code.emit("mul.lo.s64 \t{}, {}, {};", to, wide, static_cast<int64_t>(kWideFactor));
    }
    case Type::Real: {
      const std::string low = code.new_register('r');
      code.emit("and.b32 \t{}, {}, 65535;", low, from);
      return code.emit("cvt.rn.f32.u32 \t{}, {};", to, low);
    }
    case Type::LongReal:
      return code.emit("cvt.rn.f64.u32 \t{}, {};", to, from);
    default:
      return code.emit("setp.ne.s32 \t{}, {}, 0;", to, from);
  }
}

std::string PrintedScope::read(uint32_t number) {
  const std::string& from = variables_.at(number);
  const Type type = types_[number];
  if (type == Type::Word) return from;
  std::string to = code.new_register('r');
  if (type == Type::Half) code.emit("cvt.u32.u16 \t{}, {};", to, from);
  if (type == Type::Real) code.emit("cvt.rzi.u32.f32 \t{}, {};", to, from);
  if (type == Type::LongReal) code.emit("cvt.rzi.u32.f64 \t{}, {};", to, from);
  if (type == Type::Predicate) code.emit("selp.u32 \t{}, 1, 0, {};", to, from);
  if (type == Type::Wide) {
    const std::string high = code.new_register('d'), both = code.new_register('d');
    code.emit("shr.u64 \t{}, {}, 32;", high, from);
    code.emit("xor.b64 \t{}, {}, {};", both, high, from);
    code.emit("cvt.u32.u64 \t{}, {};", to, both);
  }
  return to;
}

std::string PrintedScope::leaf(const Expression& e) {
  // Words that nobody writes while the kernel runs may be read past the multiprocessor's coherent cache.
  const auto load = [this](const std::string& address, uint32_t word, bool is_constant = false) {
    std::string to = code.new_register('r');
    code.emit("ld.global{}.u32 \t{}, [{}+{}];", is_constant ? ".nc" : "", to, address, 4 * word);
    return to;
  };
  const auto modulo = [this](const Expression& number, const std::string& count) {
    std::string to = code.new_register('r');
    code.emit("rem.u32 \t{}, {}, {};", to, in_register(number), count);
    return to;
  };
  switch (e.op) {
    case Op::Local:
      return read(e.value);
    case Op::Parameter:
      return parameter(kParameters + e.value);
    case Op::Tid:
      return special("tid", e.value);
    case Op::Ctaid:
      return special("ctaid", e.value);
    case Op::Ntid:
      return special("ntid", e.value);
    case Op::Nctaid:
      return special("nctaid", e.value);
    case Op::Thread:
      return thread;
    case Op::Linear:
      return linear;
    case Op::Depth:
      return parameter(kDepth);
    case Op::Own:
      return load(own_words, e.value);
    case Op::Message:
      return load(word_address(above, modulo(e.operands[0], parameter(kAboveCount)), 0), e.value,
                  e.value == 1);
    default:  // Input
      return load(words_behind(input, modulo(e.operands[0], std::to_string(kInputWords))), 0, true);
  }
}

}  // namespace klap::differential::waits
