// Loops that copy a child's argument into the buffer of its launch, element by element.
//
// nvcc copies structures of more than 128 bytes in such a loop, which stands between the two calls of a
// launch:
//
//     mov.u32 %count, 0;  mov.u64 %to, %buffer;
//   L: ld.param.v2.u32 {%a, %b}, [%from];
//     st.v2.u32 [%to], {%a, %b};
//     add.s64 %to, %to, 8;  add.s64 %from, %from, 8;
//     add.s32 %count, %count, 1;  setp.lt.u32 %p, %count, 25;  @%p bra L;
//
// If the structure is in local memory, the loop computes both places from the count:
//
//   L: mul.wide.s32 %d, %count, 8;
//     add.s64 %from, %local, %d;  ld.local.v2.u32 {%a, %b}, [%from];
//     add.s64 %to, %buffer, %d;  st.v2.u32 [%to], {%a, %b};
//     add.s32 %count, %count, 1;  setp.lt.u32 %p, %count, 25;  @%p bra L;
//
// A launch is understood only if its arguments are stored in straight-line code (sites.h), so these loops are
// first unrolled (transform/text/unroller.h). This file finds the loops for which that is right: the trip
// count is a constant, the loop does nothing but copy, and no code needs its registers afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/launches/sites.h"
#include "ptx/tree.h"

namespace klap::analysis {

struct CopyLoop {
  const ptx::Statement* label = nullptr;  // with which it begins; only its own branch goes there
  const ptx::Statement* load = nullptr;
  const ptx::Statement* store = nullptr;
  const ptx::Statement* branch = nullptr;  // with which it ends
  uint32_t times = 0;
  // Where the first element is, and how far away each other is from the one before, in bytes.
  struct Place {
    std::string base;  // a register, or a parameter of the function
    int64_t offset = 0, step = 0;
  };
  Place from, to;
  uint32_t register_bits = 0;  // of each register of an element
  // The instructions that set the registers before the loop, and have no other use.
  std::vector<const ptx::Statement*> beginnings;
};

// All copy loops of a function. Throws Error(Parse) as ControlFlow does.
std::vector<CopyLoop> find_copy_loops(const ptx::Module& module, const ptx::Function& function);

}  // namespace klap::analysis
