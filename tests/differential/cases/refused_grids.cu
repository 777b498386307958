// Launches that CUDA refuses beside good ones: empty grids, grids beyond the limits in y and z. The error
// must be there to peek at, be returned once, and be gone then.
#include "case.h"

constexpr int kLaunches = 9;
constexpr int kInvalidConfiguration = 9;

#ifdef __CUDACC__

__global__ void count_block(unsigned* blocks) {
  if (threadIdx.x == 0) atomicAdd(blocks, 1U);
}

extern "C" __global__ void refused_parent(const unsigned* grids, unsigned* blocks, int* codes) {
  const int t = threadIdx.x;
  if (t >= kLaunches) return;
  count_block<<<dim3(grids[3 * t], grids[3 * t + 1], grids[3 * t + 2]), 64>>>(blocks + t);
  codes[3 * t] = cudaPeekAtLastError();
  codes[3 * t + 1] = cudaGetLastError();
  codes[3 * t + 2] = cudaGetLastError();
}

#else

KLAP_CASE(refused_grids, "a refused launch gives another error code, runs, or disturbs its neighbours") {
  const std::vector<unsigned> grids = {1, 1, 1, 0, 1, 1,     1, 0, 1, 1,     1, 0, 0, 0,
                                       0, 5, 4, 3, 1, 65536, 1, 1, 1, 65536, 2, 2, 2};
  std::vector<unsigned> blocks;
  std::vector<int> codes;
  for (int t = 0; t < kLaunches; ++t) {
    const unsigned x = grids[3 * t], y = grids[3 * t + 1], z = grids[3 * t + 2];
    const bool refused = x * y * z == 0 || y > 65535 || z > 65535;
    blocks.push_back(refused ? 0 : x * y * z);
    const int code = refused ? kInvalidConfiguration : 0;
    codes.insert(codes.end(), {code, code, 0});
  }
  const auto g = c.input("grids", grids);
  const auto b = c.buffer("blocks", std::vector<unsigned>(kLaunches), blocks);
  const auto e = c.buffer("codes", std::vector<int>(3 * kLaunches, -1), codes);
  c.launch("refused_parent", {1, 1, 1}, {32, 1, 1}, c.address(g), c.address(b), c.address(e));
  c.rewritten("refused_parent");
}

#endif
