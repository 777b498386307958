// The blocks and threads that a consumer has.
//
// As a kernel it has those of its own grid. In a fused kernel (fused.cu) the blocks of the parent go on as
// those of a consumer, as many as have stayed, whatever threads the parent's blocks have. A consumer asks
// here in both cases. These are macros, so that a consumer of its own is compiled as if it asked for the
// registers itself.
//
// Constants: KLAP_FUSED in a fused kernel.
#ifndef KLAP_CONSUMER_GRID_H
#define KLAP_CONSUMER_GRID_H

#ifdef KLAP_FUSED

// The number of this block, and of all blocks.
struct ConsumerGrid {
  unsigned int block, blocks;
};
// The first parameter of functions that ask, and the argument for it.
#define KLAP_GRID_PARAMETER ConsumerGrid consumer,
#define KLAP_GRID_ARGUMENT consumer,
#define KLAP_CONSUMER_BLOCK consumer.block
#define KLAP_CONSUMER_BLOCKS consumer.blocks
#define KLAP_CONSUMER_THREAD thread_of_block()

// The parent's block may have several rows. Its threads follow each other as in the warps.
static __device__ __forceinline__ unsigned int thread_of_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ unsigned int threads_of_block() {
  return blockDim.x * blockDim.y * blockDim.z;
}

// Leaves a thread out that the consumer's blocks do not have. If the others meet at barriers of the block, it
// ends: now, and not where they end. Otherwise it goes on to what is behind the consumer.
#ifdef KLAP_SYNC_BLOCK
#define KLAP_LEAVE_THREAD_OUT asm volatile("exit;" : : : "memory")
#else
#define KLAP_LEAVE_THREAD_OUT return
#endif

#else

#define KLAP_GRID_PARAMETER
#define KLAP_GRID_ARGUMENT
#define KLAP_CONSUMER_BLOCK blockIdx.x
#define KLAP_CONSUMER_BLOCKS gridDim.x
#define KLAP_CONSUMER_THREAD threadIdx.x

#endif

#endif
