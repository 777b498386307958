// Which columns of a frame each virtual register has.
//
// A function may have thousands of virtual registers of which few are live at a time, and a column is 256
// bytes. So registers that are never live at once share columns. Liveness holds for every thread by itself,
// and threads of a warp only touch their own slots. So sharing is right however they diverge.
#pragma once

#include <vector>

#include "analysis/graph/registers.h"

namespace klap::emulator {

struct Columns {
  std::vector<uint32_t> first;     // of each register of analysis::VirtualRegisters
  uint32_t count = 0;              // in all
  uint32_t register_estimate = 0;  // 32-bit registers that machine code would need for it
};

Columns assign_columns(const analysis::ControlFlow& flow, const analysis::VirtualRegisters& registers);

// Columns of one lane of a register: two for one of 128 bits.
uint32_t lane_columns(const analysis::VirtualRegister& reg);

}  // namespace klap::emulator
