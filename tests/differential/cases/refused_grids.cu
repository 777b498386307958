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

// As programs do that print what went wrong.
extern "C" __global__ void explaining_parent(const unsigned* grids, unsigned* blocks, char* letters) {
  const int t = threadIdx.x;
  if (t >= kLaunches) return;
  count_block<<<dim3(grids[3 * t], grids[3 * t + 1], grids[3 * t + 2]), 64>>>(blocks + t);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  letters[2 * t] = cudaGetErrorString(error)[0] == '\0' ? '0' : 's';
  letters[2 * t + 1] = cudaGetErrorName(error)[9];
}

#else

const std::vector<unsigned> kGrids = {1, 1, 1, 0, 1, 1,     1, 0, 1, 1,     1, 0, 0, 0,
                                      0, 5, 4, 3, 1, 65536, 1, 1, 1, 65536, 2, 2, 2};

bool is_refused(int t) {
  const unsigned x = kGrids[3 * t], y = kGrids[3 * t + 1], z = kGrids[3 * t + 2];
  return x * y * z == 0 || y > 65535 || z > 65535;
}
unsigned blocks_of(int t) {
  return is_refused(t) ? 0 : kGrids[3 * t] * kGrids[3 * t + 1] * kGrids[3 * t + 2];
}

KLAP_CASE(refused_grids_explained, "the text of a refused launch's error cannot be had") {
  c.contract("The device can put an error into words.", "names and texts of the errors");
  std::vector<unsigned> blocks;
  std::vector<char> letters;
  for (int t = 0; t < kLaunches; ++t) {
    blocks.push_back(blocks_of(t));
    letters.push_back(is_refused(t) ? 's' : '-');  // some text
    letters.push_back(is_refused(t) ? 'I' : '-');  // cudaErrorInvalidConfiguration
  }
  const auto g = c.input("grids", kGrids);
  const auto b = c.buffer("blocks", std::vector<unsigned>(kLaunches), blocks);
  const auto l = c.buffer("letters", std::vector<char>(2 * kLaunches, '-'), letters);
  c.launch("explaining_parent", {1, 1, 1}, {32, 1, 1}, c.address(g), c.address(b), c.address(l));
  c.rewritten("explaining_parent");
}

KLAP_CASE(refused_grids, "a refused launch gives another error code, runs, or disturbs its neighbours") {
  c.contract(
      "A launch of a size that the device does not allow is refused with an error, and the launches around "
      "it keep their order.",
      "nine grids by nine threads");
  std::vector<unsigned> blocks;
  std::vector<int> codes;
  for (int t = 0; t < kLaunches; ++t) {
    blocks.push_back(blocks_of(t));
    const int code = is_refused(t) ? kInvalidConfiguration : 0;
    codes.insert(codes.end(), {code, code, 0});
  }
  const auto g = c.input("grids", kGrids);
  const auto b = c.buffer("blocks", std::vector<unsigned>(kLaunches), blocks);
  const auto e = c.buffer("codes", std::vector<int>(3 * kLaunches, -1), codes);
  c.launch("refused_parent", {1, 1, 1}, {32, 1, 1}, c.address(g), c.address(b), c.address(e));
  c.rewritten("refused_parent");
}

#endif
