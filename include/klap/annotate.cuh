// Hints for klap_jit in device code: how a kernel's launches, or one launch, are to be aggregated.
//
//   #include <klap/annotate.cuh>
//
//   __global__ void expand(...) {
//     KLAP_AGGREGATE(granularity(block), launcher(device));   // for all launches of this kernel
//     ...
//     KLAP_AGGREGATE_LAUNCH(granularity(warp));               // for the launch that comes next
//     child<<<grid, block>>>(...);
//   }
//
// Nothing else is needed: no library, no option. A program that was built with hints runs without klap_jit as
// it would without hints. A hint adds no instruction; it is a register declaration with a telling name, which
// the compiler keeps and the assembler drops. Like any `asm volatile` it stands where it was written, so
// values in memory that were read before it are read again behind it: put a kernel's hint at its beginning.
//
// Hints, each at most once (values are those of the settings with the same name, see src/settings):
//
//   granularity(none | warp | block | multiblock | grid | auto)
//   launcher(auto | host | device)
//   multiblock(N)            blocks that launch as one at granularity multiblock
//   ordering(auto | stream | relaxed)
//                            whether launches of a block into its NULL stream may overlap
//   concurrency(N)           the consumer takes 1/N of the device, as in KC_1, KC_16, KC_32 of Wu et al.
//   consumer_threads(N)      threads of a consumer's block
//   buffer(pool | malloc)    whether a stream keeps the memory of a queue, or each launch of the kernel
//                            allocates it; for a kernel only
//   promotion(auto | none | P | PA | PO | PAO | lookback)
//                            how a kernel of one block that launches itself, a chain, is run
//   pool(N)                  blocks of a promoted chain
//   assume(none | noalias | reassociate | all)
//                            noalias: the beginning of a link reads nothing that earlier links write before
//                            their launch; reassociate: floating-point numbers may be added in another order
//   pool_bytes(SIZE)         the most memory of a queue, as 64M; for a kernel only
//
// A misspelt hint does not compile. A value that does not exist, and a hint that contradicts an earlier one,
// is ignored with a line in the log. Hints give way to the environment and the config file. In a called
// function that is inlined they belong to the kernel that it is inlined in.
//
// KLAP_OVERLAP_BOUNDARY() is for a kernel of one block that launches itself, a chain. It says that the code
// in front of it reads nothing that an earlier run of the kernel writes before it launches. So runs may
// overlap up to there. All threads of the block must pass it exactly once, before the launch. klap_jit finds
// such a place by itself. The annotation moves it to the front, or behind loads of which the compiler's
// output does not show that they read other memory. Everything else is checked: an annotation is ignored if
// anything more is in the way.
//
// klap::device_synchronize() waits in a kernel for the children of its thread's block, as
// cudaDeviceSynchronize() did in version 1 of dynamic parallelism. klap_jit splits the kernel there. Without
// klap_jit, or where the kernel cannot be split, it prints a line and ends the kernel with an error. It
// returns cudaSuccess. Code for NVRTC does not have it.
#ifndef KLAP_ANNOTATE_CUH
#define KLAP_ANNOTATE_CUH

#define KLAP_AGGREGATE(...) KLAP_ANNOTATE_ALL("__klap_kernel$", __VA_ARGS__)
#define KLAP_AGGREGATE_LAUNCH(...) KLAP_ANNOTATE_ALL("__klap_launch$", __VA_ARGS__)
#define KLAP_OVERLAP_BOUNDARY()                  \
  do {                                           \
    KLAP_ANNOTATE("__klap_overlap$", "boundary") \
  } while (false)

// NVRTC has no standard headers and no type for errors.
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#include <cstdio>

// The trap is assembly, so that the compiler does not take the code behind a wait for unreachable, and
// expects memory to change there.
extern "C" __device__ __noinline__ inline int __klap_device_synchronize() {
  printf("klap::device_synchronize() waits only in programs that klap_jit has rewritten\n");
  asm volatile("trap;" ::: "memory");
  return 0;
}

namespace klap {
__device__ inline cudaError_t device_synchronize() {
  return static_cast<cudaError_t>(__klap_device_synchronize());
}
}  // namespace klap
#endif

// ---- implementation, not for use ----

#if defined(__CUDA_ARCH__)
#define KLAP_ANNOTATE(place, text) asm volatile("{ .reg .pred " place text "; }" ::: "memory");
#else
#define KLAP_ANNOTATE(place, text)
#endif

// Values may be macros: they are expanded on the way here.
#define KLAP_HINT_granularity(value) "granularity$" #value
#define KLAP_HINT_launcher(value) "launcher$" #value
#define KLAP_HINT_multiblock(value) "multiblock$" #value
#define KLAP_HINT_ordering(value) "ordering$" #value
#define KLAP_HINT_concurrency(value) "concurrency$" #value
#define KLAP_HINT_consumer_threads(value) "consumer_threads$" #value
#define KLAP_HINT_promotion(value) "promotion$" #value
#define KLAP_HINT_pool(value) "pool$" #value
#define KLAP_HINT_assume(value) "assume$" #value
#define KLAP_HINT_buffer(value) "buffer$" #value
#define KLAP_HINT_pool_bytes(value) "pool_bytes$" #value

#define KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE(place, KLAP_HINT_##hint)
#define KLAP_ANNOTATE_2(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_1(place, __VA_ARGS__)
#define KLAP_ANNOTATE_3(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_2(place, __VA_ARGS__)
#define KLAP_ANNOTATE_4(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_3(place, __VA_ARGS__)
#define KLAP_ANNOTATE_5(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_4(place, __VA_ARGS__)
#define KLAP_ANNOTATE_6(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_5(place, __VA_ARGS__)
#define KLAP_ANNOTATE_7(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_6(place, __VA_ARGS__)
#define KLAP_ANNOTATE_8(place, hint, ...) KLAP_ANNOTATE_1(place, hint) KLAP_ANNOTATE_7(place, __VA_ARGS__)
#define KLAP_ANNOTATE_WITH(_1, _2, _3, _4, _5, _6, _7, _8, chosen, ...) chosen
#define KLAP_ANNOTATE_ALL(place, ...)                                                                   \
  do {                                                                                                  \
    KLAP_ANNOTATE_WITH(__VA_ARGS__, KLAP_ANNOTATE_8, KLAP_ANNOTATE_7, KLAP_ANNOTATE_6, KLAP_ANNOTATE_5, \
                       KLAP_ANNOTATE_4, KLAP_ANNOTATE_3, KLAP_ANNOTATE_2, KLAP_ANNOTATE_1, )            \
    (place, __VA_ARGS__)                                                                                \
  } while (false)

#endif
