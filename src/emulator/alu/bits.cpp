// Shifts, bit fields, counts and permutations.
#include <algorithm>
#include <bit>

#include "emulator/alu/integer.h"
#include "emulator/alu/lanes.h"

namespace klap::emulator::alu {
namespace {

template <class T>
constexpr uint32_t kBits = sizeof(T) * 8;

// Shifts by the width or more shift everything out.
template <class T>
T shift_left(T a, uint32_t by) {
  return by >= kBits<T> ? 0 : static_cast<T>(static_cast<uint64_t>(a) << by);
}
template <class T>
T shift_right(T a, uint32_t by) {
  if (by < kBits<T>) return static_cast<T>(a >> by);
  return static_cast<T>(a < 0 ? -1 : 0);
}

uint32_t funnel_left(uint32_t low, uint32_t high, uint32_t by) {
  const uint64_t both = uint64_t{high} << 32 | low;
  return static_cast<uint32_t>(both << by >> 32);
}
uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t by) {
  const uint64_t both = uint64_t{high} << 32 | low;
  return static_cast<uint32_t>(both >> by);
}
template <uint32_t (*Funnel)(uint32_t, uint32_t, uint32_t)>
uint32_t wrapped(uint32_t low, uint32_t high, uint32_t by) {
  return Funnel(low, high, by & 31);
}
template <uint32_t (*Funnel)(uint32_t, uint32_t, uint32_t)>
uint32_t clamped(uint32_t low, uint32_t high, uint32_t by) {
  return Funnel(low, high, std::min(by, 32u));
}

// The `length` lowest bits; all for a length of the width or more.
template <class T>
T low_bits(uint32_t length) {
  using U = std::make_unsigned_t<T>;
  if (length >= kBits<T>) return static_cast<T>(~U{0});
  return static_cast<T>((U{1} << length) - 1);
}

// Fields may reach beyond the top. Position and length of a 32-bit field count modulo 256; 64-bit fields are
// made of several instructions that do not do so.
template <class T>
uint32_t field_number(uint32_t number) {
  return sizeof(T) == 4 ? number & 0xff : std::min(number, 0xffu);
}
template <class T>
T extract_field(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  position = field_number<T>(position);
  length = field_number<T>(length);
  if (length == 0) return 0;
  const uint32_t top = std::min(position + length - 1, kBits<T> - 1);
  const bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1) != 0;
  const U mask =
      position >= kBits<T> ? 0 : static_cast<U>(low_bits<U>(std::min(length, kBits<T> - position)));
  const U field = position >= kBits<T> ? 0 : static_cast<U>(a) >> position & mask;
  return static_cast<T>(sign ? field | ~mask : field);
}
template <class T>
T insert_field(T a, T b, uint32_t position, uint32_t length) {
  position = field_number<T>(position);
  length = field_number<T>(length);
  const T mask = shift_left<T>(low_bits<T>(length), position);
  return static_cast<T>((b & ~mask) | (shift_left<T>(a, position) & mask));
}

// The highest bit that differs from the sign.
template <class T>
uint32_t find_top(T a) {
  using U = std::make_unsigned_t<T>;
  const U value = static_cast<U>(a < 0 ? static_cast<T>(~a) : a);
  return static_cast<uint32_t>(std::bit_width(value)) - 1;
}
template <class T>
uint32_t find_top_shift(T a) {
  const uint32_t top = find_top(a);
  return top == ~0u ? top : kBits<T> - 1 - top;
}

template <class T>
uint32_t count_ones(T a) {
  return static_cast<uint32_t>(std::popcount(a));
}
template <class T>
uint32_t count_leading_zeros(T a) {
  return static_cast<uint32_t>(std::countl_zero(a));
}

uint64_t reverse64(uint64_t a) {
  const auto swap = [&a](uint64_t mask, int by) { a = (a & mask) << by | (a >> by & mask); };
  swap(0x5555555555555555, 1);
  swap(0x3333333333333333, 2);
  swap(0x0f0f0f0f0f0f0f0f, 4);
  return __builtin_bswap64(a);
}
template <class T>
T reverse(T a) {
  return static_cast<T>(reverse64(a) >> (64 - kBits<T>));
}

// The n-th set bit counted from `base`: upwards, or downwards for a negative n.
uint32_t find_nth(uint32_t mask, uint32_t base, int32_t n) {
  const auto is_set = [mask](int64_t bit) { return (mask >> bit & 1) != 0; };
  const int64_t step = n < 0 ? -1 : 1;
  if (n == 0) return base < 32 && is_set(base) ? base : ~0u;
  int64_t left = n < 0 ? -int64_t{n} : n;
  for (int64_t bit = base; bit >= 0 && bit < 32; bit += step) {
    if (is_set(bit) && --left == 0) return static_cast<uint32_t>(bit);
  }
  return ~0u;
}

// Permutation by four selectors of four bits. Each has the number of a byte of (b, a). Its top bit asks for
// eight copies of that byte's sign.
uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t selector = selectors >> (4 * i);
    auto byte = static_cast<uint32_t>(both >> (8 * (selector & 7)) & 0xff);
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
// The other modes choose one of four selector words by the two low bits of c.
template <uint32_t S0, uint32_t S1, uint32_t S2, uint32_t S3>
uint32_t permute_mode(uint32_t a, uint32_t b, uint32_t c) {
  constexpr uint32_t kSelectors[] = {S0, S1, S2, S3};
  return permute(a, b, kSelectors[c & 3]);
}

template <bool Clamp>
uint32_t make_mask(uint32_t position, uint32_t length) {
  if (Clamp && position >= 32) return 0;
  const uint32_t from = ~0u << (position & 31);
  const uint32_t end = (position & 31) + (length & 31);
  if (end >= 32 || (Clamp && length >= 32)) return from;
  return from & ~(~0u << end);
}

template <bool Clamp, bool Signed>
uint32_t extend(uint32_t a, uint32_t width) {
  if (Clamp && width >= 32) return a;
  width &= 31;
  if (width == 0) return 0;
  const uint32_t mask = ~0u << width;
  const bool sign = Signed && (a >> (width - 1) & 1) != 0;
  return sign ? a | mask : a & ~mask;
}

Found find_shift(bool left, Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  const auto pick = [&]<class T>(T) {
    return left ? operation<shift_left<T>>() : operation<shift_right<T>>();
  };
  const Found found = for_bits(*type, pick);
  return found.has_value() || left ? found : for_integer(*type, pick);
}

Found find_funnel(Modifiers& m) {
  const int side = m.take_one({".l", ".r"});
  const int mode = m.take_one({".wrap", ".clamp"});
  if (side < 0 || mode < 0 || m.take_type() != Type::B32) return std::nullopt;
  if (side == 0) return mode == 0 ? operation<wrapped<funnel_left>>() : operation<clamped<funnel_left>>();
  return mode == 0 ? operation<wrapped<funnel_right>>() : operation<clamped<funnel_right>>();
}

Found find_permute(Modifiers& m) {
  const int mode = m.take_one({".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"});
  if (m.take_type() != Type::B32) return std::nullopt;
  switch (mode) {
    case 0:
      return operation<permute_mode<0x3210, 0x4321, 0x5432, 0x6543>>();
    case 1:
      return operation<permute_mode<0x5670, 0x6701, 0x7012, 0x0123>>();
    case 2:
      return operation<permute_mode<0x0000, 0x1111, 0x2222, 0x3333>>();
    case 3:
      return operation<permute_mode<0x3210, 0x3211, 0x3222, 0x3333>>();
    case 4:
      return operation<permute_mode<0x0000, 0x1110, 0x2210, 0x3210>>();
    case 5:
      return operation<permute_mode<0x1010, 0x3232, 0x1010, 0x3232>>();
    default:
      return operation<permute>();
  }
}

Found find_field(bool extract, Modifiers& m) {
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  if (!extract) {
    if (*type == Type::B32) return operation<insert_field<uint32_t>>();
    if (*type == Type::B64) return operation<insert_field<uint64_t>>();
    return std::nullopt;
  }
  return for_integer(*type, []<class T>(T) -> Found {
    if constexpr (sizeof(T) == 2) {
      return std::nullopt;
    } else {
      return operation<extract_field<T>>();
    }
  });
}

Found find_top_bit(Modifiers& m) {
  const bool shift = m.take(".shiftamt");
  const auto type = m.take_type();
  if (!type) return std::nullopt;
  return for_integer(*type, [&]<class T>(T) -> Found {
    if constexpr (sizeof(T) == 2) {
      return std::nullopt;
    } else {
      return shift ? operation<find_top_shift<T>>() : operation<find_top<T>>();
    }
  });
}

template <class T>
Found pick_count(std::string_view opcode) {
  if (opcode == "popc") return operation<count_ones<T>>();
  if (opcode == "clz") return operation<count_leading_zeros<T>>();
  return operation<reverse<T>>();
}

Found find_mask(Modifiers& m) {
  const int mode = m.take_one({".clamp", ".wrap"});
  if (mode < 0 || m.take_type() != Type::B32) return std::nullopt;
  return mode == 0 ? operation<make_mask<true>>() : operation<make_mask<false>>();
}

Found find_extension(Modifiers& m) {
  const int mode = m.take_one({".clamp", ".wrap"});
  const auto type = m.take_type();
  if (mode < 0 || (type != Type::U32 && type != Type::S32)) return std::nullopt;
  if (type == Type::S32)
    return mode == 0 ? operation<extend<true, true>>() : operation<extend<false, true>>();
  return mode == 0 ? operation<extend<true, false>>() : operation<extend<false, false>>();
}

}  // namespace

Found find_bits(std::string_view opcode, Modifiers& modifiers) {
  if (opcode == "shl" || opcode == "shr") return find_shift(opcode == "shl", modifiers);
  if (opcode == "shf") return find_funnel(modifiers);
  if (opcode == "prmt") return find_permute(modifiers);
  if (opcode == "bfe" || opcode == "bfi") return find_field(opcode == "bfe", modifiers);
  if (opcode == "bfind") return find_top_bit(modifiers);
  if (opcode == "bmsk") return find_mask(modifiers);
  if (opcode == "szext") return find_extension(modifiers);
  if (opcode == "fns") {
    if (modifiers.take_type() != Type::B32) return std::nullopt;
    return operation<find_nth>();
  }
  if (opcode == "popc" || opcode == "clz" || opcode == "brev") {
    const auto type = modifiers.take_type();
    if (type == Type::B32) return pick_count<uint32_t>(opcode);
    if (type == Type::B64) return pick_count<uint64_t>(opcode);
  }
  return std::nullopt;
}

}  // namespace klap::emulator::alu
