// Joins the parts of a child (src/analysis/ranges/range_split.h). A block runs this where its threads leave
// the loop over its part, or over several parts that are run as one, with the sum of each.
//
// Its warps add their sums to the totals in the child's record. The part that comes last goes on, with the
// totals: thread 0 has them, and other threads have what adds nothing. If a value may take part several
// times, all threads have the total. A part that is alone goes on with the sums of its threads.
//
// Nobody waits here. What the last part does comes after all that the other parts have read and added: each
// releases its additions before it is counted, and the last one acquires them all.
//
// The function is compiled to PTX and spliced into the child's code behind its loop.
//
// Constants: KLAP_PART_THREADS, the threads of a part's block, a multiple of a warp; those of part_totals.h.
#include "aggregate/part_totals.h"
#include "common/memory_order.h"

// The operations, by the names that accumulators.h gives them: of two values, and of a total in memory and a
// value.
#define KLAP_OPERATION(name, Type, instruction, letter, may_repeat, result)            \
  struct name {                                                                        \
    typedef Type Total;                                                                \
    static constexpr bool kMayRepeat = may_repeat;                                     \
    static __device__ __forceinline__ Type both(Type a, Type b) { return result; }     \
    static __device__ __forceinline__ void to(unsigned long long* total, Type value) { \
      asm volatile("red.relaxed.gpu.global." instruction " [%0], %1;"                  \
                   :                                                                   \
                   : "l"(__cvta_generic_to_global(total)), letter(value)               \
                   : "memory");                                                        \
    }                                                                                  \
  };
KLAP_OPERATION(add_i32, unsigned int, "add.u32", "r", false, a + b)
KLAP_OPERATION(add_i64, unsigned long long, "add.u64", "l", false, a + b)
KLAP_OPERATION(add_f64, double, "add.f64", "d", false, a + b)
KLAP_OPERATION(xor_b32, unsigned int, "xor.b32", "r", false, a ^ b)
KLAP_OPERATION(xor_b64, unsigned long long, "xor.b64", "l", false, a ^ b)
KLAP_OPERATION(and_b32, unsigned int, "and.b32", "r", true, a& b)
KLAP_OPERATION(and_b64, unsigned long long, "and.b64", "l", true, a& b)
KLAP_OPERATION(or_b32, unsigned int, "or.b32", "r", true, a | b)
KLAP_OPERATION(or_b64, unsigned long long, "or.b64", "l", true, a | b)
KLAP_OPERATION(min_u32, unsigned int, "min.u32", "r", true, a < b ? a : b)
KLAP_OPERATION(max_u32, unsigned int, "max.u32", "r", true, a > b ? a : b)
KLAP_OPERATION(min_s32, int, "min.s32", "r", true, a < b ? a : b)
KLAP_OPERATION(max_s32, int, "max.s32", "r", true, a > b ? a : b)
KLAP_OPERATION(min_u64, unsigned long long, "min.u64", "l", true, a < b ? a : b)
KLAP_OPERATION(max_u64, unsigned long long, "max.u64", "l", true, a > b ? a : b)
KLAP_OPERATION(min_s64, long long, "min.s64", "l", true, a < b ? a : b)
KLAP_OPERATION(max_s64, long long, "max.s64", "l", true, a > b ? a : b)
#undef KLAP_OPERATION

// An addition of 32 bits in memory takes subnormal numbers for zero, which the child's own additions need not
// do. Among numbers of 64 bits they are not subnormal.
struct add_f32 {
  typedef double Total;
  static constexpr bool kMayRepeat = false;
  static __device__ __forceinline__ float both(float a, float b) { return a + b; }
  static __device__ __forceinline__ void to(unsigned long long* total, float value) {
    add_f64::to(total, static_cast<double>(value));
  }
};

// Extrema of floating-point numbers have no atomic operation, so a total is exchanged until nobody else has
// changed it in between.
#define KLAP_EXTREMUM(name, Type, function, Bits, to_bits, from_bits)                           \
  struct name {                                                                                 \
    typedef Type Total;                                                                         \
    static constexpr bool kMayRepeat = true;                                                    \
    static __device__ __forceinline__ Type both(Type a, Type b) { return function(a, b); }      \
    static __device__ __forceinline__ void to(unsigned long long* total, Type value) {          \
      Bits* const word = reinterpret_cast<Bits*>(total);                                        \
      Bits expected = load_relaxed(word);                                                       \
      for (;;) {                                                                                \
        const Bits found =                                                                      \
            compare_and_swap_global(word, expected, to_bits(both(from_bits(expected), value))); \
        if (found == expected) return;                                                          \
        expected = found;                                                                       \
      }                                                                                         \
    }                                                                                           \
  };
KLAP_EXTREMUM(min_f32, float, fminf, unsigned int, __float_as_uint, __uint_as_float)
KLAP_EXTREMUM(max_f32, float, fmaxf, unsigned int, __float_as_uint, __uint_as_float)
KLAP_EXTREMUM(min_f64, double, fmin, unsigned long long, __double_as_longlong, __longlong_as_double)
KLAP_EXTREMUM(max_f64, double, fmax, unsigned long long, __double_as_longlong, __longlong_as_double)
#undef KLAP_EXTREMUM

template <class Operation, class Value>
static __device__ __forceinline__ Value warp_total(Value value) {
  for (int distance = 16; distance != 0; distance /= 2)
    value = Operation::both(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

template <class Operation, class Value>
static __device__ __forceinline__ Value read_total(const unsigned long long* total) {
  union {
    unsigned long long bits;
    typename Operation::Total value;
  } word = {load_relaxed(total)};
  return static_cast<Value>(word.value);
}

// A thread goes on with this.
template <class Operation, class Value>
static __device__ __forceinline__ Value share_of(Value total, unsigned int thread) {
  return Operation::kMayRepeat || thread == 0 ? total : Value(0);
}

// All that the threads of a block do before it comes before what they do behind it. Returns true for all if
// the flag of a thread is true.
static __device__ __forceinline__ bool agree(bool flag) {
#if KLAP_PART_THREADS == 32
  __syncwarp();
  const bool any = __any_sync(~0u, flag);
  __syncwarp();
  return any;
#else
  return __syncthreads_or(flag) != 0;
#endif
}

struct KlapJoined {
  unsigned int goes_on;
#define KLAP_TOTAL(number, type, operation, nothing) type sum_##number;
  KLAP_TOTALS
#undef KLAP_TOTAL
};

// `mine` of the child's parts are run as one.
extern "C" __device__ KlapJoined __klap_join_parts(unsigned char* record, unsigned int mine,
                                                   unsigned int parts,
                                                   unsigned int thread
#define KLAP_TOTAL(number, type, operation, nothing) , type sum_##number
                                                       KLAP_TOTALS
#undef KLAP_TOTAL
) {
#define KLAP_TOTAL(number, type, operation, nothing) , sum_##number
  KlapJoined out = {1u KLAP_TOTALS};
#undef KLAP_TOTAL
  if (mine == parts) return out;
  unsigned long long* const totals = reinterpret_cast<unsigned long long*>(record + KLAP_TOTALS_AT);
  unsigned int* const done = reinterpret_cast<unsigned int*>(totals + kTotals);
#define KLAP_TOTAL(number, type, operation, nothing) \
  out.sum_##number = warp_total<operation>(out.sum_##number);
  KLAP_TOTALS
#undef KLAP_TOTAL
  if (thread % 32u == 0) {
#define KLAP_TOTAL(number, type, operation, nothing) operation::to(totals + number, out.sum_##number);
    KLAP_TOTALS
#undef KLAP_TOTAL
  }
  agree(false);  // all that the threads have read and added comes before what thread 0 releases
  bool is_last = false;
  if (thread == 0) {
    release();
    is_last = add_global(done, mine) + mine == parts;
    if (is_last) acquire(done);
  }
  is_last = agree(is_last);
  out.goes_on = is_last ? 1u : 0u;
#define KLAP_TOTAL(number, type, operation, nothing) \
  if (is_last) out.sum_##number = share_of<operation>(read_total<operation, type>(totals + number), thread);
  KLAP_TOTALS
#undef KLAP_TOTAL
  return out;
}
