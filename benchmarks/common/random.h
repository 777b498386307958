// Random numbers of the benchmarks' generators.
//
// The standard library's distributions differ between implementations, and a seed must mean the same input on
// every machine for results to be comparable; so the generators use their own.
#pragma once

#include <cstdint>

namespace bench {

// One step of SplitMix64: a bijection that scatters its argument; also a hash of small keys.
inline uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// SplitMix64: small, fast, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Independent numbers for part `part` of an input, so that parts can be generated in parallel.
  Random(uint64_t seed, uint64_t part) : state_(mix(seed) ^ mix(~part)) {}

  uint64_t next() {
    const uint64_t value = mix(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return value;
  }
  // Uniform in [0, bound).
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
  }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace bench
