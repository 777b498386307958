// The lists of a module's kernels that a program may ask the driver for, without the kernels that klap_jit
// has put beside the program's own.
//
// A rewritten module has more kernels than the program's: variants of parents, and consumers. A program that
// counts its kernels, or runs through them, must see its own only. Handles that it gets from a list are as
// good as those that it asks for by name, so they are learnt here, too.
#pragma once

#include <cuda.h>

#include <optional>

namespace klap::runtime {

// Each answers a call of the driver's: cuLibraryGetKernelCount, cuLibraryEnumerateKernels,
// cuModuleGetFunctionCount and cuModuleEnumerateFunctions. Nothing where the driver's own answer is right.
std::optional<CUresult> count_kernels(unsigned* count, CUlibrary library);
std::optional<CUresult> list_kernels(CUkernel* kernels, unsigned room, CUlibrary library);
std::optional<CUresult> count_functions(unsigned* count, CUmodule module);
std::optional<CUresult> list_functions(CUfunction* functions, unsigned room, CUmodule module);

}  // namespace klap::runtime
