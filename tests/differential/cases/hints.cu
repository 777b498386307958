// Hints of include/klap/annotate.cuh in parents and in children, which are copied into consumers with them.
#include "case.h"

#ifdef __CUDACC__

#include <klap/annotate.cuh>

extern "C" __global__ void fill(int* cells, int first) {
  KLAP_AGGREGATE(granularity(none));
  cells[first + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x)] = first;
}
// A consumer of one block that runs two children's at once.
extern "C" __global__ void hinting(int* cells) {
  KLAP_AGGREGATE(consumer_threads(64), concurrency(100000), granularity(block));
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  KLAP_AGGREGATE_LAUNCH(granularity(warp));
  fill<<<1 + i % 3, 32, 0, cudaStreamFireAndForget>>>(cells, 96 * i);
}
extern "C" __global__ void hinting_itself(int* cells, int depth) {
  KLAP_AGGREGATE(launcher(host), pool_bytes(1M));
  cells[depth] = depth + 1;
  KLAP_AGGREGATE_LAUNCH(consumer_threads(512));
  if (depth > 0) hinting_itself<<<1, 1>>>(cells, depth - 1);
}

#else

KLAP_CASE(hints, "a consumer of the size that a hint asks for loses children") {
  std::vector<int> after(96 * 64, -1);
  for (size_t i = 0; i < 64; ++i) {
    for (size_t cell = 0; cell < 32 * (1 + i % 3); ++cell) after[96 * i + cell] = static_cast<int>(96 * i);
  }
  const auto cells = c.buffer("cells", std::vector<int>(96 * 64, -1), after);
  c.launch("hinting", {2, 1, 1}, {32, 1, 1}, c.address(cells));
  c.rewritten("hinting");
}

KLAP_CASE(hints_in_recursion, "a hint in a child that launches itself changes what it does") {
  std::vector<int> after;
  for (int i = 0; i <= 20; ++i) after.push_back(i + 1);
  const auto cells = c.buffer("cells", std::vector<int>(21), after);
  c.launch("hinting_itself", {1, 1, 1}, {1, 1, 1}, c.address(cells), 20);
  c.left_on_device("hinting_itself", "child-launches");
  c.by_warp("child-launches");
  c.setting("KLAP_PROMOTION", "none");
}

#endif
