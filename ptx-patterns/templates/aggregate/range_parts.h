// Children that run as parts of the range of elements that they sum up (src/analysis/ranges/range_split.h).
//
// Such a child is launched as one block. It is recorded as a grid with a block for each part. The consumer
// tells each block the range of its part in place of the child's.
//
// Constants: KLAP_PART_ELEMENTS, the elements of a part; the last one may have fewer.
#ifndef KLAP_RANGE_PARTS_H
#define KLAP_RANGE_PARTS_H

// Numbers of elements beyond these might wrap around where parts begin. A child that begins below 0 has
// another order of numbers. Both run in one part.
static constexpr int kMostEnd = 1 << 30;
static constexpr unsigned int kMostElements = 1u << 26;

// At least one: a child without elements is run, too, for it may add zeros.
static __device__ __forceinline__ unsigned int parts_of_range(int begin, int end) {
  if (begin < 0 || end > kMostEnd || end <= begin) return 1u;
  const unsigned int elements = static_cast<unsigned int>(end - begin);
  if (elements > kMostElements) return 1u;
  return (elements + KLAP_PART_ELEMENTS - 1u) / KLAP_PART_ELEMENTS;
}

#endif
