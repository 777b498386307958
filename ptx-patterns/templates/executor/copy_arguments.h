// The arguments of the kernel by which the executor copies and fills memory (copies.h).
//
// A call of the program becomes a grid of that kernel. Where rows lie one behind the other, they count as one
// row. A block of the grid has a stretch of the only row, or some whole rows.
#ifndef KLAP_COPY_ARGUMENTS_H
#define KLAP_COPY_ARGUMENTS_H

struct KlapCopy {
  unsigned long long to, to_pitch, from, from_pitch;
  unsigned long long width, height;  // bytes of a row, and rows
  unsigned int fills, value;         // whether all bytes become `value`, and nothing is copied
};

// A block takes so many bytes, or as many rows as have so many, or one row. So most calls need one block, and
// large ones have work for all blocks of the GPU.
#define KLAP_COPY_BYTES 16384u

#endif
