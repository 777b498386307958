// Memory that many small blocks take at once, in a heap that has little more room than they need: used by
// children, freed by threads of other blocks while these take more, and all of it given back at the end.
#include "program.h"

constexpr int kBlocks = 10, kThreads = 48, kPieces = kBlocks * kThreads;
constexpr int kHeap = 64 << 10, kRounds = 3, kSmallBlocks = 9;

__host__ __device__ int bytes_of(int t, int round) { return (t * 29 + round * 17) % 47 + 2; }
__device__ int own_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ unsigned char byte_of(int t, int i) { return static_cast<unsigned char>(t * 3 + i); }

__device__ unsigned char* take(int t, int round, int* wrong) {
  auto* const piece = static_cast<unsigned char*>(malloc(bytes_of(t, round)));
  if (piece == nullptr) {
    atomicAdd(wrong, 1);
    return nullptr;
  }
  for (int i = 0; i < bytes_of(t, round); ++i) piece[i] = byte_of(t, i);
  return piece;
}
__device__ void give(unsigned char* piece, int t, int round, int* wrong) {
  if (piece == nullptr) return;
  int differing = 0;
  for (int i = 0; i < bytes_of(t, round); ++i) differing += piece[i] == byte_of(t, i) ? 0 : 1;
  if (differing != 0) atomicAdd(wrong, 1000);
  free(piece);
}

__global__ void write_again(unsigned char* piece, int t) {
  if (threadIdx.x == 0) piece[0] = byte_of(t, 0);
}
__global__ void take_pieces(unsigned char** pieces, int round, int* wrong) {
  const int t = own_thread();
  pieces[t] = take(t, round, wrong);
  if (pieces[t] != nullptr) write_again<<<1, 32>>>(pieces[t], t);
}
// Threads in the middle of a block begin with a free, the others with a malloc.
__global__ void exchange_pieces(unsigned char* const* before, unsigned char** after, int round, int* wrong) {
  const int t = own_thread(), other = (t * 7 + 5) % kPieces;
  const bool gives_first = t % kThreads / 16 == 1;
  if (gives_first) give(before[other], other, round, wrong);
  after[t] = take(t, round + 1, wrong);
  if (!gives_first) give(before[other], other, round, wrong);
}
__global__ void give_pieces(unsigned char* const* pieces, int round, int* wrong) {
  const int t = kPieces - 1 - own_thread();
  give(pieces[t], t, round, wrong);
}
// Takes a piece and frees it, again and again. Chunks are opened for it and closed.
__global__ void take_and_give(int* wrong) {
  const int t = own_thread();
  for (int round = 0; round < t % 3 + 1; ++round) give(take(t, round, wrong), t, round, wrong);
}
// Warps that ask for much make the next chunk larger, while two lanes of others close the one that is open.
// There may not be enough for all.
__global__ void take_much_and_little() {
  const bool takes_much = blockIdx.x % 2 == 1;
  if (!takes_much && threadIdx.x > 1) return;
  for (int i = 0; i < (takes_much ? 3 : 8); ++i) free(malloc(takes_much ? 200 : 12));
}
// The whole heap, but for two headers.
__global__ void take_whole_heap(int* wrong) {
  void* const heap = malloc(kHeap - 32);
  if (heap == nullptr) atomicAdd(wrong, 1000000);
  free(heap);
}
// Only so much is left.
__global__ void leave(int bytes, void** hog, int* wrong) {
  *hog = malloc(kHeap - 32 - bytes);
  if (*hog == nullptr) atomicAdd(wrong, 1000000);
}
__global__ void give_hog(void* const* hog) { free(*hog); }

int main() {
  gpu::Report report("pieces");
  gpu::check(cudaDeviceSetLimit(cudaLimitMallocHeapSize, kHeap), "heap size");
  const gpu::Buffer<unsigned char*> a(kPieces), b(kPieces);
  const gpu::Buffer<void*> hog(1);
  const gpu::Buffer<int> wrong(1);
  gpu::wait("zeros");
  for (int round = 0; round < kRounds; ++round) {
    take_pieces<<<kBlocks, kThreads>>>(a.data(), round, wrong.data());
    exchange_pieces<<<kBlocks, kThreads>>>(a.data(), b.data(), round, wrong.data());
    give_pieces<<<kBlocks, kThreads>>>(b.data(), round + 1, wrong.data());
    take_whole_heap<<<1, 1>>>(wrong.data());
    take_and_give<<<kBlocks, kThreads>>>(wrong.data());
    take_whole_heap<<<1, 1>>>(wrong.data());
    take_much_and_little<<<kBlocks, kThreads>>>();
    take_whole_heap<<<1, 1>>>(wrong.data());
  }
  // Enough for a small chunk. With its header a piece takes 64 bytes at most.
  leave<<<1, 1>>>(kSmallBlocks * 8 * 64, hog.data(), wrong.data());
  take_pieces<<<kSmallBlocks, 8>>>(a.data(), 0, wrong.data());
  gpu::wait("little room");
  give_hog<<<1, 1>>>(hog.data());
  gpu::wait("rounds");
  report.expect(wrong.to_host()[0] == 0, "%d are wrong", wrong.to_host()[0]);
  return report.finish();
}
