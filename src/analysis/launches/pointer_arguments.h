// This file finds the memory that a called function accesses by an address passed to it: `void look(int* p,
// int& out)`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

// Bytes from the address on, half open.
struct Reach {
  int64_t first = 0, last = 0;
};

// All that `function` reads or writes by the address in one of its parameters. Nothing where the address goes
// anywhere but into accesses at constant distances from it.
std::optional<std::vector<Reach>> reach_of_parameter(const ptx::Module& module, const ptx::Function& function,
                                                     size_t parameter);

// The reach of an argument of a function that the module calls by that name, device-runtime functions
// included.
std::optional<std::vector<Reach>> reach_of_argument(const ptx::Module& module, std::string_view callee,
                                                    size_t argument);

}  // namespace klap::analysis
