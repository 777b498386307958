// What programs of dynamic parallelism version 1 have in common: each is run at three sizes and compared with
// what the CPU computes.
//
// CUDA refuses their waits for children on devices of compute capability 9.0 and later, so natively these
// programs do nothing there.
#pragma once

#include <cstdlib>

#include "../program.h"

namespace waiting {

// Runs the program's test at the size that its argument names (0, 1 or 2), or at all three.
template <class Test>
int at_sizes(const char* name, int argc, char** argv, const Test& test) {
  gpu::Report report(name);
  for (int size = 0; size < 3; ++size) {
    if (argc > 1 && std::atoi(argv[1]) != size) continue;
    test(report, size);
  }
  return report.finish();
}

}  // namespace waiting
