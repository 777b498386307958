// The functions that a device program may call and that the machine provides: the device runtime in all its
// names, vprintf, malloc, free, assertion failures.
//
// A name listed here is the machine's even where a unit defines it: NVIDIA's device runtime library, which
// programs carry along as one more unit, is written on top of calls that only NVIDIA's driver knows.
#pragma once

#include <string_view>

namespace klap::emulator {

// The builtins in the order of builtins.def, which also has the names; several names may mean one function.
enum class Builtin : int {
#define X(name, symbol) name,
#include "emulator/decode/builtins.def"
#undef X
};

// The number of a function by its PTX name, -1 if the machine has none of that name.
int find_builtin(std::string_view name);
// The name with the prefix of version 2, where there are several.
std::string_view builtin_name(int builtin);

}  // namespace klap::emulator
