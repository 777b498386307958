// The flat consumer: it works as consumer.cu, but shares out single threads instead of blocks of children.
//
// The threads of all recorded children that may pass their guard (flat.h) form one sequence. A warp takes an
// equal contiguous share of it, 32 threads a step. So the tail of one child and the heads of the next ones
// stand in it together. It searches the record of its first thread once. After that it looks at the prefixes
// of the next 32 records, a lane each. It runs the whole steps that the record still has, or the next one
// where this record ends. Otherwise every lane finds out among them which record it is in.
//
// Only children whose threads do not meet or share memory run here: no barriers, no warp operations, no
// shared memory. Each thread gets the very place in its block and grid that it has natively, so it computes
// the same from that. All operations of a step that involve other lanes come before the child's body. The
// warp comes together again at the next step.
//
// Big children follow. All warps share each of them, beginning where the one before ended. So many children
// that are smaller than the GPU do not all fall to the same warps.
//
// Constants: those of sizes.h, with one dimension; KLAP_ONE_ROW where children are one block each
// (split_iterations.h); KLAP_THREADS of a block, a multiple of a warp; KLAP_ARGS_OFFSET and
// KLAP_RECORD_BYTES; those of record_grid.h; KLAP_GRID_1D; those of await.h, consumer_grid.h and
// consumer_end.h.
#include "aggregate/consumer_end.h"
#include "common/await.h"
#include "common/child.h"
#include "common/queue.h"
#include "common/record_grid.h"
#include "common/sequence.h"
#include "common/sizes.h"

// The warps of a block.
#ifdef KLAP_FUSED
#define KLAP_OWN_WARPS (threads_of_block() / 32u)
#else
#define KLAP_OWN_WARPS (KLAP_THREADS / 32u)
#endif

#define KLAP_ALL_LANES 0xffffffffu

// Further away than any step looks.
enum : unsigned int { kFar = 1u << 30 };

// Dividing 64 bits takes long, and few need it.
static __device__ __forceinline__ unsigned long long quotient(unsigned long long dividend,
                                                              unsigned int divisor) {
  if (dividend >> 32 == 0) return static_cast<unsigned int>(dividend) / divisor;
  return dividend / divisor;
}

// The threads of a child's block.
static __device__ __forceinline__ unsigned int threads_of_child(const uint4& grid) {
#ifdef KLAP_BLOCKS_DIFFER
  return block_of(grid.w).x;
#else
  return KLAP_CHILD_X;
#endif
}

// The thread of a child with that linear index.
static __device__ __forceinline__ void run_thread(const unsigned char* record, unsigned long long index) {
  const uint4 grid = grid_of(record, kReadOnly);
  const unsigned int threads = threads_of_child(grid);
#ifdef KLAP_ONE_ROW
  // One block of all threads that it was recorded with.
  __klap_child_body(record + KLAP_ARGS_OFFSET, 0, 0, 0, 1, 1, 1, static_cast<unsigned int>(index), 0, 0,
                    grid.x * threads, 1, 1);
#else
  const unsigned int block = static_cast<unsigned int>(quotient(index, threads));
  const unsigned int thread = static_cast<unsigned int>(index) - block * threads;
#ifdef KLAP_BLOCKS_DIFFER
  __klap_child_body(record + KLAP_ARGS_OFFSET, block, 0, 0, grid.x, grid.y, grid.z, thread, 0, 0, threads, 1,
                    1);
#else
  __klap_child_body(record + KLAP_ARGS_OFFSET, block, 0, 0, grid.x, grid.y, grid.z, thread, 0, 0);
#endif
#endif
}

// How many of the lanes' values, which do not fall from lane to lane, are not above this lane's number. The
// last lane's is not looked at.
static __device__ __forceinline__ unsigned int count_up_to(unsigned int value, unsigned int lane) {
  unsigned int count = 0;
#pragma unroll
  for (unsigned int step = 16; step != 0; step /= 2) {
    if (__shfl_sync(KLAP_ALL_LANES, value, count + step - 1) <= lane) count += step;
  }
  return count;
}

static __device__ __forceinline__ unsigned int working(KLAP_GRID_PARAMETER const KlapCounted& counted) {
  return working_blocks(KLAP_GRID_ARGUMENT counted, ((counted.packed >> KLAP_INDEX_BITS) + 31u) / 32u);
}

#ifdef KLAP_FUSED
extern "C" __device__ void __klap_consumer(KlapQueue* queue, unsigned int own, unsigned int all) {
  const ConsumerGrid consumer = {own, all};
#else
extern "C" __global__ void __launch_bounds__(KLAP_THREADS) __klap_consumer(KlapQueue* queue) {
#endif
  await_parent();
  const KlapCounted counted = counted_in(queue);
  begin(KLAP_GRID_ARGUMENT queue, counted);
  if (KLAP_CONSUMER_BLOCK >= working(KLAP_GRID_ARGUMENT counted)) return;
#ifdef KLAP_FUSED
  if (KLAP_CONSUMER_THREAD >= 32u * KLAP_OWN_WARPS) KLAP_LEAVE_THREAD_OUT;
#endif
  const unsigned int lane = KLAP_CONSUMER_THREAD % 32u;
  const unsigned int warps = KLAP_CONSUMER_BLOCKS * KLAP_OWN_WARPS;
  // Where there is less than a step for each, multiprocessors share it rather than warps of one.
  const unsigned int mine = KLAP_CONSUMER_THREAD / 32u * KLAP_CONSUMER_BLOCKS + KLAP_CONSUMER_BLOCK;

  unsigned long long at, end;  // the rest of this warp's share, or of its part of a big child
  unsigned int record = 0;     // that the first thread of the next step belongs to, or one before it
  {
    const unsigned long long packed = counted.packed;
    const unsigned long long threads = packed >> KLAP_INDEX_BITS;
    const unsigned long long steps = (threads + 31u) / 32u;
    const unsigned long long share = quotient(steps, warps), rest = steps - share * warps;
    at = (mine * share + (mine < rest ? mine : rest)) * 32u;
    end = at + (share + (mine < rest ? 1u : 0u)) * 32u;
    if (end > threads) end = threads;
    if (at < end)
      record = find_record_as_warp(queue->prefix, static_cast<unsigned int>(packed) & KLAP_MAX_RECORDS, at);
  }
  unsigned int big_begun = 0;
  unsigned int turn = 0;  // the warp that begins with the next big child

#pragma unroll 1
  for (;;) {
    __syncwarp();  // some lanes may come from the child's body later than others
    if (at >= end) {
      if (big_begun >= queue->big) break;
      record = queue->capacity - 1u - big_begun++;
      const uint4 grid =
          grid_of(queue->records + static_cast<unsigned long long>(record) * KLAP_RECORD_BYTES, kReadOnly);
      end = static_cast<unsigned long long>(grid.x) * threads_of_child(grid);
      at = 32ull * (mine >= turn ? mine - turn : mine + warps - turn);
      const unsigned long long steps = turn + (end + 31u) / 32u;
      turn = static_cast<unsigned int>(steps - quotient(steps, warps) * warps);
      continue;
    }
    // One stretch: this lane runs the threads `index`, `index + by`, ... of a child, `steps` of them.
    unsigned int own = record;
    unsigned long long index;
    unsigned int steps, by = 32;
    if (big_begun != 0) {
      index = at + lane;
      by *= warps;
      steps = index < end ? static_cast<unsigned int>(quotient(end - 1 - index, by)) + 1 : 0;
      at = end;
    } else {
      const unsigned int records = static_cast<unsigned int>(queue->packed) & KLAP_MAX_RECORDS;
      const unsigned int next = record + 1u + lane;
      // Where record `next` begins, seen from here. None begins before.
      unsigned int distance = kFar;
      if (next < records) {
        const unsigned long long away = first_block(queue->prefix, next) - at;
        if (away < kFar) distance = static_cast<unsigned int>(away);
      }
      // So many of them begin here or have no threads, so the last of these is the one to go on with.
      const unsigned int past = __popc(__ballot_sync(KLAP_ALL_LANES, distance == 0));
      if (past == 32u) {  // there may be many more
        record = find_record_as_warp(queue->prefix, records, at);
        continue;
      }
      const unsigned int to_next = __shfl_sync(KLAP_ALL_LANES, distance, past);
      const unsigned int whole = (end - at < to_next ? static_cast<unsigned int>(end - at) : to_next) / 32u;
      if (whole != 0) {
        // Whole steps of one child: most of all, where children are large.
        record += past;
        own = record;
        index = at - first_block(queue->prefix, record) + lane;
        steps = whole;
        at += 32u * whole;
      } else {
        const unsigned int known = __shfl_sync(KLAP_ALL_LANES, distance, 31);
        const unsigned int before = count_up_to(distance, lane);
        own += before;
        // A lane that is not below `known` may be in a record behind those that were examined.
        const bool runs = lane < known && at + lane < end;
        index = runs ? at + lane - first_block(queue->prefix, own) : 0;
        steps = runs ? 1 : 0;
        record += known < 32u ? 32u : __shfl_sync(KLAP_ALL_LANES, before, 31);
        at += known < 32u ? known : 32u;
      }
    }
    if (steps == 0) continue;
    const unsigned char* const current =
        queue->records + static_cast<unsigned long long>(own) * KLAP_RECORD_BYTES;
#ifndef KLAP_FUSED
    __klap_child_arguments(current + KLAP_ARGS_OFFSET);
#endif
#pragma unroll 1
    do {
      run_thread(current, index);
      index += by;
    } while (--steps != 0);
  }
  leave(queue, working(KLAP_GRID_ARGUMENT{queue->packed, queue->big}));
}
