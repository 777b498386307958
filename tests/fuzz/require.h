// The demand of a fuzz target on its subject, beyond not crashing.
#pragma once

#include <cstdlib>
#include <iostream>

namespace klap::fuzz {

// Ends the process with the reason, which libFuzzer reports as a finding together with the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "broken: " << what << std::endl;
  std::abort();
}

}  // namespace klap::fuzz
