// Makes random programs whose kernels wait for their children. The same seed gives the same program
// everywhere.
#pragma once

#include <cstdint>

#include "random/waits/program.h"

namespace klap::differential::waits {

Program generate(uint64_t seed);

}  // namespace klap::differential::waits
