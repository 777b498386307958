// How many threads share a vertex in kernels that walk adjacency lists without child launches.
#pragma once

namespace bench {

// The logarithm of the number of threads for each of `vertices` vertices: about eight edges a thread, at
// least 4 and at most 32 threads. Few vertices get more, since threads that wait for memory one after another
// would leave the device idle.
inline int lane_bits_for(long long vertices, long long average_degree) {
  constexpr int kMost = 5;
  constexpr long long kResident = 1LL << 18;  // about what the largest devices hold at once
  int bits = 2;
  while (bits < kMost && (8LL << bits) < average_degree) ++bits;
  while (bits < kMost && (vertices << (bits + 1)) <= kResident) ++bits;
  return bits;
}

}  // namespace bench
