// Which operation an opcode with its modifiers is.
#include "emulator/alu/alu.h"
#include "emulator/alu/families.h"

namespace klap::emulator {

std::optional<AluOp> find_alu(std::string_view opcode, std::span<const std::string_view> modifiers,
                              std::span<const uint8_t> register_bits) {
  using namespace alu;
  constexpr std::array kFamilies{find_select, find_integer, find_compare,     find_logic,
                                 find_bits,   find_convert, find_float,       find_carry,
                                 find_sign,   find_half,    find_approximate, find_convert_packed};
  constexpr size_t kMostModifiers = 16;  // no instruction has as many
  if (modifiers.size() > kMostModifiers) return std::nullopt;
  for (const auto family : kFamilies) {
    Modifiers left(modifiers, register_bits);
    Found found = family(opcode, left);
    if (found.has_value() && left.all_taken()) return found;
  }
  return std::nullopt;
}

}  // namespace klap::emulator
