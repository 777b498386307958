// The kernel by which the executor copies and fills memory: the body of a block of it (copy_arguments.h).
//
// Plain loads read the source, since this same kernel may have written it. Both sides are accessed in units
// of 16 bytes, if they are aligned alike, or of 4 bytes, or byte by byte.
//
// Constants: KLAP_COPIES, the number of that kernel.
#ifndef KLAP_COPIES_H
#define KLAP_COPIES_H

#include "executor/copy_arguments.h"
#include "executor/events.h"

// A thread of the block.
struct CopyThread {
  unsigned int number, threads;
};

template <class Unit>
static __device__ __forceinline__ Unit* unit_at(unsigned long long address) {
  return reinterpret_cast<Unit*>(address);
}

// The value of a unit of bytes that are all alike.
template <class Unit>
static __device__ __forceinline__ Unit unit_of(unsigned int value) {
  return static_cast<Unit>(value);
}
template <>
__device__ __forceinline__ uint4 unit_of<uint4>(unsigned int value) {
  return make_uint4(value, value, value, value);
}

// Units that lie one behind the other. Four of a thread are read before they are written.
template <class Unit>
static __device__ __forceinline__ void copy_units(CopyThread thread, unsigned long long to_address,
                                                  unsigned long long from_address, unsigned int units) {
  Unit* const to = unit_at<Unit>(to_address);
  const Unit* const from = unit_at<Unit>(from_address);
  const unsigned int step = thread.threads;
  unsigned int i = thread.number;
#pragma unroll 1
  for (; i + 3 * step < units; i += 4 * step) {
    const Unit first = from[i], second = from[i + step], third = from[i + 2 * step],
               last = from[i + 3 * step];
    to[i] = first;
    to[i + step] = second;
    to[i + 2 * step] = third;
    to[i + 3 * step] = last;
  }
#pragma unroll 1
  for (; i < units; i += step) to[i] = from[i];
}
template <class Unit>
static __device__ __forceinline__ void fill_units(CopyThread thread, unsigned long long to_address,
                                                  unsigned int value, unsigned int units) {
  Unit* const to = unit_at<Unit>(to_address);
#pragma unroll 1
  for (unsigned int i = thread.number; i < units; i += thread.threads) to[i] = unit_of<Unit>(value);
}

// At most KLAP_COPY_BYTES in a row: bytes up to a unit's boundary, units, and the bytes behind them.
static __device__ __forceinline__ void copy_line(const KlapCopy& copy, CopyThread thread,
                                                 unsigned long long to, unsigned long long from,
                                                 unsigned int bytes) {
  const bool fills = copy.does == KLAP_DOES_FILL;
  const unsigned int apart = fills ? 0 : static_cast<unsigned int>(to ^ from) & 15u;
  const unsigned int unit = apart == 0 ? 16 : (apart & 3u) == 0 ? 4 : 1;
  unsigned int head = static_cast<unsigned int>(0ull - to) & (unit - 1u);
  if (head > bytes) head = bytes;
  const unsigned int units = (bytes - head) / unit, middle = units * unit;
#pragma unroll 1
  for (unsigned int i = thread.number; i < bytes - middle; i += thread.threads) {
    const unsigned int at = i < head ? i : i + middle;
    *unit_at<unsigned char>(to + at) = fills ? copy.value : *unit_at<const unsigned char>(from + at);
  }
  if (fills) {
    fill_units<uint4>(thread, to + head, copy.value * 0x01010101u, units);
  } else if (unit == 16) {
    copy_units<uint4>(thread, to + head, from + head, units);
  } else if (unit == 4) {
    copy_units<unsigned int>(thread, to + head, from + head, units);
  } else {
    copy_units<unsigned char>(thread, to, from, units);
  }
}

// The address of a row, on the side that begins at `begin`.
static __device__ __forceinline__ unsigned long long address_of_row(const KlapCopy& copy,
                                                                    unsigned long long begin,
                                                                    unsigned long long pitch,
                                                                    unsigned long long slice_bytes,
                                                                    unsigned long long row) {
  if (copy.slice_rows == 0) return begin + row * pitch;
  const unsigned long long slice = row / copy.slice_rows;
  return begin + slice * slice_bytes + (row - slice * copy.slice_rows) * pitch;
}
static __device__ __forceinline__ unsigned long long to_row(const KlapCopy& copy, unsigned long long row) {
  return address_of_row(copy, copy.to, copy.to_pitch, copy.to_slice, row);
}
static __device__ __forceinline__ unsigned long long from_row(const KlapCopy& copy, unsigned long long row) {
  return address_of_row(copy, copy.from, copy.from_pitch, copy.from_slice, row);
}

// Some whole rows, of at most KLAP_COPY_BYTES together, by units that all rows consist of.
template <class Unit>
static __device__ __forceinline__ void copy_rows(const KlapCopy& copy, CopyThread thread,
                                                 unsigned long long first, unsigned int rows,
                                                 unsigned int value) {
  const unsigned int columns = static_cast<unsigned int>(copy.width / sizeof(Unit));
#pragma unroll 1
  for (unsigned int i = thread.number; i < rows * columns; i += thread.threads) {
    const unsigned long long row = first + i / columns, at = i % columns * sizeof(Unit);
    Unit* const to = unit_at<Unit>(to_row(copy, row) + at);
    *to = copy.does == KLAP_DOES_FILL ? unit_of<Unit>(value) : *unit_at<const Unit>(from_row(copy, row) + at);
  }
}

static __device__ __forceinline__ void copy_block(const KlapCopy& copy, CopyThread thread,
                                                  unsigned long long block) {
  const unsigned long long width = copy.width;
  if (copy.height == 1) {
    const unsigned long long begin = block * KLAP_COPY_BYTES, left = width - begin;
    copy_line(copy, thread, copy.to + begin, copy.from + begin,
              left < KLAP_COPY_BYTES ? static_cast<unsigned int>(left) : KLAP_COPY_BYTES);
    return;
  }
  if (width > KLAP_COPY_BYTES) {
#pragma unroll 1
    for (unsigned long long begin = 0; begin < width; begin += KLAP_COPY_BYTES) {
      const unsigned long long left = width - begin;
      copy_line(copy, thread, to_row(copy, block) + begin, from_row(copy, block) + begin,
                left < KLAP_COPY_BYTES ? static_cast<unsigned int>(left) : KLAP_COPY_BYTES);
    }
    return;
  }
  const unsigned int most = KLAP_COPY_BYTES / static_cast<unsigned int>(width);
  const unsigned long long first = block * most, left = copy.height - first;
  const unsigned int rows = left < most ? static_cast<unsigned int>(left) : most;
  const unsigned long long source = copy.from | copy.from_pitch | copy.from_slice;
  const unsigned long long sides =
      copy.to | copy.to_pitch | copy.to_slice | width | (copy.does == KLAP_DOES_FILL ? 0 : source);
  if (sides % 16 == 0) {
    copy_rows<uint4>(copy, thread, first, rows, copy.value * 0x01010101u);
  } else if (sides % 4 == 0) {
    copy_rows<unsigned int>(copy, thread, first, rows, copy.value * 0x01010101u);
  } else {
    copy_rows<unsigned char>(copy, thread, first, rows, copy.value);
  }
}

// The kernel has the form of all others, and a body of its own in place of a marker.
#define KLAP_BODY_OF(number) __klap_child_body_##number
#define KLAP_BODY(number) KLAP_BODY_OF(number)
extern "C" __device__ __forceinline__ void KLAP_BODY(KLAP_COPIES)(
    const unsigned char* arguments, unsigned int ctaid_x, unsigned int, unsigned int, unsigned int,
    unsigned int, unsigned int, unsigned int tid_x, unsigned int, unsigned int, unsigned int ntid_x,
    unsigned int, unsigned int, KlapGridBlock* block) {
  const KlapCopy& call = *reinterpret_cast<const KlapCopy*>(arguments);
  if (call.does == KLAP_DOES_COPY || call.does == KLAP_DOES_FILL) {
    copy_block(call, {tid_x, ntid_x}, ctaid_x);
  } else if (tid_x == 0) {
    run_event(call, block);
  }
}
#undef KLAP_BODY
#undef KLAP_BODY_OF

#endif
