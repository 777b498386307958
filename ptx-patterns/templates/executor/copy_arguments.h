// The arguments of the kernel by which the executor copies and fills memory (copies.h).
//
// A call of the program becomes a grid of that kernel. Where rows lie one behind the other, they count as one
// row. A block of the grid has a stretch of the only row, or some whole rows. In three dimensions, the rows
// of all slices are counted together.
#ifndef KLAP_COPY_ARGUMENTS_H
#define KLAP_COPY_ARGUMENTS_H

struct KlapCopy {
  unsigned long long to, to_pitch, from, from_pitch;
  unsigned long long width, height;  // bytes of a row, and rows
  unsigned int does, value;          // a word below; what all bytes become
  // The rows of a slice, and the bytes from one slice to the next. 0 rows if all rows have the same distance.
  unsigned long long slice_rows, to_slice, from_slice;
};
#define KLAP_DOES_COPY 0u
#define KLAP_DOES_FILL 1u
// Grids for events (events.h): `to` is the queue, `from` the link of a state, `width` that of a child.
#define KLAP_DOES_RECORD 2u
#define KLAP_DOES_WAIT 3u
#define KLAP_DOES_NOTHING 4u

// A block takes so many bytes, or as many rows as have so many, or one row. So most calls need one block, and
// large ones have work for all blocks of the GPU.
#define KLAP_COPY_BYTES 16384u

#endif
