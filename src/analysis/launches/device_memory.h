// This file finds the functions by which a unit's code allocates and frees device memory, and tells whether
// all of them can be replaced.
//
// If memory is aggregated (templates/common/device_memory.cu), the device's own free must never get a
// piece of it. So all functions of a module have to change together: every mention of them in every unit.
// Otherwise code could still call the device's own functions (they have no address).
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "ptx/tree.h"

namespace klap::analysis {

// The functions that change: those of the language, and those of the device runtime (cudaMalloc, cudaFree).
inline constexpr std::array<std::string_view, 2> kHeapFunctions = {"malloc", "free"};
inline constexpr std::array<std::string_view, 2> kRuntimeHeapFunctions = {"__cudaCDP2Malloc",
                                                                          "__cudaCDP2Free"};

// All functions by which device code takes or frees memory, those that cannot be changed among them.
bool is_device_memory_function(std::string_view name);
// The memory functions that the text may mention: their names occur in it, maybe as parts of other names. The
// result is not exact, but fast.
bool may_use_device_memory(std::string_view ptx);
// The names of the memory functions that a unit declares or calls.
std::set<std::string> device_memory_functions(const ptx::Module& module);

// Why the unit's functions cannot be changed; empty if they can.
std::string check_own_memory(const ptx::Module& module);

}  // namespace klap::analysis
