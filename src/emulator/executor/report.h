// Where everybody stands, in words: for deadlocks, and for runs that do not end.
#pragma once

#include <string>

#include "emulator/grids/block.h"

namespace klap::emulator::execution {

// Prints a line for each fragment: its lanes, its line, what it waits for and which lanes are missing.
std::string describe(const Block& block);

}  // namespace klap::emulator::execution
