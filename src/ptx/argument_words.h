// Arguments of kernels in the words of CUDA C++. PTX keeps no names of parameters, so they are known by their
// place in the signature and their type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/tree.h"

namespace klap::ptx {

// "argument 3 of visit (int)" for these bytes of the parameter block; "argument 1 of expand (Level), byte 24"
// for a part of an argument. Where the signature is not known, the size stands for the type. Empty if no
// parameter has the bytes.
std::string argument_words(const Function& kernel, uint32_t offset, uint32_t bytes);

// The text with expressions over the kernel's parameters, as analysis/expressions/expression.h writes them,
// in such words: "i < p[12]" becomes "i < argument 3 of visit (int)", and "tid.x" "threadIdx.x". An argument
// in a larger expression stands in brackets.
std::string in_cuda_words(std::string_view text, const Function& kernel);

}  // namespace klap::ptx
