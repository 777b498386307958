// The functions that a device program may call and that the machine provides: the device runtime in all its
// names, vprintf, malloc, free, assertion failures.
#pragma once

#include <string_view>

namespace klap::emulator {

// X(enumerator, PTX name). Several names may stand for one function. (The list lives in builtins.def.)
enum class Builtin : int {
#define X(name, symbol) name,
#include "emulator/builtins.def"
#undef X
};

// The number of a function by its PTX name, -1 if the machine has none of that name.
int find_builtin(std::string_view name);
std::string_view builtin_name(int builtin);

}  // namespace klap::emulator
