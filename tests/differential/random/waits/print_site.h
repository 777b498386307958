// The PTX of launches by random programs that wait, and of loads of what children left.
#pragma once

#include "random/waits/print_scope.h"
#include "random/waits/program.h"

namespace klap::differential::waits {

// The number of the iteration of so many of the loops around, counted through: a register or an immediate.
std::string slot_number(PrintedScope& scope, uint32_t loops);

// `kernel` is the number of the kernel that the scope belongs to, and `calls` counts its calls.
void print_launch(PrintedScope& scope, const Program& program, const Layout& layout, uint32_t kernel,
                  const Site& site, int& calls);
void print_fetch(PrintedScope& scope, const Program& program, const Layout& layout, uint32_t kernel,
                 const Statement& fetch);

}  // namespace klap::differential::waits
