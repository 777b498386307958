// Facts about each opcode of PTX: the rows of opcodes.def.
//
// An opcode is the first word of an instruction: `atom` of `atom.global.add.u32`. Code that depends on the
// modifiers looks at them itself. One row answers every question about an opcode, so no two analyses disagree
// about it. The answers for an opcode without a row are the worst ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptx/tree.h"

namespace klap::ptx {

// How an instruction uses the register that is its first operand. Every opcode reads the registers inside an
// address.
enum class FirstOperand : uint8_t {
  Written,
  Read,
  ByForm,   // depends on modifiers or operands: operand_use() in analysis/graph/operands.h
  Unknown,  // of an opcode without a row: every register that it names may be read and written
};

// The inputs that the result depends on.
enum class OpcodeResult : uint8_t {
  Pure,    // on the operands alone, and the instruction does nothing else
  Carry,   // on the operands and the carry of the instruction before, and the instruction does nothing else
  Memory,  // on what memory holds
  Other,   // on anything, or there is no result
};

// An opcode's effects besides writing its result. EffectKind has an enumerator for each, with the same name.
// X(enumerator)
#define KLAP_OPCODE_EFFECTS(X)                              \
  X(Atomic)                                                 \
  X(Reduction)                                              \
  X(Fence)                                                  \
  X(Sleep)                                                  \
  X(Trap)                                                   \
  X(Exit)                                                   \
  X(WarpSync) /* an operation of a warp on its registers */ \
  X(BarrierObject)                                          \
  X(AsyncCopy)                                              \
  X(GridDependency)                                         \
  X(ClusterAccess)                                          \
  X(StackAllocation)                                        \
  X(Texture)

enum class OpcodeEffect : uint8_t {
  None,      // its effect is that on its operands: the same in whichever kernel, block or warp a thread runs
  Barrier,   // which threads it holds depends on its modifiers and operands
  Unlisted,  // anything: no analysis has been told what it does
#define KLAP_EFFECT(name) name,
  KLAP_OPCODE_EFFECTS(KLAP_EFFECT)
#undef KLAP_EFFECT
};

enum class GlobalWrite : uint8_t {
  Never,
  BySpace,  // unless its modifiers name a space other than global memory
  May,      // it does, or nobody has shown that it does not
};

// Whether it may let other threads' writes become ordered before what follows.
enum class Synchronisation : uint8_t {
  Never,
  WhenStrong,  // a load: see is_strong_load() in analysis/effects/effects.h
  May,         // it does, or nobody has shown that it does not
};

// The lanes of a warp that take part in an operation of the warp.
enum class Lanes : uint8_t {
  None,    // it is an operation of one thread, or of more threads than a warp
  Masked,  // those in the mask that is its last operand
  Active,  // those that happen to be there
  All,
};

struct Opcode {
  std::string_view name;  // empty for an opcode without a row
  FirstOperand first = FirstOperand::Unknown;
  OpcodeResult result = OpcodeResult::Other;
  OpcodeEffect effect = OpcodeEffect::Unlisted;
  GlobalWrite writes_global = GlobalWrite::May;
  Synchronisation synchronises = Synchronisation::May;
  Lanes lanes = Lanes::None;

  [[nodiscard]] bool is_known() const { return !name.empty(); }
  [[nodiscard]] bool reads_carry() const { return result == OpcodeResult::Carry; }
  // True if the result depends on the operands, and at most a carry, alone.
  [[nodiscard]] bool is_computation() const {
    return result == OpcodeResult::Pure || result == OpcodeResult::Carry;
  }
};

// The row of an opcode; one with the worst answers for an opcode that has none.
const Opcode& opcode_of(std::string_view name);
const Opcode& opcode_of(const Module& module, const Statement& instruction);

// All rows, in alphabetical order.
std::span<const Opcode> all_opcodes();

}  // namespace klap::ptx
