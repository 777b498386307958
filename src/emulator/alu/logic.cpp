// Logic: and, or, xor, not, cnot, lop3.
#include <functional>

#include "emulator/alu/integer.h"
#include "emulator/alu/lanes.h"

namespace klap::emulator::alu {
namespace {

template <class T>
T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
T bit_not(T a) {
  return static_cast<T>(~a);
}
template <>
bool bit_not<bool>(bool a) {
  return !a;
}
template <class T>
T is_zero(T a) {
  return a == 0 ? 1 : 0;
}

// The table has one bit for each combination of a bit of a (4), b (2) and c (1).
uint32_t look_up(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  const auto bit = [table](uint32_t index) { return 0u - (table >> index & 1); };
  const auto choose = [](uint32_t by, uint32_t one, uint32_t zero) { return (by & one) | (~by & zero); };
  const auto of_bc = [&](uint32_t base) {
    return choose(b, choose(c, bit(base + 3), bit(base + 2)), choose(c, bit(base + 1), bit(base)));
  };
  return choose(a, of_bc(4), of_bc(0));
}
Both<uint32_t, bool> look_up_and(uint32_t a, uint32_t b, uint32_t c, uint32_t table, bool q) {
  const uint32_t result = look_up(a, b, c, table);
  return {result, result != 0 && q};
}
Both<uint32_t, bool> look_up_or(uint32_t a, uint32_t b, uint32_t c, uint32_t table, bool q) {
  const uint32_t result = look_up(a, b, c, table);
  return {result, result != 0 || q};
}

template <class T>
Found pick(std::string_view opcode) {
  if (opcode == "and") return operation<bit_and<T>>();
  if (opcode == "or") return operation<bit_or<T>>();
  if (opcode == "xor") return operation<bit_xor<T>>();
  if (opcode == "not") return operation<bit_not<T>>();
  if constexpr (!std::is_same_v<T, bool>) {
    if (opcode == "cnot") return operation<is_zero<T>>();
  }
  return std::nullopt;
}

}  // namespace

Found find_logic(std::string_view opcode, Modifiers& modifiers) {
  if (opcode == "lop3") {
    const int combine = modifiers.take_one({".and", ".or"});
    if (modifiers.take_type() != Type::B32) return std::nullopt;
    if (combine < 0) return operation<look_up>();
    return combine == 0 ? operation<look_up_and>() : operation<look_up_or>();
  }
  if (opcode != "and" && opcode != "or" && opcode != "xor" && opcode != "not" && opcode != "cnot") {
    return std::nullopt;
  }
  const auto type = modifiers.take_type();
  if (!type) return std::nullopt;
  if (*type == Type::Pred) return pick<bool>(opcode);
  return for_bits(*type, [&]<class T>(T) { return pick<T>(opcode); });
}

}  // namespace klap::emulator::alu
