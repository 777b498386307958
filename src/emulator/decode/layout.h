// This file finds the functions that a kernel can reach by calls. From them follow the places of shared
// variables in its blocks' memory, and whether it can run at all.
#pragma once

#include <vector>

#include "emulator/decode/code.h"

namespace klap::emulator {

// The functions that a function can get to by calls, itself first, then nearer ones before farther ones.
std::vector<uint32_t> reachable_functions(const Image& image, uint32_t function);

// Completes each kernel with the facts of the functions that it can reach: Function::shared and
// ::unsupported.
void complete_kernels(Image& image);

}  // namespace klap::emulator
