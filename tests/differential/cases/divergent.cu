// Lanes come to the launch at different times and along different ways: loops of different length, branches
// in branches.
#include "case.h"

constexpr unsigned kThreads = 128;
KLAP_SHARED static constexpr unsigned steps(unsigned start) {
  unsigned n = 0;
  for (unsigned x = start + 1; x != 1; ++n) x = x % 2 == 0 ? x / 2 : 3 * x + 1;
  return n;
}

#ifdef __CUDACC__

__global__ void count(unsigned* out, unsigned n, unsigned start) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % 2 == 0) {
    if (i < n) out[i] = start + i;
  } else {
    unsigned x = i;
    for (unsigned k = 0; k < start % 5; ++k) x = x * 3 + k;
    if (i < n) out[i] = x;
  }
}

extern "C" __global__ void divergent_parent(unsigned* out) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned n = 0;
  for (unsigned x = t + 1; x != 1; ++n) x = x % 2 == 0 ? x / 2 : 3 * x + 1;
  if (t % 4 != 3) {
    if (n > 5) n = n % 50;
    if (n != 0) count<<<(n + 31) / 32, 32>>>(out + 64 * t, n, t);
  }
  out[64 * t + 63] = n;
}

#else

KLAP_CASE(divergent, "lanes that arrive apart are taken together, or the other way round") {
  std::vector<unsigned> after(64 * kThreads, 0);
  for (unsigned t = 0; t < kThreads; ++t) {
    unsigned n = steps(t);
    if (t % 4 != 3) {
      if (n > 5) n %= 50;
      for (unsigned i = 0; i < n; ++i) {
        unsigned x = i;
        for (unsigned k = 0; k < t % 5; ++k) x = x * 3 + k;
        after[64 * t + i] = i % 2 == 0 ? t + i : x;
      }
    }
    after[64 * t + 63] = n;
  }
  const auto out = c.buffer("out", std::vector<unsigned>(after.size()), after);
  c.launch("divergent_parent", {2, 1, 1}, {64, 1, 1}, c.address(out));
  c.rewritten("divergent_parent");
  c.children_never_meet();
}

#endif
