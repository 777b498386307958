// The families of operations, one file each. Each finds those of its opcodes whose modifiers it knows.
// find_alu refuses an instruction with modifiers that no family has taken.
#pragma once

#include "emulator/alu/modifiers.h"

namespace klap::emulator::alu {

using Found = std::optional<AluOp>;

Found find_integer(std::string_view opcode, Modifiers& modifiers);      // add ... rem, dp4a
Found find_carry(std::string_view opcode, Modifiers& modifiers);        // add.cc, addc, madc, ...
Found find_logic(std::string_view opcode, Modifiers& modifiers);        // and ... lop3
Found find_bits(std::string_view opcode, Modifiers& modifiers);         // shl ... prmt
Found find_float(std::string_view opcode, Modifiers& modifiers);        // .f32 and .f64, correctly rounded
Found find_approximate(std::string_view opcode, Modifiers& modifiers);  // sin ... div.full
Found find_sign(std::string_view opcode, Modifiers& modifiers);  // float min, max, abs, neg, copysign, testp
Found find_half(std::string_view opcode, Modifiers& modifiers);  // .f16, .bf16 and their pairs
Found find_compare(std::string_view opcode, Modifiers& modifiers);         // setp, set
Found find_select(std::string_view opcode, Modifiers& modifiers);          // selp, slct, mov
Found find_convert(std::string_view opcode, Modifiers& modifiers);         // cvt between numbers
Found find_convert_packed(std::string_view opcode, Modifiers& modifiers);  // cvt to and from several numbers

}  // namespace klap::emulator::alu
