// The contract of memory: a grid sees all that its launching thread knew when it launched it. Shared memory
// is nobody else's, and blocks of a child may hand on values.
#include "contract_forms.h"

namespace klap::differential::contract::memory {

constexpr int kCount = 40;

#ifdef __CUDACC__

__global__ void sum_up(int* cells, const int* from, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum = (sum * 3 + from[i]) & 0xffff;
  note(cells, sum);
}
__global__ void fill(int* to, int count, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[i] = i * value + to[i];
}

// A list in memory, of which each grid appends an element.
struct Element {
  int value;
  Element* next;
};
__global__ void append(Element* elements, int number, int value) {
  elements[number].value = value;
  elements[number].next = nullptr;
  if (number > 0) elements[number - 1].next = elements + number;
}
__global__ void walk(int* log, const Element* first) {
  for (const Element* at = first; at != nullptr; at = at->next) note(log, at->value);
}

__global__ void clear_cells(int* cells, int count) {
  for (int i = 0; i < count; ++i) cells[i] = 0;
}

// The last block of a grid sums what the others have written, before the grid is complete.
__global__ void last_block(int* cells) {
  __shared__ bool is_last;
  cells[kOther + blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(blockIdx.x + threadIdx.x);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(cells + kSum, 1) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  __threadfence();
  int sum = 0;
  for (unsigned int i = 0; i < gridDim.x * blockDim.x; ++i)
    sum += static_cast<volatile int*>(cells)[kOther + i];
  note(cells, sum);
  atomicExch(cells + kSum, 0);
}

// Shared memory that each block fills and reads for itself.
template <int Words>
__global__ void through_shared(int* cells, int value) {
  __shared__ int words[Words];
  for (int i = static_cast<int>(threadIdx.x); i < Words; i += 32) words[i] = value + i;
  __syncthreads();
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < Words; i += 32) sum += words[Words - 1 - i];
  atomicAdd(cells + kSum + blockIdx.x, sum);
}
__global__ void note_cells(int* log, const int* cells, int count) {
  for (int i = 0; i < count; ++i) note(log, cells[i] & 0xffff);
}

__global__ void take_and_free(int* log, int* memory, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += memory[i];
  note(log, sum);
  free(memory);
}

#endif

inline int sum_of(const int* from, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum = (sum * 3 + from[i]) & 0xffff;
  return sum;
}

// ---- what a child sees of its launcher ----

template <class Stream>
struct OwnWrites : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 0; i < kCount; ++i) cells[kOther + i] += i * i;
    sum_up<<<1, 1, 0, handle>>>(cells, cells + kOther, kCount);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid sees what its thread wrote to global memory before the launch.";
  static constexpr const char* kWrong = "a child does not see a store of its launching thread";
  static std::string form() { return Stream::kName; }
  static void expect(int* cells) {
    for (int i = 0; i < kCount; ++i) cells[kOther + i] += i * i;
    note(cells, sum_of(cells + kOther, kCount));
  }
#endif
};
template <class Stream>
struct WritesOfBlock : Grid<1, 64> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int t = static_cast<int>(threadIdx.x);
    if (t < kCount) cells[kOther + t] += 5 * t + 1;
    __syncthreads();
    if (t != 63) return;
    Stream stream;
    sum_up<<<1, 1, 0, stream.open(cells)>>>(cells, cells + kOther, kCount);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid sees what other threads wrote, if these are synchronised with its "
      "launching thread before the launch.";
  static constexpr const char* kWrong = "a child does not see a store that a barrier puts before its launch";
  static std::string form() { return std::string(Stream::kName) + ", a barrier of the block"; }
  static void expect(int* cells) {
    for (int t = 0; t < kCount; ++t) cells[kOther + t] += 5 * t + 1;
    note(cells, sum_of(cells + kOther, kCount));
  }
#endif
};
// The block that comes last launches for all of them.
template <class Stream>
struct WritesOfGrid : Grid<5, 8> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int t = static_cast<int>(threadIdx.x), i = static_cast<int>(blockIdx.x) * 8 + t;
    cells[kOther + i] += 3 * i;
    __threadfence();
    __syncwarp(0xff);
    if (t != 0 || atomicAdd(cells + kSum, 1) != 4) return;
    __threadfence();
    atomicExch(cells + kSum, 0);
    Stream stream;
    sum_up<<<1, 1, 0, stream.open(cells)>>>(cells, cells + kOther, kCount);
    stream.close();
  }
#else
  static constexpr const char* kSays = WritesOfBlock<Stream>::kSays;
  static constexpr const char* kWrong =
      "a child does not see a store of a block that its launcher has waited for";
  static std::string form() { return std::string(Stream::kName) + ", fences and a counter of the grid"; }
  static void expect(int* cells) {
    for (int i = 0; i < kCount; ++i) cells[kOther + i] += 3 * i;
    note(cells, sum_of(cells + kOther, kCount));
  }
#endif
};

// ---- memory that grids share ----

template <class Stream>
struct Lists : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    Element* const elements = reinterpret_cast<Element*>(cells + kOther);
    for (int i = 0; i < 6; ++i) append<<<1, 1, 0, handle>>>(elements, i, 10 + i);
    walk<<<1, 1, 0, handle>>>(cells, elements);
    clear_cells<<<1, 1, 0, handle>>>(cells + kOther, 24);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Pointers to global memory may be stored there and followed by any grid.";
  static constexpr const char* kWrong = "a grid follows an old pointer";
  static std::string form() { return std::string("a list in ") + Stream::kName; }
  static void expect(int* cells) {
    for (int i = 0; i < 6; ++i) note(cells, 10 + i);
  }
#endif
};
// ---- memory of a block, and of a grid while it runs ----

struct LastBlock : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    last_block<<<6, 8>>>(cells);
    last_block<<<3, 8>>>(cells);
  }
#else
  static constexpr const char* kSays =
      "Blocks of a child may hand on values by fences and atomic operations.";
  static constexpr const char* kWrong = "blocks of a child do not see each other's writes behind a fence";
  static std::string form() { return "the block that comes last sums"; }
  static void expect(int* cells) {
    for (const int blocks : {6, 3}) {
      int sum = 0;
      for (int i = 0; i < 8 * blocks; ++i) sum += cells[kOther + i] = i / 8 + i % 8;
      note(cells, sum);
    }
  }
#endif
};
template <class Stream>
struct SharedOfBlocks : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    through_shared<100><<<5, 32, 0, handle>>>(cells, 3);
    through_shared<64><<<3, 32, 0, handle>>>(cells, 1000);
    through_shared<100><<<4, 32, 0, handle>>>(cells, 20);
    note_cells<<<1, 1, 0, handle>>>(cells, cells + kSum, 5);
    stream.close();
  }
#else
  static constexpr const char* kSays = "Shared memory belongs to a block, whatever grids run beside it.";
  static constexpr const char* kWrong = "a block reads what another one wrote to its own shared memory";
  static std::string form() { return std::string(Stream::kName) + ", arrays of two sizes"; }
  static void expect(int* cells) {
    const auto add = [&](int blocks, int words, int value) {
      for (int block = 0; block < blocks; ++block)
        cells[kSum + block] += words * value + words * (words - 1) / 2;
    };
    add(5, 100, 3), add(3, 64, 1000), add(4, 100, 20);
    for (int i = 0; i < 5; ++i) note(cells, cells[kSum + i] & 0xffff);
  }
#endif
};
struct HeapMemory : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    int* const memory = static_cast<int*>(malloc(kCount * sizeof(int)));
    if (memory == nullptr) return;
    for (int i = 0; i < kCount; ++i) memory[i] = i;
    fill<<<5, 8>>>(memory, kCount, 2);
    take_and_free<<<1, 1>>>(cells, memory, kCount);
  }
#else
  static constexpr const char* kSays =
      "Memory of the device heap is global: children may use it, and free it.";
  static constexpr const char* kWrong = "a child does not find what is in memory of the heap";
  static std::string form() { return "one child writes, the next one frees"; }
  static void expect(int* cells) { note(cells, 3 * kCount * (kCount - 1) / 2); }
#endif
};

// ---- rows ----

AT_LEVELS(own_null, OwnWrites<NullStream>)
AT_LEVELS(own_thread, OwnWrites<ThreadStream>)
AT_LEVELS(own_created, OwnWrites<CreatedStream>)
AT_LEVELS(own_forget, OwnWrites<ForgetStream>)
AT_LEVELS(own_tail, OwnWrites<TailStream>)
CONTRACT(contract_own_forget_blocks, ByBlocks, OwnWrites<ForgetStream>)
AT_LEVELS(block_null, WritesOfBlock<NullStream>)
AT_LEVELS(block_created, WritesOfBlock<CreatedStream>)
AT_LEVELS(block_forget, WritesOfBlock<ForgetStream>)
AT_LEVELS(grid_null, WritesOfGrid<NullStream>)
AT_LEVELS(grid_forget, WritesOfGrid<ForgetStream>)
AT_LEVELS(lists_null, Lists<NullStream>)
AT_LEVELS(lists_created, Lists<CreatedStream>)
AT_LEVELS(last_block, LastBlock)
AT_LEVELS(shared_null, SharedOfBlocks<NullStream>)
AT_LEVELS(shared_forget, SharedOfBlocks<CreatedStream>)
AT_LEVELS(heap, HeapMemory)

}  // namespace klap::differential::contract::memory
