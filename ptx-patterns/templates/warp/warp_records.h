// The parameters of a launch that the lanes of a warp share: all their children, told apart by blocks.
//
// The children's records travel in the parameter buffer of the launch itself. So there is no queue that could
// run out of room, and nothing to reset. Only the space for kernel parameters bounds a launch.
//
// Constants: KLAP_LANES, how many children fit; KLAP_ARGS_OFFSET, which is also the strictest alignment of an
// argument, and KLAP_RECORD_BYTES.
#ifndef KLAP_WARP_RECORDS_H
#define KLAP_WARP_RECORDS_H

struct KlapRecord {
  uint4 grid;  // x, y, z and a word of padding
#if KLAP_RECORD_BYTES > 16
  unsigned char rest[KLAP_RECORD_BYTES - 16];  // the arguments stand at KLAP_ARGS_OFFSET
#endif
};

struct KlapWarpArguments {
  unsigned int children;
  unsigned int first[KLAP_LANES];  // of each child, the first block of the launch
  alignas(KLAP_ARGS_OFFSET) KlapRecord records[KLAP_LANES];
};

// Where the records begin: NVRTC has no offsetof, and a constant would become a variable of the module.
#define KLAP_RECORDS_OFFSET \
  ((sizeof(unsigned int) * (KLAP_LANES + 1) + KLAP_ARGS_OFFSET - 1) / KLAP_ARGS_OFFSET * KLAP_ARGS_OFFSET)
static_assert(sizeof(KlapWarpArguments) == KLAP_RECORDS_OFFSET + KLAP_LANES * KLAP_RECORD_BYTES,
              "another layout");

#endif
