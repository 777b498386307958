// A group is the blocks of a recording parent whose children become one launch. This file finds a thread's
// group and the group's part of the queue.
//
// Groups are KLAP_GROUP_BLOCKS consecutive blocks of the parent's grid, the last one as many as are left.
// Without that constant the whole grid is one group that counts in the queue's head, and all of this costs
// nothing. A group's counters are in global memory even if it is a single block. Counters in shared memory
// would need clearing behind a barrier that all kernels enter with. They would add to the shared memory of
// parents that have none left. Blocks count at different addresses, so the atomics do not queue up.
#ifndef KLAP_GROUP_H
#define KLAP_GROUP_H

#include "common/queue.h"

#ifdef KLAP_GROUP_BLOCKS

// All in 32 bits: grids of more than KLAP_MAX_RECORDS threads never come here.
static __device__ __forceinline__ unsigned int blocks_of_grid() { return gridDim.x * gridDim.y * gridDim.z; }

static __device__ __forceinline__ unsigned int threads_of_block() {
  return blockDim.x * blockDim.y * blockDim.z;
}

static __device__ __forceinline__ unsigned int number_of_groups() {
  return (blocks_of_grid() - 1u) / KLAP_GROUP_BLOCKS + 1u;
}

static __device__ __forceinline__ unsigned int own_group() {
  return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) / KLAP_GROUP_BLOCKS;
}

static __device__ __forceinline__ KlapCounters* counters_of(KlapQueue* queue, unsigned int group) {
  return queue->groups + group;
}

// The group's part of the arrays: its first slot, and how many it has, which are its threads.
static __device__ __forceinline__ unsigned int first_slot(unsigned int group) {
  return group * KLAP_GROUP_BLOCKS * threads_of_block();
}

static __device__ __forceinline__ unsigned int threads_of_group(unsigned int group) {
  const unsigned int rest = blocks_of_grid() - group * KLAP_GROUP_BLOCKS;
  return (rest < KLAP_GROUP_BLOCKS ? rest : KLAP_GROUP_BLOCKS) * threads_of_block();
}

static __device__ __forceinline__ unsigned int slots_of(const KlapQueue*, unsigned int group) {
  return threads_of_group(group);
}

// Where the group's arguments are that are passed once.
static __device__ __forceinline__ void* once_of(KlapQueue* queue, unsigned int group) {
  return queue->groups[group].once;
}

#else

static __device__ __forceinline__ unsigned int own_group() { return 0; }

static __device__ __forceinline__ KlapCounters* counters_of(KlapQueue* queue, unsigned int) { return queue; }

static __device__ __forceinline__ unsigned int first_slot(unsigned int) { return 0; }

static __device__ __forceinline__ unsigned int threads_of_group(unsigned int) {
  return gridDim.x * gridDim.y * gridDim.z * (blockDim.x * blockDim.y * blockDim.z);
}

static __device__ __forceinline__ unsigned int slots_of(const KlapQueue* queue, unsigned int) {
  return queue->capacity;
}

static __device__ __forceinline__ void* once_of(KlapQueue* queue, unsigned int) {
  return reinterpret_cast<unsigned char*>(queue) + KLAP_ONCE_OFFSET;
}

#endif

#endif
