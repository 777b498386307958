// Integer arithmetic: sums, products, quotients, minima.
//
// Sums and products are computed in 64 bits and cut to the type. That is right for every width and has no
// overflow in the C++ sense.
#include "emulator/alu/integer.h"

#include <algorithm>
#include <limits>

#include "emulator/alu/lanes.h"

namespace klap::emulator::alu {
namespace {

using Int128 = __int128;

template <class T>
T cut(uint64_t value) {
  return static_cast<T>(value);
}

template <class T>
T add(T a, T b) {
  return cut<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T subtract(T a, T b) {
  return cut<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

int32_t saturate(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}
int32_t add_saturating(int32_t a, int32_t b) { return saturate(int64_t{a} + b); }
int32_t subtract_saturating(int32_t a, int32_t b) { return saturate(int64_t{a} - b); }

template <class T>
T multiply_low(T a, T b) {
  return cut<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class T>
T multiply_high(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, Int128, unsigned __int128>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (sizeof(T) * 8));
  }
}

template <class T>
struct Widened;
template <>
struct Widened<uint16_t> : std::type_identity<uint32_t> {};
template <>
struct Widened<uint32_t> : std::type_identity<uint64_t> {};
template <>
struct Widened<int16_t> : std::type_identity<int32_t> {};
template <>
struct Widened<int32_t> : std::type_identity<int64_t> {};
template <class T>
using Wide = typename Widened<T>::type;

template <class T>
Wide<T> multiply_wide(T a, T b) {
  return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}
template <class T>
Wide<T> multiply_add_wide(T a, T b, Wide<T> c) {
  return add<Wide<T>>(multiply_wide<T>(a, b), c);
}
template <class T>
T multiply_add_low(T a, T b, T c) {
  return add<T>(multiply_low<T>(a, b), c);
}
template <class T>
T multiply_add_high(T a, T b, T c) {
  return add<T>(multiply_high<T>(a, b), c);
}
int32_t multiply_add_high_saturating(int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t{multiply_high(a, b)} + c);
}

// Products of 24-bit operands, 48 bits wide, of which .hi is bits 16 to 47.
template <class T>
int64_t product24(T a, T b) {
  const auto narrow = [](T value) {
    const auto high = static_cast<uint32_t>(value) << 8;
    return std::is_signed_v<T> ? int64_t{static_cast<int32_t>(high) >> 8} : int64_t{high >> 8};
  };
  return narrow(a) * narrow(b);
}
template <class T>
T multiply24_low(T a, T b) {
  return static_cast<T>(product24(a, b));
}
template <class T>
T multiply24_high(T a, T b) {
  return static_cast<T>(product24(a, b) >> 16);
}
template <class T>
T multiply24_add_low(T a, T b, T c) {
  return add<T>(multiply24_low(a, b), c);
}
template <class T>
T multiply24_add_high(T a, T b, T c) {
  return add<T>(multiply24_high(a, b), c);
}
int32_t multiply24_add_high_saturating(int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t{multiply24_high(a, b)} + c);
}

template <class T>
T sum_of_difference(T a, T b, T c) {
  return add<T>(c, a < b ? subtract<T>(b, a) : subtract<T>(a, b));
}

// PTX leaves division by zero open; the hardware gives all ones for quotient and remainder.
template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return subtract<T>(0, a);
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}

template <class T>
T negate(T a) {
  return subtract<T>(0, a);
}
template <class T>
T absolute(T a) {
  return a < 0 ? negate(a) : a;
}
template <class T>
T minimum(T a, T b) {
  return std::min(a, b);
}
template <class T>
T maximum(T a, T b) {
  return std::max(a, b);
}
template <class T, T (*Pick)(T, T)>
T not_negative(T a, T b) {
  return std::max<T>(Pick(a, b), 0);
}

// Dot products: A and B are the signs of the elements of the operands.
template <class A, class B>
uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (uint32_t i = 0; i < 32; i += 8) {
    c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> i)) *
                               static_cast<int32_t>(static_cast<B>(b >> i)));
  }
  return c;
}
template <class A, class B, uint32_t FirstByte>
uint32_t dot2(uint32_t a, uint32_t b, uint32_t c) {
  using A16 = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
  for (uint32_t i = 0; i < 2; ++i) {
    c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A16>(a >> (16 * i))) *
                               static_cast<int32_t>(static_cast<B>(b >> (8 * (i + FirstByte)))));
  }
  return c;
}

enum class Half { None, Low, High, Wide };
Half take_half(Modifiers& m) { return static_cast<Half>(m.take_one({".lo", ".hi", ".wide"}) + 1); }

Found find_sum(bool is_add, Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  if (m.take(".sat")) {
    if (*type != Type::S32) return std::nullopt;
    return is_add ? operation<add_saturating>() : operation<subtract_saturating>();
  }
  if (*type == Type::U16x2 || *type == Type::S16x2) {
    return is_add ? packed_operation<add<uint16_t>>() : packed_operation<subtract<uint16_t>>();
  }
  return for_integer(*type,
                     [&]<class T>(T) { return is_add ? operation<add<T>>() : operation<subtract<T>>(); });
}

Found find_product(Modifiers& m) {
  const auto type = m.take_type();
  const Half half = take_half(m);
  if (!type || half == Half::None) return std::nullopt;
  return for_integer(*type, [&]<class T>(T) -> Found {
    if (half == Half::Low) return operation<multiply_low<T>>();
    if (half == Half::High) return operation<multiply_high<T>>();
    if constexpr (sizeof(T) == 8) {
      return std::nullopt;
    } else {
      return operation<multiply_wide<T>>();
    }
  });
}

Found find_product_sum(Modifiers& m) {
  const auto type = m.take_type();
  const Half half = take_half(m);
  if (!type || half == Half::None) return std::nullopt;
  if (m.take(".sat")) {
    if (*type != Type::S32 || half != Half::High) return std::nullopt;
    return operation<multiply_add_high_saturating>();
  }
  return for_integer(*type, [&]<class T>(T) -> Found {
    if (half == Half::Low) return operation<multiply_add_low<T>>();
    if (half == Half::High) return operation<multiply_add_high<T>>();
    if constexpr (sizeof(T) == 8) {
      return std::nullopt;
    } else {
      return operation<multiply_add_wide<T>>();
    }
  });
}

Found find_24(bool sum, Modifiers& m) {
  const auto type = m.take_type();
  const Half half = take_half(m);
  if (!type || (half != Half::Low && half != Half::High)) return std::nullopt;
  if (*type != Type::U32 && *type != Type::S32) return std::nullopt;
  if (sum && m.take(".sat")) {
    if (*type != Type::S32 || half != Half::High) return std::nullopt;
    return operation<multiply24_add_high_saturating>();
  }
  const auto pick = [&]<class T>(T) {
    if (sum)
      return half == Half::Low ? operation<multiply24_add_low<T>>() : operation<multiply24_add_high<T>>();
    return half == Half::Low ? operation<multiply24_low<T>>() : operation<multiply24_high<T>>();
  };
  return *type == Type::S32 ? pick(int32_t{}) : pick(uint32_t{});
}

Found find_extreme(bool is_min, Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  if (m.take(".relu")) {
    if (*type == Type::S32) {
      return is_min ? operation<not_negative<int32_t, minimum<int32_t>>>()
                    : operation<not_negative<int32_t, maximum<int32_t>>>();
    }
    if (*type != Type::S16x2) return std::nullopt;
    return is_min ? packed_operation<not_negative<int16_t, minimum<int16_t>>>()
                  : packed_operation<not_negative<int16_t, maximum<int16_t>>>();
  }
  if (*type == Type::U16x2) {
    return is_min ? packed_operation<minimum<uint16_t>>() : packed_operation<maximum<uint16_t>>();
  }
  if (*type == Type::S16x2) {
    return is_min ? packed_operation<minimum<int16_t>>() : packed_operation<maximum<int16_t>>();
  }
  return for_integer(*type,
                     [&]<class T>(T) { return is_min ? operation<minimum<T>>() : operation<maximum<T>>(); });
}

Found find_quotient(bool is_div, Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  return for_integer(*type,
                     [&]<class T>(T) { return is_div ? operation<divide<T>>() : operation<remainder<T>>(); });
}

Found find_difference_sum(Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  return for_integer(*type, []<class T>(T) { return operation<sum_of_difference<T>>(); });
}

Found find_one_operand(bool is_neg, Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  return for_integer(*type, [&]<class T>(T) -> Found {
    if constexpr (!std::is_signed_v<T>) {
      return std::nullopt;
    } else {
      return is_neg ? operation<negate<T>>() : operation<absolute<T>>();
    }
  });
}

template <class A, class B>
AluOp pick_dot(int part) {
  if (part < 0) return operation<dot4<A, B>>();
  return part == 0 ? operation<dot2<A, B, 0>>() : operation<dot2<A, B, 2>>();
}

Found find_dot(bool is_dot2, Modifiers& m) {
  const int part = is_dot2 ? m.take_one({".lo", ".hi"}) : -1;
  const auto a = m.take_type();
  const auto b = m.take_type();
  const auto fits = [](std::optional<Type> type) { return type == Type::U32 || type == Type::S32; };
  if (!fits(a) || !fits(b) || (is_dot2 && part < 0)) return std::nullopt;
  if (a == Type::U32) {
    return b == Type::U32 ? pick_dot<uint8_t, uint8_t>(part) : pick_dot<uint8_t, int8_t>(part);
  }
  return b == Type::U32 ? pick_dot<int8_t, uint8_t>(part) : pick_dot<int8_t, int8_t>(part);
}

}  // namespace

Found find_integer(std::string_view opcode, Modifiers& modifiers) {
  if (opcode == "add" || opcode == "sub") return find_sum(opcode == "add", modifiers);
  if (opcode == "mul") return find_product(modifiers);
  if (opcode == "mad") return find_product_sum(modifiers);
  if (opcode == "mul24" || opcode == "mad24") return find_24(opcode == "mad24", modifiers);
  if (opcode == "min" || opcode == "max") return find_extreme(opcode == "min", modifiers);
  if (opcode == "div" || opcode == "rem") return find_quotient(opcode == "div", modifiers);
  if (opcode == "neg" || opcode == "abs") return find_one_operand(opcode == "neg", modifiers);
  if (opcode == "sad") return find_difference_sum(modifiers);
  if (opcode == "dp4a" || opcode == "dp2a") return find_dot(opcode == "dp2a", modifiers);
  return std::nullopt;
}

}  // namespace klap::emulator::alu
