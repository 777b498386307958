// Barriers of a child whose threads may leave before others meet, and the end of its block, in a consumer.
//
// In the child, a barrier does not wait for threads that have ended. Here they go on to the end of the
// child's block instead, and must not hold up those that stay.
//
// Where whole warps leave (KLAP_WARPS_LEAVE), all the child's barriers are reductions that say "somebody
// stays", and who has left comes to the same barrier to say "not me" until nobody stays any more. So each
// barrier of the child lets go when all who stay have arrived, as in the child itself, and the last one of
// all is where its block ends for everybody: what it shared may be written again. All of it is one hardware
// barrier, since barriers that reduce must not be mixed with others.
//
// Where any thread leaves (KLAP_THREADS_LEAVE), that would not do: the hardware's barrier waits for a warp
// until all its lanes are at it, and those that have left may be kept at the place where the warp is to come
// together again, which is the end of the child's block. So the barrier is made of a word in shared memory,
// and nobody waits for those that have left: they count themselves out, by one instruction that comes before
// the branch by which they leave. Lanes that arrive together are counted together; who finds that all have
// arrived begins the next round. The end of the block is the hardware's again.
//
// The word holds, from the top: the number of the round, how many stay, how many of them have still to
// arrive. A block has up to 1024 threads. Nobody waits through more than one round, so that the number may
// wrap.
#ifndef KLAP_EXITS_H
#define KLAP_EXITS_H

// Where one block runs the children of several kernels, each is of one of these kinds, and this end suits
// all.
static __device__ __forceinline__ void await_all() {
#ifdef KLAP_WARPS_LEAVE
  while (__syncthreads_or(0) != 0) {
  }
#else
  __syncthreads();
#endif
}

#ifndef KLAP_THREADS_LEAVE

#define KLAP_MEETING_WORD(name) unsigned int name
#define KLAP_MEETING_PARAMETERS
#define KLAP_MEETING_ARGUMENTS(word)

static __device__ __forceinline__ void begin_child_blocks(unsigned int&) {}

static __device__ __forceinline__ void end_child_block(unsigned int&) { await_all(); }

#else

// For the kernel to declare. Its child's body is told where it is, and what to add to it to leave.
#define KLAP_MEETING_WORD(name) __shared__ unsigned int name
#define KLAP_MEETING_PARAMETERS , unsigned int meeting, unsigned int leaving
#define KLAP_MEETING_ARGUMENTS(word) \
  , static_cast<unsigned int>(__cvta_generic_to_shared(&(word))), 0u - kOneStays

enum : unsigned int {
  kCountBits = 11,
  kCount = (1u << kCountBits) - 1u,
  kOneRound = 1u << 2 * kCountBits,
  kOneStays = (1u << kCountBits) + 1u,  // and has still to arrive
};
enum : unsigned int { kMeetingPause = 20 };  // nanoseconds

static __device__ __forceinline__ void begin_child_blocks(unsigned int& word) {
  if (threadIdx.x == 0) word = blockDim.x * kOneStays;
  __syncthreads();
}

// Behind the first barrier nobody is in the child any more, behind the second one all may be.
static __device__ __forceinline__ void end_child_block(unsigned int& word) {
  await_all();
  begin_child_blocks(word);
}

static __device__ __forceinline__ unsigned int load_acquire_shared(unsigned int address) {
  unsigned int value;
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

static __device__ __forceinline__ unsigned int subtract_shared(unsigned int address, unsigned int value) {
  unsigned int before;
  asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "r"(address), "r"(0u - value)
               : "memory");
  return before - value;
}

static __device__ __forceinline__ void exchange_if_shared(unsigned int address, unsigned int expected,
                                                          unsigned int value) {
  [[maybe_unused]] unsigned int before;
  asm volatile("atom.acq_rel.cta.shared.cas.b32 %0, [%1], %2, %3;"
               : "=r"(before)
               : "r"(address), "r"(expected), "r"(value)
               : "memory");
}

// A barrier of the child; `address` is that of the word, in the shared window. One lane arrives and waits for
// all that are here.
extern "C" __device__ void __klap_meet(unsigned int address) {
  const unsigned int together = __activemask();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  __syncwarp(together);  // what the others wrote comes before the arrival
  if ((together & ((1u << lane) - 1u)) == 0) {
    unsigned int seen = subtract_shared(address, __popc(together));
    const unsigned int round = seen / kOneRound;
    while (seen / kOneRound == round) {
      if ((seen & kCount) == 0) {
        const unsigned int stay = seen >> kCountBits & kCount;
        exchange_if_shared(address, seen, (round + 1u) * kOneRound + stay * kOneStays);
      } else {
        __nanosleep(kMeetingPause);
      }
      seen = load_acquire_shared(address);
    }
  }
  __syncwarp(together);
}

#endif  // KLAP_THREADS_LEAVE

#endif
