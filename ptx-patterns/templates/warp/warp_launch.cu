// A parent runs this at its launch sites if the lanes of a warp share their launches (warp aggregation).
//
// The lanes that are active at a site together, and agree on everything that must be the same for one launch,
// form a group. Its lowest lane asks for the parameter buffer of one launch that runs all their children
// (warp.cu). The program's own stores put each lane's arguments into it. When all are done the lowest lane
// launches, into the stream that the program named. Nothing is deferred: when a lane goes on behind its
// launch, its child has been launched, as natively.
//
// A launch that cannot be shared is made as the program would have made it. This is so for a lane that is
// alone, a child so large that its blocks could not be counted, a grid that CUDA refuses, and all lanes of a
// group whose buffer is refused. The device runtime then gives exactly the errors that it would have given.
//
// __klap_warp_buffer() replaces the program's call for a buffer, __klap_warp_launch() its launch. Between the
// two stand a null test that comes out alike for all lanes of a group and straight-line code. So a lane that
// others wait for does arrive. The calls __klap_get_buffer, __klap_device_launch and __klap_last_error are
// markers for the device runtime's functions.
//
// A failing launch sets the last error of the thread that called. The lanes of a group must all see it, so a
// parent that asks for the last error (KLAP_LAST_ERROR) keeps a copy of it for each thread. The device
// runtime's own error is taken out before a group acts. So an error that it holds is always newer than the
// copy.
//
// Constants: those of warp_records.h; KLAP_MATCH_BLOCK, KLAP_MATCH_BYTES, KLAP_MATCH_STREAM if the launch's
// block, dynamic shared memory or stream is not constant; then KLAP_SHARED_ROOM, the most dynamic shared
// memory that the kernel of warp.cu can have, whatever the program allowed the child.
#include "common/warp.h"
#include "warp/warp_records.h"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);
extern "C" __device__ unsigned int __klap_last_error();

// The blocks of 32 smaller children are fewer than a grid's most, 2^31 - 1.
static constexpr unsigned long long kLargestShared = (1ull << 26) - 1;

// Words of 64 bits: the compiler would store smaller ones together.
struct KlapWarpBuffer {
  unsigned long long arguments;   // where to store the child's arguments; 0: the launch is refused
  unsigned long long buffer;      // of the launch
  unsigned long long group;       // lanes that share it
  unsigned long long last_error;  // the thread's copy
};

struct KlapWarpLaunchResult {
  unsigned long long error;  // the result of the program's launch
  unsigned long long last_error;
};

static __device__ __forceinline__ unsigned int lane_number() {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

static __device__ __forceinline__ unsigned int lowest(unsigned int group) { return __ffs(group) - 1; }

static __device__ __forceinline__ unsigned int rank_in(unsigned int group, unsigned int lane) {
  return __popc(group & ((1u << lane) - 1u));
}

// The active lanes that can share a launch with this one.
static __device__ __forceinline__ unsigned int find_group(bool shares, dim3 block, unsigned int shared_bytes,
                                                          unsigned long long stream, unsigned int lane) {
  const unsigned int active = lanes_together();
  __syncwarp(active);
  // A ballot would be the same in all lanes for ptxas, also when these have gone apart.
  const unsigned int sharing = __match_any_sync(active, shares ? 1u : 0u);
  if (!shares) return 1u << lane;
  unsigned int group = sharing;
#ifdef KLAP_MATCH_BLOCK
  group &= __match_any_sync(sharing, block.x);
  group &= __match_any_sync(sharing, block.y);
  group &= __match_any_sync(sharing, block.z);
#endif
#ifdef KLAP_MATCH_BYTES
  group &= __match_any_sync(sharing, shared_bytes);
#endif
#ifdef KLAP_MATCH_STREAM
  group &= __match_any_sync(sharing, stream);
#endif
#if KLAP_LANES < 32
  // A group has as many lanes as fit into one launch, in the order of their lanes.
  group &= __match_any_sync(sharing, rank_in(group, lane) / KLAP_LANES);
#endif
  return group;
}

// Sum of `value` over the lanes of the group below this one.
static __device__ __forceinline__ unsigned int sum_below(unsigned int group, unsigned int lane,
                                                         unsigned int value) {
  unsigned int sum = 0;
#pragma unroll 1
  for (unsigned int rest = group; rest != 0; rest &= rest - 1) {
    const unsigned int other = lowest(rest);
    const unsigned int add = __shfl_sync(group, value, other);
    if (other < lane) sum += add;
  }
  return sum;
}

extern "C" __device__ KlapWarpBuffer __klap_warp_buffer(void* consumer, void* child, unsigned int grid_x,
                                                        unsigned int grid_y, unsigned int grid_z,
                                                        unsigned int block_x, unsigned int block_y,
                                                        unsigned int block_z, unsigned int shared_bytes,
                                                        unsigned long long stream,
                                                        unsigned long long last_error) {
  const dim3 grid(grid_x, grid_y, grid_z), block(block_x, block_y, block_z);
  const unsigned int lane = lane_number();
  const bool refused = grid_x - 1u >= 0x7fffffffu || grid_y - 1u >= 65535u || grid_z - 1u >= 65535u;
  const unsigned long long row = static_cast<unsigned long long>(grid_x) * grid_y;  // less than 2^47
  bool shares = !refused && row <= kLargestShared && row * grid_z <= kLargestShared;
#ifdef KLAP_MATCH_BYTES
  shares = shares && shared_bytes <= KLAP_SHARED_ROOM;
#endif
  unsigned int group = find_group(shares, block, shared_bytes, stream, lane);
#ifdef KLAP_LAST_ERROR
  if (const unsigned int older = __klap_last_error()) last_error = older;
#endif
  if ((group & (group - 1)) != 0) {
    const unsigned int leader = lowest(group);
    const unsigned int blocks = static_cast<unsigned int>(row * grid_z);
    const unsigned int first = sum_below(group, lane, blocks);
    const unsigned int all = __shfl_sync(group, first + blocks, 31u - __clz(group));
    unsigned long long buffer = 0;
    if (lane == leader)
      buffer =
          reinterpret_cast<unsigned long long>(__klap_get_buffer(consumer, dim3(all), block, shared_bytes));
    buffer = __shfl_sync(group, buffer, leader);
    if (buffer != 0) {
      KlapWarpArguments* const shared = reinterpret_cast<KlapWarpArguments*>(buffer);
      const unsigned int rank = rank_in(group, lane);
      if (lane == leader) shared->children = __popc(group);
      shared->first[rank] = first;
      shared->records[rank].grid = make_uint4(grid_x, grid_y, grid_z, 0u);
      return {reinterpret_cast<unsigned long long>(&shared->records[rank]) + KLAP_ARGS_OFFSET, buffer, group,
              last_error};
    }
#ifdef KLAP_LAST_ERROR
    __klap_last_error();  // the program has made no such launch
#endif
  }
  const unsigned long long buffer =
      reinterpret_cast<unsigned long long>(__klap_get_buffer(child, grid, block, shared_bytes));
  return {buffer, buffer, 1u << lane, last_error};
}

extern "C" __device__ KlapWarpLaunchResult __klap_warp_launch(unsigned long long buffer,
                                                              unsigned long long stream, unsigned int group,
                                                              unsigned long long last_error) {
  // The lanes' writes, which their children may read, are released by the launch of another lane.
  __threadfence();
  __syncwarp(group);
  const unsigned int leader = lowest(group);
  unsigned int error = 0;
  if (lane_number() == leader)
    error = __klap_device_launch(reinterpret_cast<void*>(buffer), reinterpret_cast<void*>(stream));
  error = __shfl_sync(group, error, leader);
#ifdef KLAP_LAST_ERROR
  if (error != 0) {
    __klap_last_error();
    last_error = error;
  }
#endif
  return {error, last_error};
}
