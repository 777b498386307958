// Runs a case of the instruction suite in the emulator's arithmetic.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "emulator/alu/alu.h"
#include "suite.h"

namespace suite {

// The operation of a case; nothing if the emulator does not know it.
std::optional<klap::emulator::AluOp> find_operation(const Case& of);

// The value of each destination register afterwards in the lanes of `mask`, which all must agree. Throws
// std::runtime_error if the emulator does not know the instruction, if lanes disagree, or if a lane that does
// not execute is written.
std::vector<Value> run_case(const Case& of, uint32_t mask = ~0u);

// Whether a result is as it was recorded: equal, or for an approximation within the error that PTX allows.
bool agrees(const Case& of, Value got, Value recorded);

}  // namespace suite
