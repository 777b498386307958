// How the threads of a recording parent exit when the parent launches its children itself. Each is counted
// out, and the last one of its group launches all recorded children of the group as an exact grid (exact.cu).
// The group is the whole grid, or a few consecutive blocks of it (group.h).
//
// There are two functions (and others instead of the second if groups have several queues). __klap_exit() is
// spliced in front of every way out of the parent and says whether this thread is the last;
// __klap_launch_children() stands once at the parent's end and is reached by that thread alone. Threads are
// counted, not blocks: a block can lose threads to early returns long before the rest is done. A barrier
// could wait for threads that never come.
//
// A grid can have many more groups than CUDA takes launches that have not begun. A group whose launch is
// refused must not wait for room. Its block would keep its place on the GPU, and if such blocks took all
// places, no child could run. So it leaves its children to the last group of the grid, which alone may wait.
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the parent's own launch used.
//
// Constants: those of sizes.h; KLAP_CHILD_SHARED_BYTES, the child's dynamic shared memory where it does not
// differ; KLAP_RECORD_BYTES; those of record_grid.h; KLAP_ONCE as in exact.cu; KLAP_GROUP_BLOCKS where the
// grid is not the only group; KLAP_IN_ORDER where the thread launches the children of several queues, which
// come one queue after another.
#include "common/group.h"
#include "common/memory_order.h"
#include "common/record_grid.h"
#include "common/sequence.h"
#include "common/sizes.h"
#include "common/warp.h"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);

// The parent's grid is complete only when all its launches are. Children of one queue need no order among
// themselves, so one queue launches into the stream without any order. Children of several queues go into the
// thread's default stream, each queue behind the one before.
#ifdef KLAP_IN_ORDER
static constexpr unsigned long long kStream =
    0;  // of the block, or of the thread where the program was built so
#else
static constexpr unsigned long long kStream = 4;  // cudaStreamFireAndForget
#endif
static constexpr unsigned int kLargestGrid = 0x7fffffffu;
// A launch fails while others fill the pool of pending ones. Launches of other kernels get about a second.
// Launches of this grid's own groups get a minute: they fill the pool regularly and may all run long.
#ifdef KLAP_GROUP_BLOCKS
static constexpr int kAttempts = 60000;
#else
static constexpr int kAttempts = 1000;
#endif
static constexpr unsigned int kPauseNanoseconds = 1000000;

// Orders the writes of a group's threads before their counts, and their counts before their reads.
static __device__ __forceinline__ void fence_group() {
#if defined(KLAP_GROUP_BLOCKS) && KLAP_GROUP_BLOCKS == 1
  __threadfence_block();  // a launch takes along what its thread has seen of its block
#else
  __threadfence();
#endif
}

// Counts this thread out; 1 if it is the last of its group. The threads that leave together share one atomic.
// It releases their writes: __syncwarp passes those of the warp's lanes to their leader, and the fence passes
// the leader's view to the group. The last thread acquires what all others released.
extern "C" __device__ unsigned int __klap_exit(KlapQueue* queue) {
  const unsigned int mask = lanes_together();
  __syncwarp(mask);
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane != static_cast<unsigned int>(__ffs(mask)) - 1u) return 0;
  const unsigned int leaving = __popc(mask);
  const unsigned int group = own_group();
  KlapCounters* const counters = counters_of(queue, group);
  // At most KLAP_MAX_RECORDS: the host launches larger grids natively.
  const unsigned int threads = threads_of_group(group);
  fence_group();
  if (add_global(&counters->exited, leaving) + leaving != threads) return 0;
  fence_group();
  return 1;
}

// The records of a group.
struct Recorded {
  unsigned long long packed;
  unsigned int big;
  unsigned long long first;  // of the sequence that comes next: of the small children, then of the big ones
  unsigned int threads, shared_bytes;  // of the largest child, where they differ
};

static __device__ __forceinline__ bool try_launch(void* consumer, const KlapSequence& part,
                                                  const Recorded& recorded, unsigned int blocks) {
#ifdef KLAP_BLOCKS_DIFFER
  const dim3 block(recorded.threads);
#else
  const dim3 block(KLAP_CHILD_X, KLAP_CHILD_Y, KLAP_CHILD_Z);
#endif
#ifdef KLAP_SHARED_DIFFERS
  const unsigned int shared_bytes = recorded.shared_bytes;
#else
  const unsigned int shared_bytes = KLAP_CHILD_SHARED_BYTES;
#endif
  void* const buffer = __klap_get_buffer(consumer, dim3(blocks), block, shared_bytes);
  if (buffer == nullptr) return false;
  *static_cast<KlapSequence*>(buffer) = part;
  return __klap_device_launch(buffer, reinterpret_cast<void*>(kStream)) == 0;
}

// Launches the rest of a sequence, from part.first on. False if a launch was refused and this thread may not
// wait. If the device runtime keeps refusing, no thread can run these children any more. The program must
// then see an error rather than a result that lacks them.
static __device__ __forceinline__ bool launch_sequence(KlapQueue* queue, void* consumer, KlapSequence& part,
                                                       const Recorded& recorded, unsigned long long blocks,
                                                       bool may_wait) {
  int failures = 0;
#pragma unroll 1
  while (part.first < blocks) {
    const unsigned long long rest = blocks - part.first;
    const unsigned int grid = rest < kLargestGrid ? static_cast<unsigned int>(rest) : kLargestGrid;
    if (try_launch(consumer, part, recorded, grid)) {
      part.first += grid;
    } else if (!may_wait) {
      return false;
    } else if (++failures < kAttempts) {
      __nanosleep(kPauseNanoseconds);
    } else {
      report_failure(queue->report);
      __trap();
    }
  }
  return true;
}

// Numbers the children with records at the far end, which have no prefix yet. Each keeps the GPU busy for
// longer than a step of this loop takes. Returns how many blocks they have together. If some of them run
// already (`some_run`), these keep their prefix, which is being read.
static __device__ __forceinline__ unsigned long long number_big_children(const KlapQueue* queue,
                                                                         unsigned int begin, unsigned int end,
                                                                         bool some_run) {
  unsigned long long blocks = 0;
#pragma unroll 1
  for (unsigned int i = begin; i < end; ++i) {
    const uint4 grid =
        grid_of(queue->records + static_cast<unsigned long long>(i) * KLAP_RECORD_BYTES, false);
    if (!some_run) queue->prefix[i] = blocks;
    blocks += static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
  }
  return blocks;
}

// Launches a group's records. False if this thread may not wait for the room that this takes; the rest is
// then left in `recorded`.
static __device__ __forceinline__ bool launch_recorded(KlapQueue* queue, unsigned int group, void* consumer,
                                                       Recorded& recorded, bool may_wait) {
  const unsigned int slot = first_slot(group);
  KlapSequence part = {queue->records + static_cast<unsigned long long>(slot) * KLAP_RECORD_BYTES,
                       queue->prefix + slot, recorded.first,
                       static_cast<unsigned int>(recorded.packed) & KLAP_MAX_RECORDS};
#ifdef KLAP_ONCE
  part.once = once_of(queue, group);
#endif
  if (part.count != 0) {
    const bool done =
        launch_sequence(queue, consumer, part, recorded, recorded.packed >> KLAP_INDEX_BITS, may_wait);
    recorded.first = part.first;
    if (!done) return false;
    recorded.packed = 0;
    recorded.first = 0;
  }
  if (recorded.big == 0) return true;
  const unsigned int end = slot + slots_of(queue, group), begin = end - recorded.big;
  const unsigned long long blocks = number_big_children(queue, begin, end, recorded.first != 0);
  part = {queue->records + static_cast<unsigned long long>(begin) * KLAP_RECORD_BYTES, queue->prefix + begin,
          recorded.first, recorded.big};
#ifdef KLAP_ONCE
  part.once = once_of(queue, group);
#endif
  const bool done = launch_sequence(queue, consumer, part, recorded, blocks, may_wait);
  recorded.first = part.first;
  return done;
}

static __device__ __forceinline__ unsigned int children_in(const Recorded& recorded) {
  return (static_cast<unsigned int>(recorded.packed) & KLAP_MAX_RECORDS) + recorded.big;
}

// For the next parent.
static __device__ __forceinline__ void reset_sizes([[maybe_unused]] KlapCounters* counters) {
#ifdef KLAP_BLOCKS_DIFFER
  counters->threads = 0;
#endif
#ifdef KLAP_SHARED_DIFFERS
  counters->shared_bytes = 0;
#endif
}

#if defined(KLAP_GROUP_BLOCKS) && defined(KLAP_IN_ORDER)

// If each group has several queues, its launches must come in their order. Once the first launch is made, no
// other may be refused and come later by another thread. So a group that launches at all may wait for room.
// No more than a few blocks of a grid may keep their places to wait, so groups take turns. Groups that get no
// turn soon are left to the last group of the grid. The first queue counts the groups, their turns (`packed`)
// and those that wait.
//
// A turn has the group in its low half. Its high half tells how many groups wait behind it, or that it is the
// thread's own group.
enum : unsigned int { kMostTurns = 4, kLooks = 32, kLookPause = 1000, kOwnTurn = 0xfffffffeu };
enum : unsigned long long { kNoTurn = ~0ull };

// At once. Most of the device is for the children.
static __device__ __forceinline__ unsigned int turns() {
  unsigned int multiprocessors;
  asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  const unsigned int part = multiprocessors / 8u;
  return part < 1u ? 1u : part < kMostTurns ? part : kMostTurns;
}

static __device__ __forceinline__ unsigned long long turn_of(unsigned int group, unsigned int waiting) {
  return static_cast<unsigned long long>(waiting) << 32 | group;
}

// The turn of the group that comes last in the list of so many.
static __device__ __forceinline__ unsigned long long next_waiting(const KlapQueue* first,
                                                                  unsigned int waiting) {
  if (waiting == 0) return kNoTurn;
  return turn_of(first->groups[waiting - 1u].waiting, waiting - 1u);
}

// Counts the group out. The last one goes on with the groups that wait.
static __device__ __forceinline__ unsigned long long leave_as_group(KlapQueue* first) {
  __threadfence();
  if (add_global(&first->exited, 1u) + 1u != number_of_groups()) return kNoTurn;
  __threadfence();
  const unsigned int waiting = first->big;
  first->big = 0;
  first->exited = 0;
  return next_waiting(first, waiting);
}

// For the last thread of each group. Returns the turn that it has.
extern "C" __device__ unsigned long long __klap_first_turn(KlapQueue* first) {
  const unsigned int group = own_group();
  first->groups[group].exited = 0;
#pragma unroll 1
  for (unsigned int look = 0; look < kLooks; ++look) {
    if (add_global(&first->packed, 1ull) < turns()) return turn_of(group, kOwnTurn);
    add_global(&first->packed, ~0ull);
    __nanosleep(kLookPause);
  }
  first->groups[add_global(&first->big, 1u)].waiting = group;
  return leave_as_group(first);
}

// Launches the group's records in one of the queues, and removes them from it.
extern "C" __device__ void __klap_launch_turn(KlapQueue* queue, void* consumer, unsigned long long turn) {
  const unsigned int group = static_cast<unsigned int>(turn);
  KlapGroup* const own = queue->groups + group;
  Recorded recorded = {own->packed, own->big, 0, own->threads, own->shared_bytes};
  own->packed = 0;
  own->big = 0;
  reset_sizes(own);
  report_beside_others(queue->report, KLAP_REPORT_CHILDREN, children_in(recorded));
  launch_recorded(queue, group, consumer, recorded, true);
}

// When all queues of that turn are launched. Returns the next one, or that there is none.
extern "C" __device__ unsigned long long __klap_next_turn(KlapQueue* first, unsigned long long turn) {
  const unsigned int waiting = static_cast<unsigned int>(turn >> 32);
  if (waiting != kOwnTurn) return next_waiting(first, waiting);
  add_global(&first->packed, ~0ull);
  return leave_as_group(first);
}

#elif defined(KLAP_GROUP_BLOCKS)

// Called by the last thread of each group. It takes everything out of the group's part of the queue and
// launches it. The last of these threads also launches the children that others had to leave. Then all
// counters are zero again, for the next parent.
extern "C" __device__ void __klap_launch_children(KlapQueue* queue, void* consumer) {
  KlapGroup* const groups = queue->groups;
  unsigned int group = own_group(), waiting = 0;
  bool is_last = false;
#pragma unroll 1
  for (;;) {
    Recorded recorded = {groups[group].packed, groups[group].big, groups[group].first, groups[group].threads,
                         groups[group].shared_bytes};
    const unsigned int children = children_in(recorded);
    const bool done = launch_recorded(queue, group, consumer, recorded, is_last);
    groups[group].packed = done ? 0 : recorded.packed;
    groups[group].big = done ? 0 : recorded.big;
    groups[group].first = done ? 0 : recorded.first;
    if (done) reset_sizes(groups + group);
    if (!is_last) {
      groups[group].exited = 0;
      if (!done) groups[add_global(&queue->big, 1u)].waiting = group;
      report_beside_others(queue->report, KLAP_REPORT_CHILDREN, children);
      __threadfence();
      if (add_global(&queue->exited, 1u) + 1u != number_of_groups()) return;
      __threadfence();
      is_last = true;
      waiting = queue->big;
      queue->big = 0;
      queue->exited = 0;
    }
    if (waiting == 0) return;
    group = groups[--waiting].waiting;
  }
}

#else

// For the last thread of the grid: takes everything out of the queue, which is then empty for the next
// parent, and launches it.
extern "C" __device__ void __klap_launch_children(KlapQueue* queue, void* consumer) {
  Recorded recorded = {exchange_global(&queue->packed, 0ull), exchange_global(&queue->big, 0u), 0,
                       queue->threads, queue->shared_bytes};
  queue->exited = 0;
  reset_sizes(queue);
  report_next(queue->report, KLAP_REPORT_CHILDREN, children_in(recorded));
  launch_recorded(queue, 0, consumer, recorded, true);
}

#endif
