// A link of a promoted chain runs this in its body (promote.cu): where it begins to need the results of
// earlier links, and where it launched the next.
//
// In a chain, __klap_link_acquire() waits for the link before and __klap_link_release() lets the next one go
// on. If each link only combines a value of its own with the value that it passes on, one function replaces
// both, __klap_link_combine(), in one of two ways:
//  - KLAP_PASSES: the leader waits, combines and lets the next link go on before its block begins to write. A
//    release between the two would take longer than all the rest, as it waits for writes of other blocks on
//    the same multiprocessor. So the fence stands in front of the wait. Links pass on their values by atomic
//    exchanges of the same words. Each exchange continues the release sequences of the ones before. So the
//    thread that acquires the last one acquires what all links released.
//  - KLAP_LOOK_BACK: no hop from link to link at all. Every link publishes its value without waiting. It
//    combines the values of the links before it, back to one that has published the combination up to and
//    including itself (decoupled look-back, Merrill and Garland). Hundreds of short links run at once, so
//    several warps look, at a window of slots each.
//
// Memory that the next link may overwrite must have been read. Barriers order the other threads' reads before
// the fence of the releasing thread, which makes them part of the release.
//
// All functions but the release are called by all threads of the block.
//
// Constants: those of promote.cu; if values are combined, KLAP_THREADS and KLAP_CARRIES, for each argument
// KLAP_CARRY(its offset, the number of its first word in a slot, its operation).
#include "promote/promote_link.h"

#if !defined(KLAP_LOOK_BACK) && !defined(KLAP_PASSES)

extern "C" __device__ void __klap_link_acquire(KlapChain* chain, unsigned int link) {
  if (is_leader() && link_at(link)->number != link_at(link)->first) await_link(chain, link);
  __syncthreads();
}

extern "C" __device__ void __klap_link_release(KlapChain* chain, unsigned int link) {
  const unsigned long long next = link_at(link)->number + 1;
  unsigned long long* const slot = slot_of(link_at(link), next);
  fence();
  [[maybe_unused]] unsigned int at = 0;
#define KLAP_WORD(offset) store_relaxed(slot + at++, marked(next, *word_at(link + KLAP_LINK_NEXT, offset)));
  KLAP_WORDS
#undef KLAP_WORD
  if (kWords == 0) store_relaxed(slot, marked(next, 0));
  link_at(link)->launched = 1;
}

#else

// The operations, with the value that changes nothing. That of a floating-point minimum or maximum is no
// number: the other operand is the result.
#define KLAP_OPERATION(name, Value, nothing, expression)                                     \
  struct name {                                                                              \
    using Type = Value;                                                                      \
    static __device__ __forceinline__ Value none() { return nothing; }                       \
    static __device__ __forceinline__ Value combine(Value a, Value b) { return expression; } \
  };
KLAP_OPERATION(add_32, unsigned int, 0u, a + b)
KLAP_OPERATION(add_64, unsigned long long, 0ull, a + b)
KLAP_OPERATION(and_32, unsigned int, ~0u, a& b)
KLAP_OPERATION(and_64, unsigned long long, ~0ull, a& b)
KLAP_OPERATION(or_32, unsigned int, 0u, a | b)
KLAP_OPERATION(or_64, unsigned long long, 0ull, a | b)
KLAP_OPERATION(xor_32, unsigned int, 0u, a ^ b)
KLAP_OPERATION(xor_64, unsigned long long, 0ull, a ^ b)
KLAP_OPERATION(min_u32, unsigned int, ~0u, a < b ? a : b)
KLAP_OPERATION(max_u32, unsigned int, 0u, a > b ? a : b)
KLAP_OPERATION(min_u64, unsigned long long, ~0ull, a < b ? a : b)
KLAP_OPERATION(max_u64, unsigned long long, 0ull, a > b ? a : b)
KLAP_OPERATION(min_s32, int, 0x7fffffff, a < b ? a : b)
KLAP_OPERATION(max_s32, int, -0x7fffffff - 1, a > b ? a : b)
KLAP_OPERATION(min_s64, long long, 0x7fffffffffffffffll, a < b ? a : b)
KLAP_OPERATION(max_s64, long long, -0x7fffffffffffffffll - 1, a > b ? a : b)
KLAP_OPERATION(min_f32, float, __int_as_float(0x7fffffff), fminf(a, b))
KLAP_OPERATION(max_f32, float, __int_as_float(0x7fffffff), fmaxf(a, b))
KLAP_OPERATION(min_f64, double, __longlong_as_double(0x7fffffffffffffffll), fmin(a, b))
KLAP_OPERATION(max_f64, double, __longlong_as_double(0x7fffffffffffffffll), fmax(a, b))

// The words that a link's slot holds, or is to hold, without their marks.
struct Carried {
  unsigned int word[KLAP_SLOT_WORDS];
};
template <class Operation>
static __device__ __forceinline__ typename Operation::Type value_of(const Carried& carried, unsigned int at) {
  if constexpr (sizeof(typename Operation::Type) == 8) {
    const unsigned long long bits =
        static_cast<unsigned long long>(carried.word[at + 1]) << 32 | carried.word[at];
    typename Operation::Type value;
    memcpy(&value, &bits, 8);
    return value;
  } else {
    typename Operation::Type value;
    memcpy(&value, &carried.word[at], 4);
    return value;
  }
}
template <class Type>
static __device__ __forceinline__ void set_value(Carried& carried, unsigned int at, Type value) {
  if constexpr (sizeof(Type) == 8) {
    unsigned long long bits;
    memcpy(&bits, &value, 8);
    carried.word[at] = static_cast<unsigned int>(bits);
    carried.word[at + 1] = static_cast<unsigned int>(bits >> 32);
  } else {
    memcpy(&carried.word[at], &value, 4);
  }
}

static __device__ __forceinline__ Carried combined(const Carried& a, const Carried& b) {
  Carried out = {};
#define KLAP_CARRY(offset, at, operation) \
  set_value(out, at, operation::combine(value_of<operation>(a, at), value_of<operation>(b, at)));
  KLAP_CARRIES
#undef KLAP_CARRY
  return out;
}
static __device__ __forceinline__ Carried in_area(unsigned int area) {
  Carried out = {};
#define KLAP_CARRY(offset, at, operation) \
  set_value(out, at, *shared_pointer<typename operation::Type>(area + (offset)));
  KLAP_CARRIES
#undef KLAP_CARRY
  return out;
}
static __device__ __forceinline__ void to_area(unsigned int area, const Carried& carried) {
#define KLAP_CARRY(offset, at, operation) \
  *shared_pointer<typename operation::Type>(area + (offset)) = value_of<operation>(carried, at);
  KLAP_CARRIES
#undef KLAP_CARRY
}

#ifdef KLAP_PASSES

// Waits for the link's turn. Links that are far from it would only disturb the others' looks: all look at the
// same words. Pauses are shorter than a link takes, so that no link sleeps through its turn.
enum : unsigned int { kPausePerLink = 100, kLongestWait = 20000, kAwake = 4 };

static __device__ __forceinline__ Carried await_turn(const KlapLink* link, unsigned long long number) {
  Carried out = {};
#pragma unroll 1
  for (;;) {
    bool is_there = true;
    unsigned int mark = 0;
#pragma unroll
    for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i) {
      const unsigned long long word = load_acquire(turn_of(link) + i);
      is_there = is_there && is_marked(word, number);
      mark = static_cast<unsigned int>(word >> 32);
      out.word[i] = static_cast<unsigned int>(word);
    }
    if (is_there) return out;
    const unsigned int ahead = static_cast<unsigned int>(number + 1) - mark;
    if (ahead > kAwake)
      __nanosleep(ahead < kLongestWait / kPausePerLink ? ahead * kPausePerLink : kLongestWait);
  }
}

extern "C" __device__ void __klap_link_combine(KlapChain*, unsigned int link) {
  KlapLink* const at = link_at(link);
  __syncthreads();
  if (is_leader()) {
    const unsigned long long number = at->number;
    const Carried own = in_area(link + KLAP_LINK_VALUES);
    fence();
    const Carried before = number == at->first ? in_area(link + KLAP_LINK_AREA) : await_turn(at, number);
    const Carried next = combined(before, own);
#pragma unroll
    for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i)
      exchange_relaxed(turn_of(at) + i, marked(number + 1, next.word[i]));
    to_area(link + KLAP_LINK_AREA, before);
  }
  __syncthreads();
}

#else

// The lanes of a window, a power of two; and how many windows are looked at together, by a warp each.
static __device__ constexpr unsigned int lanes_of(unsigned int threads) {
  unsigned int lanes = 1;
  while (lanes < 32 && lanes * 2 <= threads) lanes *= 2;
  return lanes;
}
enum : unsigned int {
  kLanes = lanes_of(KLAP_THREADS),
  kAllLanes = kLanes == 32 ? ~0u : (1u << kLanes) - 1u,
  // More windows, or looks again sooner, keep the memory from links that have something to say.
  kWindows = KLAP_THREADS < 64 ? 1 : 2,
  kShortestLook = 256,  // nanoseconds
  kLongestLook = 512,
};

static __device__ __forceinline__ Carried nothing() {
  Carried out = {};
#define KLAP_CARRY(offset, at, operation) set_value(out, at, operation::none());
  KLAP_CARRIES
#undef KLAP_CARRY
  return out;
}
static __device__ __forceinline__ Carried of_all_lanes(Carried carried) {
#pragma unroll
  for (unsigned int distance = kLanes / 2; distance != 0; distance /= 2) {
    Carried other = {};
#pragma unroll
    for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i)
      other.word[i] = __shfl_xor_sync(kAllLanes, carried.word[i], distance);
    carried = combined(carried, other);
  }
  return carried;
}

// A slot's marks in a look-back: the low bit says that the words are combined with those of all links before.
static __device__ __forceinline__ unsigned int mark_of(unsigned long long number, bool is_whole) {
  return static_cast<unsigned int>(number + 1) << 1 | (is_whole ? 1u : 0u);
}

static __device__ __forceinline__ void publish(const KlapLink* link, unsigned long long number,
                                               const Carried& carried, bool is_whole) {
  unsigned long long* const slot = slot_of(link, number);
  const unsigned long long mark = static_cast<unsigned long long>(mark_of(number, is_whole)) << 32;
#pragma unroll
  for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i) store_relaxed(slot + i, mark | carried.word[i]);
}

// The content of an earlier link's slot: nothing yet; that link's own value; its value combined with all
// before it; or a later link's. The latter means that the looking link was held up too long.
enum Found : unsigned int { kNothing, kOwn, kWhole, kLater };

static __device__ __forceinline__ Found look_at(const KlapLink* link, unsigned long long number,
                                                Carried& carried) {
  const unsigned long long* const slot = slot_of(link, number);
  unsigned int mark = 0;
  bool is_torn = false;
#pragma unroll
  for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i) {
    const unsigned long long word = load_acquire(slot + i);
    const unsigned int of_word = static_cast<unsigned int>(word >> 32);
    if (i == 0) mark = of_word;
    is_torn = is_torn || of_word != mark;
    carried.word[i] = static_cast<unsigned int>(word);
  }
  if (is_torn) return kNothing;
  // How far the slot's link lies behind the one looked for, modulo 2^31.
  const unsigned int behind = ((mark >> 1) - static_cast<unsigned int>(number + 1)) & 0x7fffffffu;
  if (behind == 0) return mark % 2 != 0 ? kWhole : kOwn;
  return behind < 0x40000000u ? kLater : kNothing;
}

// Called by a warp: combines the values that the links of a window pass on. These are the links before link
// `end`, back to the first that is whole. kWhole if there is one, kOwn if not, kLater if some link's slot is
// gone. Waits for links that have yet to publish. The launch's first link is whole: no window that is needed
// reaches beyond it.
static __device__ __forceinline__ Found look_at_window(const KlapLink* link, unsigned long long first,
                                                       unsigned long long end, Carried& sum) {
  const unsigned int lane = linear_thread() % 32;
  const bool is_link = end > first + lane;
  unsigned int pause = kShortestLook;
#pragma unroll 1
  for (;;) {
    Found found = look_at(link, end - 1 - lane, sum);
    if (!is_link) found = kNothing;
    const unsigned int whole = __ballot_sync(kAllLanes, found == kWhole);
    const unsigned int ready = __ballot_sync(kAllLanes, found == kWhole || found == kOwn);
    const unsigned int later = __ballot_sync(kAllLanes, found == kLater);
    const unsigned int needed = whole == 0 ? static_cast<unsigned int>(kAllLanes) : whole ^ (whole - 1);
    if ((later & needed) != 0) return kLater;
    if ((ready & needed) == needed) {
      if ((needed >> lane & 1u) == 0) sum = nothing();
      return whole != 0 ? kWhole : kOwn;
    }
    __nanosleep(pause);
    if (pause < kLongestLook) pause *= 2;
  }
}

struct Window {
  unsigned int found;
  Carried sum;
};

// The combined values that all links before `number` pass on, for all threads. `number` is not the first
// link.
static __device__ __forceinline__ Carried look_back(unsigned int link, unsigned long long first,
                                                    unsigned long long number) {
  Window* const windows = shared_pointer<Window>(link + KLAP_LINK_WINDOWS);
  const unsigned int warp = linear_thread() / 32;
  Carried sum = nothing();
  unsigned long long end = number;  // links from here on are in the sum
#pragma unroll 1
  for (;;) {
    if (warp < kWindows && linear_thread() % 32 < kLanes) {
      Carried carried = nothing();
      Found found = kOwn;
      if (end > first + warp * kLanes)
        found = look_at_window(link_at(link), first, end - warp * kLanes, carried);
      carried = of_all_lanes(carried);
      if (linear_thread() % 32 == 0) windows[warp] = {found, carried};
    }
    __syncthreads();
    unsigned int found = kOwn;
#pragma unroll 1
    for (unsigned int i = 0; i < kWindows && found == kOwn; ++i) {
      found = windows[i].found;
      sum = combined(sum, windows[i].sum);
    }
    if (found == kWhole) return sum;
    __syncthreads();  // the windows are looked at again
    end = found == kLater ? number : end - kWindows * kLanes;
    if (found == kLater) sum = nothing();
  }
}

static __device__ __forceinline__ void await_quarter(const KlapChain* chain, unsigned long long quarter) {
  const unsigned long long done = (quarter / 4 + 1) * KLAP_CHAIN_QUARTER;
  unsigned int pause = kShortestPause;
#pragma unroll 1
  while (load_acquire(&chain->done[quarter % 4]) < done) pause_longer(pause);
}

// For the leader: waits until the link's slot may be written (promote.h).
static __device__ __forceinline__ void await_slot(const KlapChain* chain, KlapLink* link) {
  const unsigned long long quarter = link->number / KLAP_CHAIN_QUARTER;
  const unsigned long long before = quarter - link->first / KLAP_CHAIN_QUARTER;  // quarters of this launch
  if (before < 3 || link->quarter == quarter) return;
  await_quarter(chain, quarter - 3);
  if (before > 3) await_quarter(chain, quarter - 4);
  link->quarter = quarter;
}

// For the leader: the value of a block's links is that of all of them.
static __device__ __forceinline__ void combine_parts([[maybe_unused]] unsigned int link) {
#ifdef KLAP_BATCH
  if (!is_leader()) return;
  const KlapLink* const at = link_at(link);
  Carried own = in_area(part_of(link, 0) + KLAP_LINK_VALUES);
  if (at->exists == 1) {
    to_area(link + KLAP_LINK_VALUES, own);
    // The chain's first link has the program's values, and is taken alone.
    if (at->number == at->first) to_area(link + KLAP_LINK_AREA, in_area(part_of(link, 0) + KLAP_LINK_AREA));
    return;
  }
  // Missing links have values, too, those of the first one. No link behind them needs the sum.
#pragma unroll
  for (unsigned int i = 1; i < KLAP_BATCH; ++i)
    own = combined(own, in_area(part_of(link, i) + KLAP_LINK_VALUES));
  to_area(link + KLAP_LINK_VALUES, own);
#endif
}

// Called by the leader: gives each of the parts the value that the links before it pass on. (The chain's
// first link is taken alone, and has it.)
static __device__ __forceinline__ void tell_parts([[maybe_unused]] unsigned int link) {
#ifdef KLAP_BATCH
  Carried before = in_area(link + KLAP_LINK_AREA);
  if (link_at(link)->exists == 1) {
    to_area(part_of(link, 0) + KLAP_LINK_AREA, before);
    return;
  }
#pragma unroll
  for (unsigned int i = 0; i < KLAP_BATCH; ++i) {  // values of parts that do not exist are never read
    to_area(part_of(link, i) + KLAP_LINK_AREA, before);
    before = combined(before, in_area(part_of(link, i) + KLAP_LINK_VALUES));
  }
#endif
}

extern "C" __device__ void __klap_link_combine(KlapChain* chain, unsigned int link) {
  KlapLink* const at = link_at(link);
  const unsigned long long number = at->number, first = at->first;
  const bool is_first = number == first;
  combine_parts(link);
  __syncthreads();
  const Carried own = in_area(link + KLAP_LINK_VALUES);
  if (is_leader()) {
    await_slot(chain, at);
    fence();
    publish(at, number, is_first ? combined(in_area(link + KLAP_LINK_AREA), own) : own, is_first);
  }
  Carried before = {};
  if (!is_first) {
    before = look_back(link, first, number);
    if (is_leader()) {
      to_area(link + KLAP_LINK_AREA, before);
      tell_parts(link);
    }
    __syncthreads();
  }
  if (is_leader()) {
    // The threads' looks are over: slots that they read may be written again.
    fence();
    if (!is_first) publish(at, number, combined(before, own), true);
    add_global(&chain->done[number / KLAP_CHAIN_QUARTER % 4], 1ull);
  }
}

#endif
#endif
