#include "emulator/alu/modifiers.h"

#include <array>
#include <bit>
#include <utility>

namespace klap::emulator::alu {
namespace {

constexpr std::array<std::pair<std::string_view, Type>, 29> kTypes{{
    {".pred", Type::Pred},     {".b8", Type::B8},       {".b16", Type::B16},     {".b32", Type::B32},
    {".b64", Type::B64},       {".b128", Type::B128},   {".u8", Type::U8},       {".u16", Type::U16},
    {".u32", Type::U32},       {".u64", Type::U64},     {".s8", Type::S8},       {".s16", Type::S16},
    {".s32", Type::S32},       {".s64", Type::S64},     {".f16", Type::F16},     {".bf16", Type::BF16},
    {".tf32", Type::TF32},     {".f32", Type::F32},     {".f64", Type::F64},     {".f16x2", Type::F16x2},
    {".bf16x2", Type::BF16x2}, {".u16x2", Type::U16x2}, {".s16x2", Type::S16x2}, {".e4m3x2", Type::E4M3x2},
    {".e5m2x2", Type::E5M2x2}, {".u2", Type::U2},       {".s2", Type::S2},       {".u4", Type::U4},
    {".s4", Type::S4},
}};

}  // namespace

bool Modifiers::take(std::string_view name) {
  for (size_t i = 0; i < list_.size(); ++i) {
    if ((taken_ >> i & 1) != 0 || list_[i] != name) continue;
    taken_ |= 1u << i;
    return true;
  }
  return false;
}

int Modifiers::take_one(std::initializer_list<std::string_view> names) {
  int index = 0;
  for (const std::string_view name : names) {
    if (take(name)) return index;
    ++index;
  }
  return -1;
}

std::optional<Type> Modifiers::take_type() {
  for (size_t i = 0; i < list_.size(); ++i) {
    if ((taken_ >> i & 1) != 0) continue;
    for (const auto& [name, type] : kTypes) {
      if (list_[i] != name) continue;
      taken_ |= 1u << i;
      return type;
    }
  }
  return std::nullopt;
}

std::optional<Rounding> Modifiers::take_rounding() {
  const int index = take_one({".rn", ".rz", ".rm", ".rp"});
  if (index < 0) return std::nullopt;
  return static_cast<Rounding>(index);
}

bool Modifiers::all_taken() const { return static_cast<size_t>(std::popcount(taken_)) == list_.size(); }

bool is_float(Type type) { return type == Type::F32 || type == Type::F64; }

bool is_half(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F16x2 || type == Type::BF16x2;
}

}  // namespace klap::emulator::alu
