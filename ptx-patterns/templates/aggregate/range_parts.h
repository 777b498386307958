// Children that run as parts of the range of elements that they sum up (src/analysis/ranges/range_split.h).
//
// Such a child is launched as one block. It is recorded as a grid with a block for each part. The consumer
// shares out the parts of all children, and tells each of its blocks the range of its part in place of the
// child's. With KLAP_MERGE_PARTS a block is told the range of all neighbouring parts of one child that are
// its share, and runs them as one. So parts can be small, which makes the shares equal, and a long range
// still adds to memory only once for each share.
//
// That needs counters that never wrap around. A range that begins below 0, or ends beyond 2^30, is not cut.
// Then each part has some of the threads of the program's block, and they step as far as they do there. The
// record says so, because such parts are always run one by one.
//
// The C++ code that writes the consumer reads the limits, too (transform/aggregate/consumer.cpp).
//
// Constants: KLAP_PART_ELEMENTS, the elements of a part; the last one may have fewer. KLAP_UNCUT_PARTS, the
// number of parts that have as many threads as the program's block.
#ifndef KLAP_RANGE_PARTS_H
#define KLAP_RANGE_PARTS_H

#define KLAP_MOST_RANGE_END (1 << 30)
#define KLAP_MOST_RANGE_ELEMENTS (1 << 26)

#ifdef KLAP_PART_ELEMENTS

// Set in the grid of a record whose range is not cut, where that makes a difference.
#ifdef KLAP_MERGE_PARTS
enum : unsigned int { kUncut = 1u << 31 };
#else
enum : unsigned int { kUncut = 0 };
#endif

static __device__ __forceinline__ unsigned int parts_in(unsigned int grid_x) { return grid_x & ~kUncut; }

// The extent of the record's grid. At least one part: a child without elements is run, too, for it may add
// zeros.
static __device__ __forceinline__ unsigned int parts_of_range(int begin, int end) {
  const bool may_wrap = static_cast<unsigned int>(begin) > KLAP_MOST_RANGE_END ||
                        static_cast<unsigned int>(end) > KLAP_MOST_RANGE_END;
  if (may_wrap || end - begin > KLAP_MOST_RANGE_ELEMENTS) return kUncut | KLAP_UNCUT_PARTS;
  if (end <= begin) return 1u;
  return (static_cast<unsigned int>(end - begin) + KLAP_PART_ELEMENTS - 1u) / KLAP_PART_ELEMENTS;
}

#endif
#endif
