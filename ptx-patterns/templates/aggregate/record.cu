// A recording parent runs this at its launch site instead of asking for an argument buffer.
//
// Every thread that arrives appends one record to the queue. The active lanes of the warp share a single
// 64-bit atomic. It hands out record indices and the exclusive prefix of virtual blocks together, so both
// agree and need no later scan. The lanes that are converged here form a group: no barrier is needed,
// whatever the control flow around it.
//
// The function is compiled to PTX and spliced into the parent at the place of the first launch call. Its
// result is the address where the program's own stores put the child's arguments, and the error code that the
// launch will report.
//
// Constants: KLAP_ARGS_OFFSET and KLAP_RECORD_BYTES, the layout of this child's records, and those of
// record_grid.h; KLAP_GROUP_BLOCKS where groups of the parent's blocks launch apart; KLAP_ONCE if only one
// thread of a group stores some arguments; those of flat.h; those of thresholding.h if some children are not
// recorded; those of split_iterations.h; those of range_parts.h; those of part_totals.h if a
// child's parts are joined.
#include "aggregate/flat.h"
#include "common/group.h"
#include "common/memory_order.h"
#include "common/record_grid.h"
#include "common/warp.h"
#ifdef KLAP_SERIAL
#include "aggregate/thresholding.h"
#endif
#ifdef KLAP_SPLIT_ITERATIONS
#include "aggregate/split_iterations.h"
#endif
#ifdef KLAP_PART_ELEMENTS
#include "aggregate/range_parts.h"
#endif
#ifdef KLAP_TOTALS_AT
#include "aggregate/part_totals.h"
#endif

struct KlapRecorded {
  // The address for the child's arguments. A value up to KLAP_SERIAL is no address: the child is not
  // recorded, and so many of its threads are still to be run.
  unsigned long long arguments;
  unsigned int error;  // the result that cudaLaunchDevice would have returned
#ifdef KLAP_ONCE
  unsigned long long once;  // where this thread stores those that are passed once; 0: another one does
#endif
};

static constexpr unsigned int kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration

// Index and prefix of a child of that many blocks, or threads, one atomic for all converged lanes.
static __device__ __forceinline__ unsigned int append(KlapCounters* counters, unsigned int count,
                                                      unsigned long long* prefix) {
  const unsigned int mask = lanes_together();
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned int inclusive = inclusive_sum(count, mask, lane);
  const unsigned int last = 31u - __clz(mask);
  unsigned long long base = 0;
  if (lane == last) {
    const unsigned long long step =
        (static_cast<unsigned long long>(inclusive) << KLAP_INDEX_BITS) | __popc(mask);
    base = add_global(&counters->packed, step);
  }
  base = __shfl_sync(mask, base, last);
  *prefix = (base >> KLAP_INDEX_BITS) + inclusive - count;
  return (static_cast<unsigned int>(base) & KLAP_MAX_RECORDS) + __popc(mask & ((1u << lane) - 1u));
}

extern "C" __device__ KlapRecorded __klap_record(KlapQueue* queue, unsigned int grid_x, unsigned int grid_y,
                                                 unsigned int grid_z
#ifdef KLAP_BOUND
                                                 ,
                                                 KLAP_BOUND bound
#endif
#ifdef KLAP_SPLIT_ITERATIONS
#define KLAP_POINTER(n) , unsigned long long pointer_##n
                                                     KLAP_POINTERS
#undef KLAP_POINTER
#endif
#ifdef KLAP_PART_ELEMENTS
                                                 ,
                                                 int range_begin, int range_end
#endif
) {
  const bool refused = grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u;
#ifdef KLAP_SPLIT_ITERATIONS
#define KLAP_POINTER(n) pointer_##n,
  const unsigned long long pointers[] = {KLAP_POINTERS 0ull};
#undef KLAP_POINTER
  if (!refused) grid_x = blocks_for_iterations(grid_x, bound, pointers);
#endif
  unsigned int kept_x = grid_x;  // in the record
#ifdef KLAP_PART_ELEMENTS
  if (!refused) {
    kept_x = parts_of_range(range_begin, range_end);
    grid_x = parts_in(kept_x);
  }
#endif
  const unsigned long long blocks =
      refused ? 0ull : static_cast<unsigned long long>(grid_x) * grid_y * grid_z;
  const unsigned int group = own_group();
  unsigned int before = 1;  // records from the same end
#ifdef KLAP_SERIAL
#ifdef KLAP_BOUND
  const unsigned long long threads = threads_of_child(blocks, bound);
#else
  const unsigned long long threads = threads_of_child(blocks);
#endif
  unsigned long long arguments = threads;
  if (threads <= KLAP_SERIAL) {  // also of a launch that is refused, whose child has none
    count_serial_child(queue);
  } else
#else
  unsigned long long arguments;
#endif
  {
    unsigned int index = first_slot(group);
#if defined(KLAP_SERIAL) && defined(KLAP_FLAT)
    const unsigned long long counted = threads;
#elif defined(KLAP_BOUND) && defined(KLAP_FLAT)
    const unsigned long long counted = threads_below(bound, blocks * KLAP_FLAT);
#elif defined(KLAP_FLAT)
    const unsigned long long counted = blocks * KLAP_FLAT;
#else
    const unsigned long long counted = blocks;
#endif
    if (counted >= big_from(queue)) {
      before = add_global(&counters_of(queue, group)->big, 1u);
      index += slots_of(queue, group) - 1u - before;
    } else {
      unsigned long long prefix;
      before = append(counters_of(queue, group), static_cast<unsigned int>(counted), &prefix);
      index += before;
      queue->prefix[index] = prefix;
    }
    unsigned char* record = queue->records + static_cast<unsigned long long>(index) * KLAP_RECORD_BYTES;
    keep_grid(record, kept_x, grid_y, grid_z);
#ifdef KLAP_TOTALS_AT
    if (grid_x > 1u) begin_totals(record);
#endif
    arguments = reinterpret_cast<unsigned long long>(record + KLAP_ARGS_OFFSET);
  }
  return {arguments, refused ? kInvalidConfiguration : 0u,
#ifdef KLAP_ONCE
          before == 0u ? reinterpret_cast<unsigned long long>(once_of(queue, group)) : 0ull
#endif
  };
}
