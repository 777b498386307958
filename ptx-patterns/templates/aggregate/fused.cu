// A fused kernel: the blocks of the parent do the parent's part, and then go on as blocks of the consumer.
//
// Each block is counted as it begins, and again as it ends the parent's part. If all blocks have begun by
// then, it stays, waits until all have ended that part, and runs children. Otherwise it leaves, and makes
// room for a block that has not begun. So waiting keeps no block out, and the last block to begin always
// stays.
//
// Nothing here is left to another kernel. Blocks that stay count themselves out as soon as they have read the
// counts, before they run children. The last one to do so empties the counts for the next launch. So its
// children do not wait for that.
//
// A parent with several launches has several queues, which run one after another. Between them the blocks
// that stayed wait for each other, as they do in front of the first one.
//
// The counts are in words of the queue's head that a consumer of its own does not use.
//
// Constants: none.
#include "common/memory_order.h"
#include "common/queue.h"

// The blocks that have begun; later also those that have counted themselves out.
static __device__ __forceinline__ unsigned int* begun_in(KlapQueue* queue) { return &queue->exited; }
// The blocks that have ended what is in front of the queue's children, and in the upper half those of them
// that stay. One atomic counts both.
static __device__ __forceinline__ unsigned long long* ended_in(KlapQueue* queue) {
  return reinterpret_cast<unsigned long long*>(&queue->threads);
}

static __device__ __forceinline__ bool is_first_thread() {
  return (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
}

// Queues have room for 2^24 threads, and a grid with a queue has no more blocks than that.
static __device__ __forceinline__ unsigned int blocks_of_grid() { return gridDim.x * gridDim.y * gridDim.z; }

// Waits until so many blocks have said that they are done, and returns how many of these stay. It acquires
// what they have written.
//
// The number comes with the value that ends the wait. A word of its own would have to be read behind it, and
// before this block counts itself out: otherwise the last one might have emptied it. Only a fence would say
// so.
static __device__ __forceinline__ unsigned int await_blocks(KlapQueue* queue, unsigned int blocks) {
  unsigned long long ended = 0;
  do {
    ended = load_relaxed(ended_in(queue));
  } while (static_cast<unsigned int>(ended) != blocks);
  release();
  return static_cast<unsigned int>(ended >> 32);
}

// Counts a block out that will not look at the counts again. The last one empties them: `all` are those that
// begun_in() has then.
static __device__ __forceinline__ void count_out(KlapQueue* queue, unsigned int all) {
  if (add_global(begun_in(queue), 1u) + 1u != all) return;
  release();
  store_relaxed(begun_in(queue), 0u);
  store_relaxed(ended_in(queue), 0ull);
}

extern "C" __device__ void __klap_begin_block(KlapQueue* queue) {
  if (is_first_thread()) add_global(begun_in(queue), 1u);
}

// A block of the consumer: its number, and how many there are; none if the block leaves.
struct KlapConsumerBlock {
  unsigned int own, all;
};

static __device__ __forceinline__ KlapConsumerBlock join(KlapQueue* queue, unsigned int blocks) {
  KlapConsumerBlock block = {0, 0};
  const bool stays = load_relaxed(begun_in(queue)) >= blocks;
  release();  // of what all threads of the block have written
  const unsigned long long before = add_global(ended_in(queue), stays ? (1ull << 32) + 1ull : 1ull);
  if (!stays) return block;
  block.own = static_cast<unsigned int>(before >> 32);
  block.all = await_blocks(queue, blocks);
  count_out(queue, blocks + block.all);
  return block;
}

// All threads of the block arrive here behind the parent's part. `shared` are two words of shared memory.
extern "C" __device__ KlapConsumerBlock __klap_end_block(KlapQueue* queue, unsigned int shared) {
  __syncthreads();
  if (is_first_thread()) {
    const KlapConsumerBlock block = join(queue, blocks_of_grid());
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};"
                 :
                 : "r"(shared), "r"(block.own), "r"(block.all)
                 : "memory");
  }
  __syncthreads();
  KlapConsumerBlock block;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
               : "=r"(block.own), "=r"(block.all)
               : "r"(shared)
               : "memory");
  return block;
}

// All threads of the blocks that stayed, `all` of them, arrive here in front of a further queue.
extern "C" __device__ void __klap_next_queue(KlapQueue* queue, unsigned int all) {
  __syncthreads();
  if (is_first_thread()) {
    release();
    add_global(ended_in(queue), 1ull);
    await_blocks(queue, all);
    count_out(queue, all);
  }
  __syncthreads();
}
