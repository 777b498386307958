// How the sizes of children are counted (count_sizes.cu), for the kernel and for the runtime.
//
// A child's size is the number of its blocks, threads or parts, whatever its queue counts (queue.h). Bin 0
// has children of nothing. Bin n has sizes of n bits: 1, 2 to 3, 4 to 7 and so on. The last bin has children
// that are not counted in the queue's prefix, because each of them fills a GPU.
#ifndef KLAP_CHILD_SIZES_H
#define KLAP_CHILD_SIZES_H

#define KLAP_SIZES_THREADS 256  // of the kernel's block
#define KLAP_SIZE_BITS 17       // the most that a counted child has (flat.h)
#define KLAP_BIG_SIZES (KLAP_SIZE_BITS + 1)
#define KLAP_SIZE_BINS (KLAP_BIG_SIZES + 1)

#endif
