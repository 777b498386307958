// Sums and products with the condition code: add.cc, addc, sub.cc, subc, mad.cc, madc.
//
// All of them are one function each with a carry in, which is none for the first of a chain. A subtraction
// adds the complement, as the hardware does: its carry is set when nothing was borrowed.
#include "emulator/alu/integer.h"
#include "emulator/alu/lanes.h"

namespace klap::emulator::alu {
namespace {

using Wide = unsigned __int128;

template <class T>
WithCarry<T> sum(Wide a, Wide b, bool carry) {
  const Wide result = a + b + (carry ? 1 : 0);
  return {static_cast<T>(result), (result >> (sizeof(T) * 8)) != 0};
}

template <class T>
WithCarry<T> add(CarryIn, T a, T b) {
  return sum<T>(a, b, false);
}
template <class T>
WithCarry<T> add_carry(CarryIn carry, T a, T b) {
  return sum<T>(a, b, carry.set);
}
template <class T>
WithCarry<T> subtract(CarryIn, T a, T b) {
  return sum<T>(a, static_cast<T>(~b), true);
}
template <class T>
WithCarry<T> subtract_borrow(CarryIn carry, T a, T b) {
  return sum<T>(a, static_cast<T>(~b), carry.set);
}

template <class T, bool High>
T product(T a, T b) {
  if (!High) return static_cast<T>(a * b);
  if constexpr (sizeof(T) == 4) return static_cast<T>(uint64_t{a} * b >> 32);
  return static_cast<T>(static_cast<Wide>(a) * b >> 64);
}
// The high half of a signed product differs from the unsigned one by the operands whose partner is negative.
template <class T, bool High, bool Signed>
T signed_product(T a, T b) {
  T result = product<T, High>(a, b);
  if constexpr (High && Signed) {
    constexpr int kSign = sizeof(T) * 8 - 1;
    if ((a >> kSign) != 0) result -= b;
    if ((b >> kSign) != 0) result -= a;
  }
  return result;
}
template <class T, bool High, bool Signed, bool TakesCarry>
WithCarry<T> multiply_add(CarryIn carry, T a, T b, T c) {
  return sum<T>(signed_product<T, High, Signed>(a, b), c, TakesCarry && carry.set);
}

template <class T, bool Signed>
AluOp pick_multiply_add(bool high, bool takes_carry, uint64_t setting) {
  if (high) {
    return takes_carry ? operation<multiply_add<T, true, Signed, true>>(setting)
                       : operation<multiply_add<T, true, Signed, false>>(setting);
  }
  return takes_carry ? operation<multiply_add<T, false, Signed, true>>(setting)
                     : operation<multiply_add<T, false, Signed, false>>(setting);
}

template <class T>
Found pick(std::string_view opcode, bool is_signed, Modifiers& m, uint64_t setting) {
  if (opcode == "add") return operation<add<T>>(setting);
  if (opcode == "addc") return operation<add_carry<T>>(setting);
  if (opcode == "sub") return operation<subtract<T>>(setting);
  if (opcode == "subc") return operation<subtract_borrow<T>>(setting);
  const int half = m.take_one({".lo", ".hi"});
  if (half < 0) return std::nullopt;
  const bool takes_carry = opcode == "madc";
  return is_signed ? pick_multiply_add<T, true>(half == 1, takes_carry, setting)
                   : pick_multiply_add<T, false>(half == 1, takes_carry, setting);
}

}  // namespace

Found find_carry(std::string_view opcode, Modifiers& modifiers) {
  const bool takes_carry = opcode == "addc" || opcode == "subc" || opcode == "madc";
  if (!takes_carry && opcode != "add" && opcode != "sub" && opcode != "mad") return std::nullopt;
  const bool writes = modifiers.take(".cc");
  const auto type = modifiers.take_type();
  if (!type || (!writes && !takes_carry)) return std::nullopt;
  const uint64_t setting = writes ? kWriteCarry : 0;
  if (*type == Type::U32 || *type == Type::S32) {
    return pick<uint32_t>(opcode, *type == Type::S32, modifiers, setting);
  }
  if (*type == Type::U64 || *type == Type::S64) {
    return pick<uint64_t>(opcode, *type == Type::S64, modifiers, setting);
  }
  return std::nullopt;
}

}  // namespace klap::emulator::alu
