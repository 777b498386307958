// The front of a stopped block's frame (transform/suspension/frame_code.h). The split kernels write the first
// part, and the functions that give out frames the second one.
#ifndef KLAP_FRAME_H
#define KLAP_FRAME_H

struct KlapFrame {
  unsigned int block[3], grid[3];  // the block's index and its grid's extents
  unsigned int dynamic_bytes;      // of shared memory
  unsigned int place;              // which row of frames.cu the frame belongs to
  unsigned long long next;         // in a list: the word of the next one
  unsigned long long heap_bytes;   // of a frame that goes back to the heap
};
#define KLAP_FRAME_BYTES 48

// The words of the host's page where the memory of frames is counted, and the variable with its address.
#define KLAP_FRAME_BYTES_TAKEN 0     // from the heap
#define KLAP_FRAME_BYTES_RETURNED 1  // to it
#define KLAP_FRAME_REFUSED 2         // frames for which there was no memory
#define KLAP_FRAME_COUNTS_NAME "__klap_frame_counts"

static_assert(sizeof(KlapFrame) == KLAP_FRAME_BYTES, "what stands behind is aligned as widely as any value");

#endif
