// A launch site of a random program as PTX: the two calls of the device runtime with the child's arguments
// between them, in the form in which nvcc writes launches (ptx-patterns/idioms).
#pragma once

#include "random/kernel_values.h"

namespace klap::differential::random {

void print_launch(KernelValues& values, const Site& site);

}  // namespace klap::differential::random
