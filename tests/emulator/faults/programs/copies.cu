// Copies and fills that the executor makes between launches: of odd bytes, of several blocks, of rows, in the
// block's stream and at the end of all else. Streams that wait for events of each other.
#include <algorithm>

#include "program.h"

constexpr int kBytes = 40000, kRows = 50, kRounds = 2;

__global__ void step(unsigned char* bytes, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) bytes[i] = static_cast<unsigned char>(3 * bytes[i] + i);
}

// Slices of which the copy leaves rows out.
__device__ void copy_slices(unsigned char* to, unsigned char* from) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {from, 36, 36, 7};
  copy.dstPtr = {to, 40, 40, 6};
  copy.extent = {20, 4, 5};
  copy.kind = cudaMemcpyDeviceToDevice;
  cudaMemcpy3DAsync(&copy, nullptr);
}

// Each copy reads what the grid before it wrote, and the grid behind it reads the copy.
__global__ void pass_on(unsigned char* a, unsigned char* b, int depth) {
  cudaMemcpyAsync(b + kBytes / 2 + 16, a + 4, 7, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch);
  step<<<(kBytes / 2 + 127) / 128, 128>>>(a, kBytes / 2);
  cudaMemcpyAsync(b + 1, a + 1, kBytes / 2 - 3, cudaMemcpyDeviceToDevice);
  cudaMemsetAsync(b + 100, depth, 333);
  step<<<(kBytes / 2 + 127) / 128, 128>>>(b, kBytes / 2);
  cudaMemcpy2DAsync(a + 2, 40, b + 6, 36, 24, kRows, cudaMemcpyDefault);
  cudaMemset2DAsync(a, 64, depth + 9, 5, kRows);
  copy_slices(a + 7, b + 9);
  if (depth > 0) pass_on<<<1, 1>>>(a, b, depth - 1);
  cudaMemcpyAsync(a + 3, b, 50, cudaMemcpyDeviceToDevice);
}
__global__ void begin(unsigned char* a, unsigned char* b, int depth) { pass_on<<<1, 1>>>(a, b, depth); }

// Streams that each wait for the other one. Waits find an event recorded before and after.
__global__ void step_twice(unsigned char* bytes, int depth) {
  if (depth > 0) step_twice<<<1, 1>>>(bytes, depth - 1);
  step<<<2, 32>>>(bytes, 64);
}
__global__ void take_turns(unsigned char* bytes, int turns) {
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  for (int i = 0; i < turns; ++i) {
    cudaStreamWaitEvent(streams[i % 2], event, 0);
    step_twice<<<1, 1, 0, streams[i % 2]>>>(bytes, i % 3);
    cudaEventRecord(event, streams[i % 2]);
  }
  cudaStreamWaitEvent(nullptr, event, 0);
  step<<<1, 64>>>(bytes, 64);
  cudaEventDestroy(event);
  for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
}
__global__ void begin_turns(unsigned char* bytes, int turns) { take_turns<<<1, 1>>>(bytes, turns); }

void expect_step(std::vector<unsigned char>& bytes, int count) {
  for (int i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(3 * bytes[i] + i);
}
void expect_rows(unsigned char* to, int to_pitch, const unsigned char* from, int from_pitch, int width) {
  for (int y = 0; y < kRows; ++y) std::copy_n(from + y * from_pitch, width, to + y * to_pitch);
}
void expect_pass_on(std::vector<unsigned char>& a, std::vector<unsigned char>& b, int depth) {
  expect_step(a, kBytes / 2);
  std::copy_n(a.begin() + 1, kBytes / 2 - 3, b.begin() + 1);
  std::fill_n(b.begin() + 100, 333, static_cast<unsigned char>(depth));
  expect_step(b, kBytes / 2);
  expect_rows(a.data() + 2, 40, b.data() + 6, 36, 24);
  for (int y = 0; y < kRows; ++y) std::fill_n(a.begin() + 64 * y, 5, static_cast<unsigned char>(depth + 9));
  for (int z = 0; z < 5; ++z) {
    for (int y = 0; y < 4; ++y)
      std::copy_n(b.begin() + 9 + 36 * (7 * z + y), 20, a.begin() + 7 + 40 * (6 * z + y));
  }
  if (depth > 0) expect_pass_on(a, b, depth - 1);
  std::copy_n(b.begin(), 50, a.begin() + 3);
  std::copy_n(a.begin() + 4, 7, b.begin() + kBytes / 2 + 16);
}

int main() {
  gpu::Report report("copies");
  std::vector<unsigned char> a(kBytes), b(kBytes);
  for (int i = 0; i < kBytes; ++i) a[i] = static_cast<unsigned char>(i * 7);
  gpu::Buffer<unsigned char> of_a(a), of_b(b);
  std::vector<unsigned char> turned(64);
  gpu::Buffer<unsigned char> of_turned(turned);
  for (int round = 0; round < kRounds; ++round) {
    begin<<<1, 1>>>(of_a.data(), of_b.data(), 1 + round);
    begin_turns<<<1, 1>>>(of_turned.data(), 5 + round);
  }
  gpu::wait("rounds");
  for (int round = 0; round < kRounds; ++round) {
    expect_pass_on(a, b, 1 + round);
    for (int i = 0; i < 5 + round; ++i) {
      for (int times = 0; times <= i % 3; ++times) expect_step(turned, 64);
    }
    expect_step(turned, 64);
  }
  report.expect_equal("one side", of_a.to_host(), a);
  report.expect_equal("bytes of streams in turns", of_turned.to_host(), turned);
  report.expect_equal("other side", of_b.to_host(), b);
  return report.finish();
}
