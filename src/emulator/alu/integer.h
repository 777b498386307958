// Picks an instance of a template by an integer type's name.
#pragma once

#include "emulator/alu/families.h"

namespace klap::emulator::alu {

// Calls `visit` with a value of the C++ type for a signed or unsigned type of 16, 32 or 64 bits.
template <class Visit>
Found for_integer(Type type, Visit&& visit) {
  switch (type) {
    case Type::U16:
      return visit(uint16_t{});
    case Type::U32:
      return visit(uint32_t{});
    case Type::U64:
      return visit(uint64_t{});
    case Type::S16:
      return visit(int16_t{});
    case Type::S32:
      return visit(int32_t{});
    case Type::S64:
      return visit(int64_t{});
    default:
      return std::nullopt;
  }
}

// Visits a type without sign: .b16, .b32, .b64.
template <class Visit>
Found for_bits(Type type, Visit&& visit) {
  switch (type) {
    case Type::B16:
      return visit(uint16_t{});
    case Type::B32:
      return visit(uint32_t{});
    case Type::B64:
      return visit(uint64_t{});
    default:
      return std::nullopt;
  }
}

}  // namespace klap::emulator::alu
