// How a link's block launches the next one's, in the modes that launch from the device (KLAP_LAUNCHES in
// promote.cu).
//
// There are two functions, between which the kernel's own parameters are stored to the buffer:
// __klap_next_buffer() and __klap_next_launch(). They stand where a thread knows that the next link exists.
// That is at the beginning of a link if it is known early, or behind the release of the next link if the
// program's launch tells. They also stand at the end of a link, whose place other links may have waited for.
//
// No more than `pool` links have blocks at a time, including those that wait for their turn and those
// launched and not there yet. KlapChain::ahead counts the links that are known to exist and not done, beside
// the first of them. A block that finds no place leaves the launch to the next link that is done.
//
// CUDA may refuse a launch: those that a chain made stay with it until it ends, and there is a limit to them.
// Then the block will run the link itself, behind its own. It would most likely be refused again, so it does
// not even ask for the next few links, twice as many each time.
//
// A launch takes longer than a short link runs. So the host's block runs the second link as well, as one that
// it does not ask for: a chain of two links needs no launch, and a longer one loses no time by it.
//
// Launches go into no stream: blocks of links wait for each other themselves. The grid that the host launched
// is complete only when all grids that descend from it are.
//
// The calls __klap_get_buffer and __klap_device_launch are markers for the device runtime's functions, whose
// names are those that the program's own launch used.
//
// Constants: those of promote.cu; KLAP_SHARED_BYTES, the block's dynamic shared memory.
#include "promote/promote_link.h"

extern "C" __device__ void* __klap_get_buffer(void* kernel, dim3 grid, dim3 block, unsigned int shared_bytes);
extern "C" __device__ unsigned int __klap_device_launch(void* buffer, void* stream);

enum : unsigned long long { kFireAndForget = 4 };  // cudaStreamFireAndForget
enum : unsigned int { kMostSkipped = 63 };

// Null where nothing is to be launched, or can be. `is_new`: the next link has just become known; else a link
// is done whose place another one may have now.
extern "C" __device__ void* __klap_next_buffer(KlapChain* chain, unsigned int link, unsigned long long pool,
                                               void* kernel, unsigned int is_new) {
  KlapLink* const at = link_at(link);
  const bool has_place = is_new == 0 || add_global(&chain->ahead, 1u) + 1u < pool;
  at->launches = has_place ? 1 : 0;
  if (!has_place || at->skips != 0) return nullptr;
  return __klap_get_buffer(kernel, dim3(1), blockDim, KLAP_SHARED_BYTES);
}

extern "C" __device__ void __klap_next_launch(unsigned int link, void* buffer) {
  KlapLink* const at = link_at(link);
  if (at->launches == 0) return;
  if (buffer != nullptr && __klap_device_launch(buffer, reinterpret_cast<void*>(kFireAndForget)) == 0) {
    at->refused = 0;
    return;
  }
  ++at->kept;
  if (at->skips != 0) {
    --at->skips;
  } else {
    at->refused = at->refused < kMostSkipped ? 2 * at->refused + 1 : kMostSkipped;
    at->skips = at->refused;
  }
}
