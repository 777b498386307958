#include "ptx/opcodes.h"

#include <algorithm>
#include <array>

namespace klap::ptx {

namespace {

constexpr std::array kOpcodes = std::to_array<Opcode>({
#define KLAP_OPCODE(name, first, result, effect, writes_global, synchronises, lanes) \
  {name,                                                                             \
   FirstOperand::first,                                                              \
   OpcodeResult::result,                                                             \
   OpcodeEffect::effect,                                                             \
   GlobalWrite::writes_global,                                                       \
   Synchronisation::synchronises,                                                    \
   Lanes::lanes},
#include "ptx/opcodes.def"
#undef KLAP_OPCODE
});
// In order, and none twice.
static_assert(std::ranges::adjacent_find(kOpcodes, std::ranges::greater_equal{}, &Opcode::name) ==
              kOpcodes.end());

constexpr Opcode kUnknown;

}  // namespace

const Opcode& opcode_of(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(kOpcodes, name, {}, &Opcode::name);
  return found != kOpcodes.end() && found->name == name ? *found : kUnknown;
}

const Opcode& opcode_of(const Module& module, const Statement& instruction) {
  return opcode_of(module.text(instruction.head));
}

std::span<const Opcode> all_opcodes() { return kOpcodes; }

}  // namespace klap::ptx
