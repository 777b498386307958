// The grid at the head of a record.
//
// Extents that are constants at the launch site (KLAP_GRID_X, _Y, _Z) are in no record. Where none is, a
// fourth word makes them one access.
#ifndef KLAP_RECORD_GRID_H
#define KLAP_RECORD_GRID_H

#if defined(KLAP_GRID_X) || defined(KLAP_GRID_Y) || defined(KLAP_GRID_Z)
#define KLAP_GRID_IN_WORDS
#endif

static __device__ __forceinline__ void keep_grid(unsigned char* record, unsigned int x, unsigned int y,
                                                 unsigned int z) {
#ifdef KLAP_GRID_IN_WORDS
  unsigned int* word = reinterpret_cast<unsigned int*>(record);
#ifndef KLAP_GRID_X
  *word++ = x;
#endif
#ifndef KLAP_GRID_Y
  *word++ = y;
#endif
#ifndef KLAP_GRID_Z
  *word++ = z;
#endif
#else
  *reinterpret_cast<uint4*>(record) = make_uint4(x, y, z, 0u);
#endif
}

// `complete`: no thread of this kernel, or of one that runs at the same time, writes records.
static __device__ __forceinline__ uint4 grid_of(const unsigned char* record, bool complete) {
#ifdef KLAP_GRID_IN_WORDS
  const unsigned int* word = reinterpret_cast<const unsigned int*>(record);
  uint4 grid = make_uint4(0, 0, 0, 0);
#ifdef KLAP_GRID_X
  grid.x = KLAP_GRID_X;
#else
  grid.x = complete ? __ldg(word) : *word;
  ++word;
#endif
#ifdef KLAP_GRID_Y
  grid.y = KLAP_GRID_Y;
#else
  grid.y = complete ? __ldg(word) : *word;
  ++word;
#endif
#ifdef KLAP_GRID_Z
  grid.z = KLAP_GRID_Z;
#else
  grid.z = complete ? __ldg(word) : *word;
#endif
  return grid;
#else
  const uint4* const grid = reinterpret_cast<const uint4*>(record);
  return complete ? __ldg(grid) : *grid;
#endif
}

#endif
