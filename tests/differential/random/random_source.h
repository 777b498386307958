// Pseudo-random numbers that are the same on every machine (splitmix64).
#pragma once

#include <cstdint>

namespace klap::differential::random {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t limit) { return next() % limit; }
  uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  // Small numbers, and those at the edges, more often than others.
  uint32_t number() {
    switch (below(4)) {
      case 0:
        return static_cast<uint32_t>(below(4));
      case 1:
        return static_cast<uint32_t>(below(100));
      case 2:
        return static_cast<uint32_t>(0x7fffffff + below(4));
      default:
        return static_cast<uint32_t>(next());
    }
  }

 private:
  uint64_t state_;
};

}  // namespace klap::differential::random
