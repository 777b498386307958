// What a unit's code takes and frees device memory with, and whether all of it can be given other functions
// for that.
//
// Where memory is aggregated (templates/common/device_memory.cu), a piece of it must never get to the
// device's own free. So all functions of a module have to change together: every mention of them in every
// unit, so that nothing is left through which the device's own could be called (it has no address).
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
// Those of them that text may mention: their names stand in it, maybe as parts of others. Not exact, but
// fast.
bool may_use_device_memory(std::string_view ptx);
// Those that a unit declares or calls, by name.
std::set<std::string> device_memory_functions(const ptx::Module& module);

// Why the unit's functions cannot be changed; empty if they can.
std::string object_to_own_memory(const ptx::Module& module);

}  // namespace klap::analysis
