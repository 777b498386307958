// A kernel's access to a cell as PTX: the operands, the address in one of its forms, and the way in which it
// reaches the access itself (print_cells.h).
#pragma once

#include "random/kernel_values.h"

namespace klap::differential::random {

void print_cell(KernelValues& values, const Statement& s);

// The local array through which addresses and indices may go. A kernel with such an access declares it.
[[nodiscard]] bool uses_local_array(const Statement& s);
std::string local_array_declaration(const KernelValues& values);

}  // namespace klap::differential::random
