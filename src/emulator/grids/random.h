// A small generator of our own, so that a seed means the same run with every standard library.
#pragma once

#include <cstdint>

namespace klap::emulator::execution {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u) {}

  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 <= result < count; count > 0. The bias of small counts in 64 bits does not matter here.
  uint64_t below(uint64_t count) { return next() % count; }
  bool one_in(uint64_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

}  // namespace klap::emulator::execution
