// The memory of frames (ptx-patterns/templates/suspension/frames.cu), taken and given back by many blocks at
// once: no two of them may have the same bytes at the same time. Blocks hand frames to each other, so that
// these come back on other multiprocessors than those that they were cut on. A second run has a heap that is
// too small for all.
#include "program.h"
#include "suspension/frames.cu"

constexpr unsigned kThreads = 32, kMailboxes = 64, kHeld = 6;

struct Counts {
  unsigned long long taken, refused, wrong;
};

__device__ KlapFrame* mailboxes[kMailboxes];

// Sizes around those that frames have, too large for a chunk, and larger than any size.
__device__ unsigned long long bytes_for(unsigned random) {
  constexpr unsigned kSizesAsked[] = {100, 256, 257, 1000, 1025, 5000, 20480, 65536, 65537, 300000, 1200000};
  constexpr unsigned kMany = sizeof(kSizesAsked) / sizeof(unsigned);
  // Large ones are rare.
  const unsigned which = random % 64;
  return kSizesAsked[which < 56 ? which % 7 : (which - 56) % (kMany - 7) + 7];
}

__device__ unsigned next_random(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

// Writes the frame's bytes behind its header: how many there are, then a mark in words spread over them.
__device__ void fill(KlapFrame* frame, unsigned long long bytes, unsigned mark) {
  unsigned* const words = reinterpret_cast<unsigned*>(frame);
  if (threadIdx.x == 0) frame->block[0] = static_cast<unsigned>(bytes), frame->block[1] = mark;
  for (unsigned long long at = KLAP_FRAME_BYTES + 4 * threadIdx.x; at + 4 <= bytes;
       at += bytes / 8 / 4 * 4 + 128)
    words[at / 4] = mark + static_cast<unsigned>(at);
  __syncwarp();
}

__device__ bool is_intact(KlapFrame* frame) {
  const unsigned* const words = reinterpret_cast<const unsigned*>(frame);
  const unsigned long long bytes = frame->block[0];
  const unsigned mark = frame->block[1];
  bool is_right = true;
  for (unsigned long long at = KLAP_FRAME_BYTES + 4 * threadIdx.x; at + 4 <= bytes;
       at += bytes / 8 / 4 * 4 + 128)
    is_right = is_right && words[at / 4] == mark + static_cast<unsigned>(at);
  return __all_sync(~0u, is_right);
}

__device__ KlapFrame* take(unsigned long long bytes, Counts* counts) {
  unsigned long long frame = 0;
  if (threadIdx.x == 0) {
    frame = reinterpret_cast<unsigned long long>(__klap_take_frame(bytes));
    atomicAdd(frame ? &counts->taken : &counts->refused, 1ull);
  }
  __syncwarp();
  return reinterpret_cast<KlapFrame*>(__shfl_sync(~0u, frame, 0));
}

__device__ void check_and_give(KlapFrame* frame, Counts* counts) {
  const bool is_right = is_intact(frame);
  __syncwarp();
  if (threadIdx.x != 0) return;
  if (!is_right) atomicAdd(&counts->wrong, 1ull);
  __klap_give_frame(frame);
}

// Leaves the frame in a mailbox and takes what was there.
__device__ KlapFrame* swap(KlapFrame* frame, unsigned mailbox) {
  unsigned long long found = 0;
  __syncwarp();
  if (threadIdx.x == 0) {
    __threadfence();
    found = atomicExch(reinterpret_cast<unsigned long long*>(&mailboxes[mailbox]),
                       reinterpret_cast<unsigned long long>(frame));
    __threadfence();
  }
  __syncwarp();
  return reinterpret_cast<KlapFrame*>(__shfl_sync(~0u, found, 0));
}

__global__ void take_and_give(int rounds, unsigned seed, bool has_sizes, Counts* counts) {
  // Not in registers: a round uses any of them.
  KlapFrame* held[kHeld] = {};
  unsigned state = seed + 7919 * blockIdx.x;
  for (int round = 0; round < rounds; ++round) {
    const unsigned place = next_random(state) % kHeld;
    if (held[place] != nullptr && next_random(state) % 2 == 0)
      held[place] = swap(held[place], next_random(state) % kMailboxes);
    if (held[place] != nullptr) check_and_give(held[place], counts);
    // With one size alone, most frames come from a few lists.
    const unsigned long long bytes = has_sizes ? bytes_for(next_random(state)) : 1000;
    held[place] = take(bytes, counts);
    if (held[place] != nullptr) fill(held[place], bytes, seed ^ (blockIdx.x << 16 | round));
  }
  for (KlapFrame* const each : held)
    if (each != nullptr) check_and_give(each, counts);
}

__global__ void empty_mailboxes(Counts* counts) {
  for (KlapFrame*& each : mailboxes) {
    KlapFrame* const frame = each;
    __syncwarp();
    if (frame != nullptr) check_and_give(frame, counts);
    if (threadIdx.x == 0) each = nullptr;
    __syncwarp();
  }
}

int main(int count, char** arguments) {
  gpu::Report report("frames");
  const bool is_small = count > 1 && std::string(arguments[1]) == "small";
  const int blocks = count > 2 ? std::atoi(arguments[2]) : 264,
            rounds = count > 3 ? std::atoi(arguments[3]) : 60;
  gpu::check(cudaDeviceSetLimit(cudaLimitMallocHeapSize, is_small ? size_t{8} << 20 : size_t{1} << 30),
             "heap size");
  const gpu::Buffer<Counts> counts(1);
  for (unsigned seed = 1; seed <= 4; ++seed) {
    take_and_give<<<blocks, kThreads>>>(rounds, seed, seed % 2 == 0, counts.data());
    empty_mailboxes<<<1, kThreads>>>(counts.data());
    gpu::wait("frames");
  }
  const Counts found = counts.to_host()[0];
  report.expect(found.wrong == 0, "%llu frames were not as their block had left them", found.wrong);
  report.expect(found.taken > 0, "no frame was taken");
  report.expect(is_small || found.refused == 0, "%llu frames were refused", found.refused);
  return report.finish();
}
