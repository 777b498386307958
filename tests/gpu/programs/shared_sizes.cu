// A recursion whose launches ask for shared memory of any size, some of them for more than the kernel may
// have. The host changes how much that is, to more and to less. Preloaded, these launches have a variant only
// while the limit is CUDA's own. So the errors that are printed must be those of the native run.
//
// With the argument "allowed" no launch asks for too much: compute-sanitizer takes the buffer of a launch
// that CUDA will refuse for memory that is not allocated, also in the native run.
#include <algorithm>

#include "program.h"

constexpr int kRow = 64;
constexpr int kBlock = 32;

extern __shared__ int tile[];

// Writes a row through the last part of `bytes` bytes of shared memory.
__global__ void turn(int* rows, const int* bytes, int* errors, int at, int count) {
  __shared__ int steps[1];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) steps[0] = 1000 * at;
  if (at > 0) {
    const int n = bytes[at - 1] / 4, used = n < kRow ? n : kRow;
    for (int i = thread; i < used; i += kBlock) tile[n - 1 - i] = i;
    __syncthreads();
    for (int i = thread; i < used; i += kBlock) rows[at * kRow + i] = tile[n - used + i] + steps[0];
  }
  if (thread != 0 || at == count) return;
  turn<<<1, kBlock, bytes[at]>>>(rows, bytes, errors, at + 1, count);
  errors[at] = cudaGetLastError();
  if (errors[at] == cudaSuccess) return;
  turn<<<1, kBlock, bytes[at + 1]>>>(rows, bytes, errors, at + 2, count);
  errors[at + 1] = cudaGetLastError();
}

void run(gpu::Report& report, const char* limit, const std::vector<int>& sizes) {
  const int count = static_cast<int>(sizes.size());
  const gpu::Buffer<int> rows((count + 1) * kRow), errors(count);
  const gpu::Buffer<int> bytes(sizes);
  turn<<<1, kBlock>>>(rows.data(), bytes.data(), errors.data(), 0, count);
  gpu::wait("turn");
  const std::vector<int> got = errors.to_host();
  std::vector<int> expected((count + 1) * kRow);
  std::printf("%s:", limit);
  for (int i = 0; i < count; ++i) {
    std::printf(" %d bytes: error %d%s", sizes[i], got[i], i + 1 == count ? "\n" : ",");
    const int n = sizes[i] / 4, used = n < kRow ? n : kRow;
    for (int cell = 0; cell < used && got[i] == 0; ++cell)
      expected[(i + 1) * kRow + cell] = used - 1 - cell + 1000 * (i + 1);
  }
  report.expect_equal(limit, rows.to_host(), expected);
  report.expect(got.front() == 0 && got.back() == 0, "%s: a small launch is refused", limit);
}

// All sizes, or those that a kernel may have beside its own variables.
std::vector<int> sizes_up_to(int most, bool is_allowed) {
  std::vector<int> sizes = {256, 49136, 4,   49140,   8,    20000, 64, 56000,
                            4,   -4,    128, 1 << 20, 1000, 49152, 0,  36};
  const auto is_refused = [most](int bytes) { return bytes < 0 || bytes > most; };
  if (is_allowed) sizes.erase(std::remove_if(sizes.begin(), sizes.end(), is_refused), sizes.end());
  return sizes;
}

int main(int count, char** arguments) {
  gpu::Report report("shared_sizes");
  const bool is_allowed = count > 1 && std::string(arguments[1]) == "allowed";
  cudaFuncAttributes attributes{};
  gpu::check(cudaFuncGetAttributes(&attributes, turn), "cudaFuncGetAttributes");
  const int most = attributes.maxDynamicSharedSizeBytes;
  std::printf("at most %d bytes of dynamic shared memory beside %zu\n", most, attributes.sharedSizeBytes);
  run(report, "the limit as it is", sizes_up_to(most, is_allowed));
  for (const int limit : {60000, 1000}) {
    gpu::check(cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, limit),
               "cudaFuncSetAttribute");
    run(report, limit > most ? "a larger limit" : "a smaller limit", sizes_up_to(limit, is_allowed));
  }
  return report.finish();
}
