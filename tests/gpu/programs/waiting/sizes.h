// Programs of dynamic parallelism version 1 have this in common: each is run at three sizes and compared with
// what the CPU computes.
//
// CUDA refuses their waits for children on devices of compute capability 9.0 and later, so natively these
// programs do nothing there.
//
// A program has up to three compilers, so its file has three parts: types and functions for both sides,
// kernels, and the host's part. nvcc compiles all of it. NVRTC compiles all but the host's part to a module,
// and a C++ compiler all but the kernels to a program of the driver API that loads the module
// (driver_host.cpp). A kernel that the host launches has no argument of a type in an unnamed namespace. Else
// NVRTC puts the number of its process into the module's names.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdlib>

#include "../program.h"

// WAITING_LAUNCH(kernel, blocks, threads)(arguments...) launches a kernel from the host.
#ifdef __CUDACC__
#define WAITING_LAUNCH(kernel, blocks, threads) kernel<<<blocks, threads>>>
#else
#include "driver_host.h"
#define WAITING_LAUNCH(kernel, blocks, threads) waiting::Launch<decltype(kernel)>(#kernel, blocks, threads)
#endif

namespace waiting {

// Runs the program's test at the size that its argument names (0, 1 or 2), or at all three.
template <class Test>
int at_sizes(const char* name, int argc, char** argv, const Test& test) {
#ifndef __CUDACC__
  program_name = name;
#endif
  gpu::Report report(name);
  for (int size = 0; size < 3; ++size) {
    if (argc > 1 && std::atoi(argv[1]) != size) continue;
    test(report, size);
  }
  return report.finish();
}

}  // namespace waiting
#endif
