// What a fuzz target demands of its subject beyond not crashing.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace klap::fuzz {

// Ends the process with the reason, which libFuzzer reports as a finding together with the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace klap::fuzz
