// Loops over all processor cores, for the generators and the CPU references: the larger inputs have a hundred
// million edges and every variant of a program makes its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace bench {

// Calls body(begin, end) on disjoint pieces that cover [0, count), from several threads at once.
template <class Body>
void parallel_ranges(size_t count, const Body& body) {
  constexpr size_t kSmallest = 1U << 15;  // smaller pieces are not worth a thread
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t pieces = std::clamp<size_t>(count / kSmallest, 1, cores);
  if (pieces == 1) return body(size_t{0}, count);
  std::vector<std::thread> threads;
  threads.reserve(pieces);
  for (size_t i = 0; i < pieces; ++i) {
    threads.emplace_back([&body, count, pieces, i] { body(count * i / pieces, count * (i + 1) / pieces); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Calls body(i) for every i in [0, count), from several threads at once.
template <class Body>
void parallel_for(size_t count, const Body& body) {
  parallel_ranges(count, [&body](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace bench
