// What a link of a promoted chain does in its body (promote.cu): where it comes to need what earlier links
// did, and where it launched the next.
//
// In a chain, __klap_link_acquire() waits for the link before and __klap_link_release() lets the next one go
// on. That is a hop for each link, however little is passed on. Where each link only adds its own value to
// what it passes on, __klap_link_look_back() stands for both: every link publishes its value without waiting,
// and a warp combines the values of the links before it, as far back as one that has published the
// combination up to and including itself (decoupled look-back, Merrill and Garland).
//
// What the next link may overwrite must have been read. The fences by all threads complete their loads before
// the barrier; the leader's, behind it, makes what the others did part of what it releases.
//
// All functions but the release are called by all threads of the block.
//
// Constants: those of promote.cu; KLAP_THREADS; with KLAP_LOOK_BACK: KLAP_CARRIES, for each argument
// KLAP_CARRY(its offset, the number of its first word in a slot, its operation).
#include "promote_link.h"

#ifndef KLAP_LOOK_BACK

extern "C" __device__ void __klap_link_acquire(KlapChain* chain, unsigned int link) {
  fence();
  if (is_leader() && link_at(link)->number != link_at(link)->first) await_link(chain, link);
  __syncthreads();
}

extern "C" __device__ void __klap_link_release(KlapChain* chain, unsigned int link) {
  const unsigned long long next = link_at(link)->number + 1;
  unsigned long long* const slot = slot_of(chain, next);
  fence();
  unsigned int at = 0;
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

// The lanes that look back: a power of two of the first warp.
constexpr unsigned int lanes_of(unsigned int threads) {
  unsigned int lanes = 1;
  while (lanes < 32 && lanes * 2 <= threads) lanes *= 2;
  return lanes;
}
enum : unsigned int { kLanes = lanes_of(KLAP_THREADS) };
enum : unsigned int { kAllLanes = kLanes == 32 ? ~0u : (1u << kLanes) - 1u };

static __device__ __forceinline__ unsigned int linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

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

static __device__ __forceinline__ Carried nothing() {
  Carried out = {};
#define KLAP_CARRY(offset, at, operation) set_value(out, at, operation::none());
  KLAP_CARRIES
#undef KLAP_CARRY
  return out;
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

static __device__ __forceinline__ void publish(const KlapChain* chain, unsigned long long number,
                                               const Carried& carried, bool is_whole) {
  unsigned long long* const slot = slot_of(chain, number);
  const unsigned long long mark = static_cast<unsigned long long>(mark_of(number, is_whole)) << 32;
#pragma unroll
  for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i) store_relaxed(slot + i, mark | carried.word[i]);
}

// What a lane finds in the slot of a link before: nothing yet; that link's own value; combined with all
// before it; or a later link's, by which the link was held up too long.
enum class Found { Nothing, Own, Whole, Later };

static __device__ __forceinline__ Found look_at(const KlapChain* chain, unsigned long long number,
                                                Carried& carried) {
  const unsigned long long* const slot = slot_of(chain, number);
  unsigned int mark = 0;
  bool is_torn = false;
#pragma unroll
  for (unsigned int i = 0; i < KLAP_SLOT_WORDS; ++i) {
    const unsigned long long word = load_relaxed(slot + i);
    const unsigned int of_word = static_cast<unsigned int>(word >> 32);
    if (i == 0) mark = of_word;
    is_torn = is_torn || of_word != mark;
    carried.word[i] = static_cast<unsigned int>(word);
  }
  if (is_torn) return Found::Nothing;
  // How far the slot's link lies behind the one looked for, modulo 2^31.
  const unsigned int behind = ((mark >> 1) - static_cast<unsigned int>(number + 1)) & 0x7fffffffu;
  if (behind == 0) return mark % 2 != 0 ? Found::Whole : Found::Own;
  return behind < 0x40000000u ? Found::Later : Found::Nothing;
}

// For the lanes that look back: what all links before `number`, which is not the first, pass on.
static __device__ __forceinline__ Carried look_back(const KlapChain* chain, unsigned long long first,
                                                    unsigned long long number) {
  const unsigned int lane = linear_thread();
  Carried sum = nothing();
  unsigned long long end = number;  // links from here on are in the sum
  unsigned int pause = kShortestPause;
#pragma unroll 1
  for (;;) {
    const bool is_link = end - first > lane;  // the first one is whole: lanes beyond it are not asked
    Carried carried = nothing();
    const Found found = is_link ? look_at(chain, end - 1 - lane, carried) : Found::Nothing;
    const unsigned int whole = __ballot_sync(kAllLanes, found == Found::Whole);
    const unsigned int ready = __ballot_sync(kAllLanes, found == Found::Whole || found == Found::Own);
    const unsigned int later = __ballot_sync(kAllLanes, found == Found::Later);
    // The lanes up to the first that has it all.
    const unsigned int needed = whole == 0 ? static_cast<unsigned int>(kAllLanes) : whole ^ (whole - 1);
    if ((later & needed) != 0) {
      sum = nothing();
      end = number;
      pause_longer(pause);
      continue;
    }
    if ((ready & needed) != needed) {
      pause_longer(pause);
      continue;
    }
    if ((needed >> lane & 1u) == 0) carried = nothing();
    sum = combined(sum, of_all_lanes(carried));
    if (whole != 0) return sum;
    end -= kLanes;
    pause = kShortestPause;
  }
}

static __device__ __forceinline__ void await_quarter(const KlapChain* chain, unsigned long long quarter) {
  const unsigned long long done = (quarter / 4 + 1) * KLAP_CHAIN_QUARTER;
  unsigned int pause = kShortestPause;
#pragma unroll 1
  while (load_relaxed(&chain->done[quarter % 4]) < done) pause_longer(pause);
}

// For the leader: waits until the link's slot may be written (promote.h).
static __device__ __forceinline__ void await_slot(const KlapChain* chain, KlapLink* link) {
  const unsigned long long quarter = link->number / KLAP_CHAIN_QUARTER;
  const unsigned long long before = quarter - link->first / KLAP_CHAIN_QUARTER;  // quarters of this launch
  if (before < 3 || link->quarter == quarter) return;
  await_quarter(chain, quarter - 3);
  if (before > 3) await_quarter(chain, quarter - 4);
  fence();
  link->quarter = quarter;
}

extern "C" __device__ void __klap_link_look_back(KlapChain* chain, unsigned int link) {
  KlapLink* const at = link_at(link);
  fence();
  __syncthreads();
  if (linear_thread() < kLanes) {
    const unsigned long long number = at->number, first = at->first;
    const bool is_first = number == first;
    const Carried own = in_area(link + KLAP_LINK_VALUES);
    if (is_leader()) {
      await_slot(chain, at);
      fence();
      publish(chain, number, is_first ? combined(in_area(link + KLAP_LINK_AREA), own) : own, is_first);
    }
    if (!is_first) {
      const Carried before = look_back(chain, first, number);
      if (is_leader()) {
        fence();
        publish(chain, number, combined(before, own), true);
        to_area(link + KLAP_LINK_AREA, before);
      }
    }
    // The lanes' looks are over: slots that they read may be written again.
    if (is_leader()) atomicAdd(&chain->done[number / KLAP_CHAIN_QUARTER % 4], 1ull);
  }
  __syncthreads();
}

#endif
