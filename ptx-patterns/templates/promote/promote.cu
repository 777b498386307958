// The blocks of a promoted chain: each runs links of the chain until there are no more.
//
// A block takes the number of the next link. Running blocks give out the numbers. So a block that waits for
// an earlier link waits for a block that runs it, or will when it is done with an even earlier one. So the
// chain gets through with a single block, and late blocks do no harm. The chain's kind tells how a block
// learns that its link exists:
//  - KLAP_COUNTED: from the arguments of the link before, which it can compute for itself. In chains that
//    combine values (KLAP_LOOK_BACK, KLAP_PASSES) its first thread does so, which is the one that launches
//    there.
//  - KLAP_FAST: from a chain of their own, of arguments and conditions that are known without running a link.
//  - else: when the link before launches it, or does not.
// The whole body waits for the launch of the link before. If the body has a part that needs nothing of that
// link (KLAP_OVERLAPS, KLAP_PASSES, KLAP_LOOK_BACK), only the rest of it waits. Then the call stands there.
//
// With KLAP_LAUNCHES the chain has one block at first. Each link's block launches the next one's as soon as
// it knows that there is a next link (promote_launch.cu), to run one link. The argument about numbers still
// holds. A block takes its number when it has begun, so a launched block that does not run yet holds up no
// other. It does not matter whether CUDA lets it run beside the one that launched it or behind it, nor how
// few blocks there is room for. And every block gets a link. For each link that comes to be known to exist
// one number is taken, by a block launched for that or by one that could not launch it. So when number n is
// taken, n links behind the first have become known, each by the link before it, whose number was among the
// n. So link n is one of them. No block comes too late. The chain is at its end when no known link is left,
// which the block that ends the last link sees.
//
// With KLAP_BATCH, blocks of a chain that looks back take that many links at a time. A number is then that of
// all of them, and they publish one value. The body's marker runs the beginnings of all, side by side, then
// combines, then runs the rest of each. If links are missing, at the end of the chain, it begins the first
// one in place of them.
//
// Calls of undefined functions are markers. __klap_copy_arguments: stores the kernel's own parameters that
// are not the same for all links to an area of shared memory. __klap_link_condition: tells whether this
// thread makes the launch, computed from an area (that of the link before; with KLAP_LAUNCHES, the link's
// own). __klap_next_arguments: gives arguments of the next link that need no running, from one area to
// another. __klap_link_body: the body, with its parameters from the area of the link. All its `ret` lead
// behind it. __klap_launch_next: promote_launch.cu describes it.
//
// With KLAP_DOUBLE_BUFFERED the context is double-buffered: blocks end with their last link, and are counted
// out only if the number of links is asked for. Otherwise the last block makes the context ready for the next
// launch, which takes four trips to memory behind everything else.
//
// Constants: KLAP_AREA_BYTES; KLAP_SLOT_WORDS; KLAP_WORDS, for each word of arguments that is passed from
// link to link KLAP_WORD(its offset in the parameter block); KLAP_STEPS, for each argument that steps
// KLAP_STEP(offset, type, add or mul, by); with KLAP_FAST: KLAP_FAST_WORDS, as KLAP_WORDS; those of the kind;
// KLAP_LAUNCHES.
#include "common/queue.h"
#include "promote/promote_link.h"

extern "C" __device__ void __klap_copy_arguments(unsigned int area);
extern "C" __device__ unsigned int __klap_link_condition(unsigned int area);
extern "C" __device__ void __klap_next_arguments(unsigned int area, unsigned int next);
extern "C" __device__ void __klap_link_body(unsigned int link);
extern "C" __device__ void __klap_launch_next(unsigned int link, unsigned int is_new);

// Arguments that step: of link 0 as they come.
[[maybe_unused]] static __device__ __forceinline__ unsigned long long stepped_add(unsigned long long value,
                                                                                  unsigned long long by,
                                                                                  unsigned long long times) {
  return value + by * times;
}
[[maybe_unused]] static __device__ __forceinline__ unsigned long long stepped_mul(unsigned long long value,
                                                                                  unsigned long long by,
                                                                                  unsigned long long times) {
#pragma unroll 1
  for (; times != 0; times /= 2, by *= by) {
    if (times % 2 != 0) value *= by;
  }
  return value;
}

// Turns stepping arguments of a link into those of the link so many behind it.
static __device__ __forceinline__ void step(unsigned int area, unsigned long long times) {
#define KLAP_STEP(offset, type, operation, by)                          \
  {                                                                     \
    type* const value = shared_pointer<type>(area + (offset));          \
    *value = static_cast<type>(stepped_##operation(*value, by, times)); \
  }
  KLAP_STEPS
#undef KLAP_STEP
}

#ifdef KLAP_FAST
// The fast chain's words stand behind the others: the first says whether the link exists.
static __device__ __forceinline__ unsigned long long* fast_slot(const KlapLink* link,
                                                                unsigned long long number) {
  return slot_of(link, number) + KLAP_SLOT_WORDS;
}

static __device__ __forceinline__ bool await_fast(const KlapChain* chain, unsigned int link) {
  const unsigned long long number = link_at(link)->number;
  const unsigned long long* const slot = fast_slot(link_at(link), number);
  unsigned int pause = kShortestPause;
#pragma unroll 1
  for (unsigned int look = 1;; ++look) {
    const unsigned long long exists = load_relaxed(slot);
    bool is_there = is_marked(exists, number);
    [[maybe_unused]] unsigned int at = 1;
#define KLAP_WORD(offset)                                                      \
  {                                                                            \
    const unsigned long long word = load_relaxed(slot + at++);                 \
    is_there = is_there && is_marked(word, number);                            \
    *word_at(link + KLAP_LINK_AREA, offset) = static_cast<unsigned int>(word); \
  }
    KLAP_FAST_WORDS
#undef KLAP_WORD
    if (is_there) return static_cast<unsigned int>(exists) != 0;
    if (look % kLooksPerEnd == 0) {
      const unsigned long long end = load_relaxed(&chain->end);
      if (end != 0 && number >= end) return false;
    }
    pause_longer(pause);
  }
}

// For the leader: tells the next link whether it exists, and its arguments.
static __device__ __forceinline__ void announce_next(KlapChain* chain, unsigned int link, bool exists) {
  const unsigned long long next = link_at(link)->number + 1;
  unsigned long long* const slot = fast_slot(link_at(link), next);
  [[maybe_unused]] unsigned int at = 1;
#define KLAP_WORD(offset) store_relaxed(slot + at++, marked(next, *word_at(link + KLAP_LINK_NEXT, offset)));
  KLAP_FAST_WORDS
#undef KLAP_WORD
  store_relaxed(slot, marked(next, exists ? 1 : 0));
  if (!exists) store_relaxed(&chain->end, next);
}
#endif

// Where each link's block launches the next one's: so that it need not wait for its own to be done.
static __device__ __forceinline__ void launch_early([[maybe_unused]] unsigned int link,
                                                    [[maybe_unused]] bool exists) {
#ifdef KLAP_LAUNCHES
  if (is_leader() && exists) __klap_launch_next(link, 1);
#endif
}

#if defined(KLAP_LOOK_BACK) || defined(KLAP_PASSES)
#define KLAP_LEADER_KNOWS

// For the leader: the arguments of a link, counted from the launch's first, to the area of `link`. False if
// there is no such link.
static __device__ __forceinline__ bool find_arguments(unsigned int link, unsigned long long index) {
  const unsigned int area = link + KLAP_LINK_AREA;
  __klap_copy_arguments(area);
  if (index == 0) return true;
  step(area, index - 1);
  const bool exists = __klap_link_condition(area) != 0;
  step(area, 1);
  return exists;
}

// Tells this for a link that belongs to no block yet.
static __device__ __forceinline__ bool exists(unsigned int link, unsigned long long index) {
  link_at(link)->first = 0;
  link_at(link)->number = index;
  return find_arguments(link, index);
}
#endif

#ifdef KLAP_BATCH
// Finds the links that the block has now. The first numbers are one link each, for all blocks. Later numbers
// are several links each.
static __device__ __forceinline__ bool find_links(unsigned int link) {
  KlapLink* const at = link_at(link);
  if (is_leader()) {
    const unsigned long long before = at->number - at->first;
    const unsigned int alone = part_of(link, 0);
    if (before < gridDim.x) {
      at->index = before;
      at->exists = exists(alone, before) ? 1 : 0;
    } else {
      at->index = gridDim.x + (before - gridDim.x) * KLAP_BATCH;
      // One that exists has all others in front of it.
      unsigned int links = KLAP_BATCH;
#pragma unroll 1
      while (links != 0 && !exists(alone, at->index + links - 1)) --links;
      at->exists = links;
    }
  }
  __syncthreads();
  const unsigned int links = at->exists;
  if (at->index < gridDim.x) return links != 0;
#pragma unroll 1
  for (unsigned int i = linear_thread(); links != 0 && i < KLAP_BATCH; i += KLAP_THREADS) {
    const unsigned int area = part_of(link, i) + KLAP_LINK_AREA;
    __klap_copy_arguments(area);
    step(area, at->index + (i < links ? i : 0));
  }
  __syncthreads();
  return links != 0;
}
#endif

// Whether the block's link exists, for all threads; its arguments, as far as they are known, are in its area.
static __device__ __forceinline__ bool find_link(KlapChain* chain, unsigned int link) {
  const unsigned int area = link + KLAP_LINK_AREA;
  KlapLink* const at = link_at(link);
#if defined(KLAP_LAUNCHES) && defined(KLAP_COUNTED)
  // The block's link exists. The question is whether there is another one.
  if (is_leader()) {
    __klap_copy_arguments(area);
    step(area, at->number - at->first);
  }
  __syncthreads();
  launch_early(link, __syncthreads_or(static_cast<int>(__klap_link_condition(area))) != 0);
  return true;
#elif defined(KLAP_BATCH)
  return find_links(link);
#elif defined(KLAP_LEADER_KNOWS)
  if (is_leader()) at->exists = find_arguments(link, at->number - at->first) ? 1 : 0;
  __syncthreads();
  return at->exists != 0;
#elif defined(KLAP_COUNTED)
  // First as of the link before, then one step on.
  if (is_leader()) {
    const unsigned long long index = at->number - at->first;
    __klap_copy_arguments(area);
    step(area, index == 0 ? 0 : index - 1);
  }
  __syncthreads();
  const bool is_first = at->number == at->first;
  const bool exists = __syncthreads_or(static_cast<int>(__klap_link_condition(area))) != 0 || is_first;
  if (is_leader() && !is_first) step(area, 1);
  __syncthreads();
  return exists;
#elif defined(KLAP_FAST)
  if (is_leader()) {
    const unsigned long long index = at->number - at->first;
    __klap_copy_arguments(area);
    step(area, index);
    at->exists = index == 0 || await_fast(chain, link);
  }
  __syncthreads();
  if (at->exists == 0) return false;
  const bool goes_on = __syncthreads_or(static_cast<int>(__klap_link_condition(area))) != 0;
  if (is_leader()) {
    __klap_next_arguments(area, link + KLAP_LINK_NEXT);
    announce_next(chain, link, goes_on);
  }
  launch_early(link, goes_on);
  return true;
#else
  if (is_leader()) {
    at->launched = 0;
    if (at->number == at->first) __klap_copy_arguments(area);
    at->exists = at->number == at->first || await_link(chain, link);
  }
  __syncthreads();
  return at->exists != 0;
#endif
}

// Links that need all of the link before, and know already that they exist.
static __device__ __forceinline__ void await_all(const KlapChain* chain, unsigned int link) {
#if !defined(KLAP_OVERLAPS) && !defined(KLAP_PASSES) && !defined(KLAP_LOOK_BACK) && \
    (defined(KLAP_COUNTED) || defined(KLAP_FAST))
  if (is_leader() && link_at(link)->number != link_at(link)->first) await_link(chain, link);
  __syncthreads();
#endif
}

// Behind the body, for the leader: if the link made no launch, there is no next one.
static __device__ __forceinline__ void end_link(KlapChain* chain, const KlapLink* link) {
#if !defined(KLAP_COUNTED) && !defined(KLAP_FAST)
  if (link->launched == 0) store_relaxed(&chain->end, link->number + 1);
#endif
}

static __device__ __forceinline__ unsigned long long take(KlapChain* chain) {
  return add_global(&chain->taken, 1ull);
}

// Makes the context ready for the next launch, when all blocks of the last one that used this head are done.
// All values that it needs are read at once. Returns how many numbers that launch gave out.
static __device__ __forceinline__ unsigned long long make_ready(KlapChain* chain) {
  const unsigned long long taken = chain->taken;
  const unsigned long long first_before = chain->first;
  unsigned long long* const ring = chain->ring;
  unsigned long long first = taken;
#ifdef KLAP_LOOK_BACK
  const unsigned long long rings = (taken + KLAP_CHAIN_SLOTS - 1) / KLAP_CHAIN_SLOTS;
  first = rings * KLAP_CHAIN_SLOTS;
  for (unsigned int i = 0; i < 4; ++i) chain->done[i] = rings * KLAP_CHAIN_QUARTER;
#endif
  chain->taken = first;
  chain->first = first;
  chain->end = 0;
  chain->left = 0;
  chain->ahead = 0;
  if (first >> 30 != first_before >> 30) {
#pragma unroll 1
    for (unsigned int i = 0; i < KLAP_CHAIN_SLOTS * KLAP_SLOT_STRIDE; ++i) ring[i] = 0;
  }
#ifdef KLAP_PASSES
  for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i) ring[i] = marked(first, 0);
#endif
  return taken - first_before;
}

// One block, which most likely begins so late that it has no link in a short chain.
static __device__ __forceinline__ void make_other_ready([[maybe_unused]] KlapChain* chain) {
#ifdef KLAP_DOUBLE_BUFFERED
  if (blockIdx.x == gridDim.x - 1)
    make_ready(reinterpret_cast<KlapChain*>(reinterpret_cast<unsigned char*>(chain) + chain->other));
#endif
}

#if defined(KLAP_LEADER_KNOWS) && !defined(KLAP_LAUNCHES)
#ifdef KLAP_BATCH
static __device__ __forceinline__ unsigned int scratch_of(unsigned int link) { return part_of(link, 0); }
#else
static __device__ __forceinline__ unsigned int scratch_of(unsigned int link) { return link; }
#endif
#endif

// The blocks of so short a chain meet at the memory where they take numbers, and lose no time there.
enum : unsigned int { kFewBlocks = 64 };

// True if the chain has no more links than there are blocks before this one. Each of those runs one, so this
// block need not go to the chain's memory.
static __device__ __forceinline__ bool is_one_too_many([[maybe_unused]] unsigned int link) {
#if defined(KLAP_LEADER_KNOWS) && defined(KLAP_DOUBLE_BUFFERED)
  return blockIdx.x >= kFewBlocks && !exists(scratch_of(link), blockIdx.x);
#else
  return false;
#endif
}

// The block's first number. The memory is asked for all at once: a chain of few links has little else to do.
static __device__ __forceinline__ unsigned long long begin(KlapChain* chain, unsigned int link) {
  KlapLink* const at = link_at(link);
  if (is_one_too_many(link)) {
    make_other_ready(chain);
    at->goes_on = 0;
    at->first = 0;
    return blockIdx.x;  // there is no such link
  }
  const unsigned long long first = chain->first;
  unsigned long long* const ring = chain->ring;
  const unsigned long long number = take(chain);
#if defined(KLAP_LEADER_KNOWS) && !defined(KLAP_LAUNCHES)
  // If there is a block for each link, the second numbers of all would belong to no link.
  at->goes_on = exists(scratch_of(link), gridDim.x) ? 1 : 0;
#else
  at->goes_on = 1;
#endif
  at->first = first;
  at->ring = ring;
  make_other_ready(chain);
  return number;
}

// The first link is the program's own launch.
static __device__ __forceinline__ void report_links(KlapReport* report, unsigned long long links) {
  report_next(report, KLAP_REPORT_LINKS, links - 1);
}

#ifdef KLAP_LAUNCHES

// Called by the leader behind a link. The one that ends the last link makes the context ready for the next
// launch. The fences are as those of leave(), below. If links wait for a place, this one's is free.
static __device__ __forceinline__ void leave_link(KlapChain* chain, unsigned int link,
                                                  unsigned long long pool) {
  __threadfence();
  const unsigned int ahead = atomicSub(&chain->ahead, 1u);
  if (ahead == 0) {
    __threadfence();
    KlapReport* const report = chain->report;
    report_links(report, make_ready(chain));
  } else if (ahead >= pool) {
    __klap_launch_next(link, 0);
  }
}

extern "C" __global__ void __klap_promoted(KlapChain* chain, unsigned long long pool) {
  __shared__ alignas(16) unsigned char shared[KLAP_LINK_BYTES];
  const unsigned int link = static_cast<unsigned int>(__cvta_generic_to_shared(shared));
  KlapLink* const at = link_at(link);
  unsigned long long number = 0;  // in the leader
  if (is_leader()) {
    number = begin(chain, link);
    at->kept = 0;
    at->refused = 0;
    at->skips = number == at->first ? 1 : 0;
  }
#pragma unroll 1
  for (;;) {
    if (is_leader()) at->number = number;
    find_link(chain, link);
    await_all(chain, link);
    __klap_link_body(link);
    __syncthreads();
    if (is_leader()) {
      end_link(chain, at);
      leave_link(chain, link, pool);
      at->exists = at->kept;
      if (at->kept != 0) {
        --at->kept;
        number = take(chain);
      }
    }
    __syncthreads();
    if (at->exists == 0) return;
  }
}

#else

// Counts this block out, for one thread of it; returns how many links all have run if it is the last, else 0.
static __device__ __forceinline__ unsigned long long count_out(KlapChain* chain, unsigned long long links) {
  const unsigned long long left = add_global(&chain->left, links << 32 | 1u) + (links << 32 | 1u);
  return static_cast<unsigned int>(left) == gridDim.x ? left >> 32 : 0;
}

// Called by one thread of a block that has no more links. If the last block makes the context ready, the
// second fence acquires what the others released. So they have read the counters before these are set.
static __device__ __forceinline__ void leave(KlapChain* chain, const KlapLink* link) {
#ifdef KLAP_DOUBLE_BUFFERED
  if (link->report == nullptr) return;
  if (const unsigned long long all = count_out(chain, link->links)) report_links(link->report, all);
#else
  __threadfence();
  const unsigned long long all = count_out(chain, link->links);
  if (all == 0) return;
  __threadfence();
  make_ready(chain);
  report_links(link->report, all);
#endif
}

extern "C" __global__ void __klap_promoted(KlapChain* chain) {
  __shared__ alignas(16) unsigned char shared[KLAP_LINK_BYTES];
  const unsigned int link = static_cast<unsigned int>(__cvta_generic_to_shared(shared));
  KlapLink* const at = link_at(link);
  if (is_leader()) {
    KlapReport* const report = chain->report;
    at->number = begin(chain, link);
    at->report = report;
    at->links = 0;
    at->quarter = 0;
  }
#pragma unroll 1
  for (;;) {
    if (!find_link(chain, link)) break;
    await_all(chain, link);
    __klap_link_body(link);
    __syncthreads();
    if (is_leader()) {
      end_link(chain, at);
#ifdef KLAP_BATCH
      at->links += at->exists;
#else
      ++at->links;
#endif
      // Not sooner: a number that a busy block holds holds up all links behind it.
      if (at->goes_on != 0) at->number = take(chain);
    }
    if (at->goes_on == 0) break;
  }
  if (is_leader()) leave(chain, at);
}

#endif
