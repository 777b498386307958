// A random program as a test case: its PTX, the host's steps, and the memories that the reference computed.
#pragma once

#include "case.h"
#include "random/program.h"

namespace klap::differential::random {

// The program must be prepared. Throws Error(Internal) if it breaks its promises.
Case to_case(const Program& program);

}  // namespace klap::differential::random
