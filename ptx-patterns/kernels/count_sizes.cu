// Counts the sizes of the children that a parent recorded (child_sizes.h). It runs between the parent and the
// consumer if the statistics are to have the sizes (KLAP_SIZES).
//
// nvcc compiles it when klap_jit is built, so that no program waits for CUB's headers.
#include <cub/block/block_histogram.cuh>

#include "common/queue.h"
#include "kernels/child_sizes.h"

namespace {

constexpr int kThreads = KLAP_SIZES_THREADS, kItems = 4;
constexpr unsigned int kTile = kThreads * kItems;
constexpr int kNoBin = KLAP_SIZE_BINS;  // for threads without a record
using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, KLAP_SIZE_BINS + 1>;

__device__ unsigned int bin_of(unsigned long long size) {
  const unsigned int bits = 64u - __clzll(static_cast<long long>(size));
  return bits < KLAP_BIG_SIZES ? bits : KLAP_BIG_SIZES;
}

}  // namespace

// `sizes` has KLAP_SIZE_BINS words in host memory.
extern "C" __global__ void __launch_bounds__(kThreads)
    klap_count_sizes(const KlapQueue* queue, unsigned long long* sizes) {
  __shared__ Histogram::TempStorage storage;
  __shared__ unsigned int bins[KLAP_SIZE_BINS + 1];
  const unsigned int records = static_cast<unsigned int>(queue->packed) & KLAP_MAX_RECORDS;
  const unsigned long long all = queue->packed >> KLAP_INDEX_BITS;
  Histogram histogram(storage);
  histogram.InitHistogram(bins);
  for (unsigned int tile = blockIdx.x * kTile; tile < records; tile += gridDim.x * kTile) {
    unsigned char bin[kItems];
    for (int i = 0; i < kItems; ++i) {
      const unsigned int record = tile + i * kThreads + threadIdx.x;
      bin[i] = kNoBin;
      if (record >= records) continue;
      const unsigned long long end = record + 1u < records ? queue->prefix[record + 1u] : all;
      bin[i] = static_cast<unsigned char>(bin_of(end - queue->prefix[record]));
    }
    __syncthreads();
    histogram.Composite(bin, bins);
  }
  __syncthreads();
  if (threadIdx.x >= KLAP_SIZE_BINS) return;
  unsigned long long count = bins[threadIdx.x];
  if (threadIdx.x == KLAP_BIG_SIZES && blockIdx.x == 0) count += queue->big;
  if (count != 0) atomicAdd(sizes + threadIdx.x, count);
}
