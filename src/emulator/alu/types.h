// The types that arithmetic computes with, and how each of them lies in a register's slot.
//
// Half precision has no type of its own in this C++, so its two formats are bit patterns with a name.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "emulator/alu/alu.h"

namespace klap::emulator::alu {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// .f16x2, .bf16x2, .s16x2, .u16x2
template <class T>
struct Pair {
  T low, high;
};

// Slot<T> reads and writes a T: `form` is also how an immediate operand of that type is read.
template <class T>
struct Slot {
  static_assert(std::is_integral_v<T>);
  static constexpr OperandForm form{sizeof(T) * 8, false};
  static T read(uint64_t slot) { return static_cast<T>(slot); }
  static uint64_t write(T value) { return static_cast<std::make_unsigned_t<T>>(value); }
};

template <>
struct Slot<bool> {
  static constexpr OperandForm form{1, false};
  static bool read(uint64_t slot) { return (slot & 1) != 0; }
  static uint64_t write(bool value) { return value ? 1 : 0; }
};

template <>
struct Slot<float> {
  static constexpr OperandForm form{32, true};
  static float read(uint64_t slot) { return std::bit_cast<float>(static_cast<uint32_t>(slot)); }
  static uint64_t write(float value) { return std::bit_cast<uint32_t>(value); }
};

template <>
struct Slot<double> {
  static constexpr OperandForm form{64, true};
  static double read(uint64_t slot) { return std::bit_cast<double>(slot); }
  static uint64_t write(double value) { return std::bit_cast<uint64_t>(value); }
};

template <>
struct Slot<Half> {
  static constexpr OperandForm form{16, true};
  static Half read(uint64_t slot) { return {static_cast<uint16_t>(slot)}; }
  static uint64_t write(Half value) { return value.bits; }
};

template <>
struct Slot<BFloat> {
  static constexpr OperandForm form{16, true};
  static BFloat read(uint64_t slot) { return {static_cast<uint16_t>(slot)}; }
  static uint64_t write(BFloat value) { return value.bits; }
};

template <class T>
struct Slot<Pair<T>> {
  static constexpr OperandForm form{32, false};
  static Pair<T> read(uint64_t slot) { return {Slot<T>::read(slot), Slot<T>::read(slot >> 16)}; }
  static uint64_t write(Pair<T> value) {
    return Slot<T>::write(value.low) | Slot<T>::write(value.high) << 16;
  }
};

}  // namespace klap::emulator::alu
