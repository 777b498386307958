// A recording parent runs this at its launch sites if blocks or dynamic shared memory differ between
// launches.
//
// It works as record.cu, with one more answer. No address means that CUDA may refuse the launch, or that the
// child asks for more than its common launch with other children can give it. Then the program's own launch
// runs, with its native effects and error codes. So the device runtime decides which launches it refuses with
// which code, whatever the child's launch bounds and the program's attributes are.
//
// Constants: those of record.cu, but records are never packed; KLAP_MOST_THREADS and KLAP_SHARED_ROOM, the
// largest child that is recorded; KLAP_KEEP_THREADS and KLAP_KEEP_SHARED if the launching code must know the
// largest block and the most shared memory; KLAP_IN_WARPS if not whole blocks but their warps are counted and
// shared out.
#include "aggregate/record.cu"
#include "common/sizes.h"

// The largest value that a lane of `mask` has; none has more than so many bits.
template <int kBits>
static __device__ __forceinline__ unsigned int largest(unsigned int value, unsigned int mask,
                                                       unsigned int lane) {
  unsigned int rest = mask, found = 0;
#pragma unroll
  for (int bit = kBits - 1; bit >= 0; --bit) {
    const unsigned int have = __ballot_sync(mask, (value >> bit & rest >> lane & 1u) != 0);
    if (have == 0) continue;
    rest = have;
    found |= 1u << bit;
  }
  return found;
}

// For the converged lanes of a warp, one of which says it for all. Ordered like everything that is recorded:
// before the thread is counted out.
static __device__ __forceinline__ void keep_largest(KlapCounters* counters, unsigned int threads,
                                                    unsigned int shared_bytes) {
  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const bool is_last = lane == 31u - __clz(mask);
#ifdef KLAP_KEEP_THREADS
  const unsigned int most_threads = largest<11>(threads, mask, lane);
  if (is_last) atomicMax(&counters->threads, most_threads);
#endif
#ifdef KLAP_KEEP_SHARED
  const unsigned int most_bytes = largest<16>(shared_bytes, mask, lane);
  if (is_last) atomicMax(&counters->shared_bytes, most_bytes);
#endif
}
static_assert(KLAP_MOST_THREADS < 1 << 11 && KLAP_SHARED_ROOM < 1 << 16, "more bits than are compared");

// Where to store the child's arguments; 0: the launch is the program's own.
extern "C" __device__ unsigned long long __klap_record_if_small(KlapQueue* queue, unsigned int grid_x,
                                                                unsigned int grid_y, unsigned int grid_z,
                                                                unsigned int block_x, unsigned int block_y,
                                                                unsigned int block_z,
                                                                unsigned int shared_bytes
#ifdef KLAP_BOUND
                                                                ,
                                                                KLAP_BOUND bound
#endif
) {
  if (grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u) return 0;
  if (block_x - 1u >= 1024u || block_y - 1u >= 1024u || block_z - 1u >= 64u) return 0;
  const unsigned int threads = block_x * block_y * block_z;
  if (threads > KLAP_MOST_THREADS || shared_bytes > KLAP_SHARED_ROOM) return 0;

  const unsigned int group = own_group();
  KlapCounters* const counters = counters_of(queue, group);
  keep_largest(counters, threads, shared_bytes);
  unsigned long long counted = static_cast<unsigned long long>(grid_x) * grid_y * grid_z;
#ifdef KLAP_IN_WARPS
  counted *= (threads + 31u) / 32u;
#elif defined(KLAP_BOUND)
  counted = threads_below(bound, counted * threads);
#elif defined(KLAP_FLAT)
  counted *= threads;
#endif
  unsigned int index = first_slot(group);
  if (counted >= big_from(queue)) {
    index += slots_of(queue, group) - 1u - add_global(&counters->big, 1u);
  } else {
    unsigned long long prefix;
    index += append(counters, static_cast<unsigned int>(counted), &prefix);
    queue->prefix[index] = prefix;
  }
  unsigned char* const record = queue->records + static_cast<unsigned long long>(index) * KLAP_RECORD_BYTES;
  *reinterpret_cast<uint4*>(record) =
      make_uint4(grid_x, grid_y, grid_z, block_word(block_x, block_y, block_z));
  return reinterpret_cast<unsigned long long>(record + KLAP_ARGS_OFFSET);
}
