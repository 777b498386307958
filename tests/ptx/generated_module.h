// Made-up PTX modules of any size: as varied as nvcc's, and always the same for one size.
//
// Kernels of different lengths hold the code that compilers emit, in nvcc's layout. It has address
// arithmetic, loops, branches, memory of every space, vectors, floating point, warp operations, device
// launches and line information. Registers and labels are numbered per kernel, names are mangled, and tables
// of constants stand between the kernels. Every statement is one that PTX has, but the module is for readers
// of text: nothing in it computes anything.
#pragma once

#include <cstddef>
#include <string>

namespace klap::test {

// A module of at least `bytes` bytes, and not more than a kernel longer.
std::string generated_module(size_t bytes);

}  // namespace klap::test
