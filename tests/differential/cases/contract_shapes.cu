// The contract of a launch's shape: the grid and the blocks that the program names are those that the child
// gets, wherever and by whomever it is launched.
#include "contract_forms.h"

namespace klap::differential::contract::shapes {

// A number for a thread of a grid, in which every coordinate counts.
KLAP_SHARED static inline int number_of(int bx, int by, int bz, int tx, int ty, int tz) {
  return (bx * 7 + by * 1013 + bz * 5003 + tx * 31 + ty * 733 + tz * 2999) & 0xffff;
}

#ifdef __CUDACC__

__device__ __forceinline__ int own_number() {
  return number_of(static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z),
                   static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y),
                   static_cast<int>(threadIdx.z));
}
// Sums the numbers of all threads. One thread adds the extents.
__global__ void visit(int* cell) {
  const int number = own_number();
  atomicAdd(cell, number);
  if (number != 0 || threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z != 0)
    return;
  atomicAdd(cell, static_cast<int>(gridDim.x + 3 * gridDim.y + 5 * gridDim.z + 7 * blockDim.x +
                                   11 * blockDim.y + 13 * blockDim.z));
}
__global__ void note_and_clear(int* log, int* cell) {
  note(log, *cell);
  *cell = 0;
}
__device__ __forceinline__ dim3 dim_at(const int* cells) {
  return dim3(static_cast<unsigned int>(cells[0]), static_cast<unsigned int>(cells[1]),
              static_cast<unsigned int>(cells[2]));
}
// A grid of three dimensions, of which one thread of each block launches such a grid.
__global__ void visit_again(int* cell) {
  if (threadIdx.x == 1 && threadIdx.y == 2 && threadIdx.z == 0)
    visit<<<dim3(blockIdx.x + 1, 2, blockIdx.y + 1), dim3(2, blockDim.x, 3)>>>(cell);
}

#endif

// ---- threads of a block that meet ----

constexpr int kMostMeeting = 100, kRoundsOfTurning = 3;

// The threads of a block hand their values round.
#ifdef __CUDACC__
__device__ __forceinline__ void turn(int* cells, int thread, int threads, int amount) {
  __shared__ int values[kMostMeeting];
  values[thread] = cells[thread];
#pragma unroll 1
  for (int round = 0; round < kRoundsOfTurning; ++round) {
    __syncthreads();
    const int next = values[(thread + 1) % threads];
    __syncthreads();
    values[thread] = (next * 3 + amount + round) & 0xffff;
  }
  cells[thread] = values[thread];
}
__global__ void turn_row(int* cells, int amount) {
  turn(cells + blockIdx.x * kMostMeeting, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x),
       amount);
}
__global__ void turn_brick(int* cells, int amount) {
  const unsigned int rows = threadIdx.y + blockDim.y * threadIdx.z;
  turn(cells, static_cast<int>(threadIdx.x + blockDim.x * rows),
       static_cast<int>(blockDim.x * blockDim.y * blockDim.z), amount);
}
// Launches itself in blocks of half its size, when all threads have written.
__global__ void turn_halves(int* cells, int amount) {
  turn(cells, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), amount);
  if (threadIdx.x == 0 && blockDim.x > 1)
    turn_halves<<<1, blockDim.x / 2, 0, cudaStreamTailLaunch>>>(cells, amount + 1);
}
// Some threads leave before others meet.
__global__ void turn_or_leave(int* cells, int amount) {
  const int threads = static_cast<int>(blockDim.x) - 1;
  if (static_cast<int>(threadIdx.x) >= threads) return;
  turn(cells, static_cast<int>(threadIdx.x), threads, amount);
}
__global__ void count_at_barrier(int* cells, int amount) {
  const int odd = __syncthreads_count(static_cast<int>(threadIdx.x) % 2);
  cells[threadIdx.x] += odd + amount;
}
#else
inline void turn(int* cells, int threads, int amount) {
  for (int round = 0; round < kRoundsOfTurning; ++round) {
    const int first = cells[0];
    for (int t = 0; t < threads; ++t)
      cells[t] = ((t + 1 < threads ? cells[t + 1] : first) * 3 + amount + round) & 0xffff;
  }
}
#endif

// Blocks from one thread to more than three warps, with and without full warps, in turn.
KLAP_SHARED static constexpr int threads_of_meeting(int i) {
  return i % 3 == 0 ? 32 * (1 + i % 2) : 1 + i * 37 % kMostMeeting;
}
constexpr int kMeetings = 12;

template <class Stream>
struct MeetingBlocks : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
#pragma unroll 1
    for (int i = 0; i < kMeetings; ++i) turn_row<<<2, threads_of_meeting(i), 0, handle>>>(cells, i);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "The barrier of a block holds all threads of the block, and no others.";
  static constexpr const char* kWrong = "a barrier lets a thread go before others have come, or never";
  static std::string form() { return std::string(Stream::kName) + ", rows of 1 to 99 threads"; }
  static void expect(int* cells) {
    for (int i = 0; i < kMeetings; ++i) {
      for (int block = 0; block < 2; ++block) turn(cells + block * kMostMeeting, threads_of_meeting(i), i);
    }
  }
#endif
};
struct MeetingBricks : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
#pragma unroll 1
    for (unsigned int i = 1; i < 5; ++i) turn_brick<<<1, dim3(i, 3, 2 * i)>>>(cells, static_cast<int>(i));
  }
#else
  static constexpr const char* kSays = MeetingBlocks<NullStream>::kSays;
  static constexpr const char* kWrong = MeetingBlocks<NullStream>::kWrong;
  static std::string form() { return "blocks of three dimensions"; }
  static void expect(int* cells) {
    for (int i = 1; i < 5; ++i) turn(cells, 6 * i * i, i);
  }
#endif
};
struct MeetingHalves : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) { turn_halves<<<1, 99>>>(cells, 5); }
#else
  static constexpr const char* kSays = MeetingBlocks<NullStream>::kSays;
  static constexpr const char* kWrong = MeetingBlocks<NullStream>::kWrong;
  static std::string form() { return "a kernel that launches itself in halves of its block"; }
  static void expect(int* cells) {
    for (int threads = 99, amount = 5; threads > 0; threads /= 2) turn(cells, threads, amount++);
  }
#endif
};
// The blocks are constants, one of them the largest.
struct MeetingSizes : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    turn_row<<<2, 64>>>(cells, 1);
    turn_brick<<<1, dim3(8, 4, 1)>>>(cells, 2);
    turn_halves<<<1, 96>>>(cells, 3);
    turn_brick<<<1, dim3(8, 4, 1)>>>(cells, 4);
  }
#else
  static constexpr const char* kSays = MeetingBlocks<NullStream>::kSays;
  static constexpr const char* kWrong = MeetingBlocks<NullStream>::kWrong;
  static std::string form() { return "blocks of constant sizes, one of them after the other"; }
  static void expect(int* cells) {
    for (int block = 0; block < 2; ++block) turn(cells + block * kMostMeeting, 64, 1);
    turn(cells, 32, 2);
    for (int threads = 96, amount = 3; threads > 0; threads /= 2) turn(cells, threads, amount++);
    turn(cells, 32, 4);
  }
#endif
};
struct MeetingAfterSomeLeft : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
#pragma unroll 1
    for (int i = 0; i < 5; ++i) turn_or_leave<<<1, 2 + 20 * i>>>(cells, i);
  }
#else
  static constexpr const char* kSays = MeetingBlocks<NullStream>::kSays;
  static constexpr const char* kWrong = MeetingBlocks<NullStream>::kWrong;
  static std::string form() { return "one thread of each block has ended"; }
  static void expect(int* cells) {
    for (int i = 0; i < 5; ++i) turn(cells, 1 + 20 * i, i);
  }
#endif
};
struct CountingMeetings : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
#pragma unroll 1
    for (int i = 0; i < 5; ++i) count_at_barrier<<<1, 2 + 20 * i>>>(cells, i);
  }
#else
  static constexpr const char* kSays = MeetingBlocks<NullStream>::kSays;
  static constexpr const char* kWrong = MeetingBlocks<NullStream>::kWrong;
  static std::string form() { return "barriers that count"; }
  static void expect(int* cells) {
    for (int i = 0; i < 5; ++i) {
      for (int t = 0; t < 2 + 20 * i; ++t) cells[t] += 1 + 10 * i + i;
    }
  }
#endif
};

constexpr int kHere = 200;  // where visit() sums

// ---- grids and blocks ----

template <int X, int Y, int Z>
struct Extents {
  static constexpr int kX = X, kY = Y, kZ = Z;
};

#ifndef __CUDACC__
inline int visited(int gx, int gy, int gz, int bx, int by, int bz) {
  unsigned int sum = static_cast<unsigned int>(gx + 3 * gy + 5 * gz + 7 * bx + 11 * by + 13 * bz);
  for (int block = 0; block < gx * gy * gz; ++block) {
    for (int thread = 0; thread < bx * by * bz; ++thread)
      sum += static_cast<unsigned int>(number_of(block % gx, block / gx % gy, block / gx / gy, thread % bx,
                                                 thread / bx % by, thread / bx / by));
  }
  return static_cast<int>(sum);
}
inline std::string text_of(int x, int y, int z) {
  return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
}
#endif

template <class Stream, class Blocks, class Threads, bool IsConstant>
struct Shape : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 0; i < 2; ++i) {
      if constexpr (IsConstant) {
        visit<<<dim3(Blocks::kX, Blocks::kY, Blocks::kZ), dim3(Threads::kX, Threads::kY, Threads::kZ), 0,
                handle>>>(cells + kHere);
      } else {
        visit<<<dim_at(cells + kSum), dim_at(cells + kSum + 3), 0, handle>>>(cells + kHere);
      }
      note_and_clear<<<1, 1, 0, handle>>>(cells, cells + kHere);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A child has the grid and the blocks that its launch names, in up to three dimensions each.";
  static constexpr const char* kWrong = "a thread is lost, runs twice, or finds other coordinates or extents";
  static std::string form() {
    return "grid " + text_of(Blocks::kX, Blocks::kY, Blocks::kZ) + ", block " +
           text_of(Threads::kX, Threads::kY, Threads::kZ) + (IsConstant ? ", constants" : ", from memory") +
           "; " + Stream::kName;
  }
  static void set(int* cells) {
    const int extents[] = {Blocks::kX, Blocks::kY, Blocks::kZ, Threads::kX, Threads::kY, Threads::kZ};
    for (int i = 0; i < 6; ++i) cells[kSum + i] = extents[i];
  }
  static void expect(int* cells) {
    const int sum = visited(Blocks::kX, Blocks::kY, Blocks::kZ, Threads::kX, Threads::kY, Threads::kZ);
    note(cells, sum), note(cells, sum);
  }
#endif
};
struct ShapesOfShapes : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    visit_again<<<dim3(3, 2), dim3(2, 4)>>>(cells + kHere);
    note_and_clear<<<1, 1>>>(cells, cells + kHere);
    visit_again<<<dim3(2, 3), dim3(3, 3, 2)>>>(cells + kHere);
    note_and_clear<<<1, 1>>>(cells, cells + kHere);
  }
#else
  static constexpr const char* kSays =
      "Grids of any shape launch grids of any other shape, by the numbers of their "
      "own blocks and threads.";
  static constexpr const char* kWrong = "a grid that a block of three dimensions launches has another shape";
  static std::string form() { return "three dimensions on two levels"; }
  static int visited_again(int gx, int gy, int bx) {
    int sum = 0;
    for (int x = 0; x < gx; ++x) {
      for (int y = 0; y < gy; ++y) sum += visited(x + 1, 2, y + 1, 2, bx, 3);
    }
    return sum;
  }
  static void expect(int* cells) {
    note(cells, visited_again(3, 2, 2));
    note(cells, visited_again(2, 3, 3));
  }
#endif
};

// ---- rows ----

#define SHAPE(name, blocks, threads, is_constant) \
  AT_LEVELS(shape_##name, Shape<NullStream, blocks, threads, is_constant>)

using OneBlock = Extents<1, 1, 1>;
using Row = Extents<9, 1, 1>;
using Plane = Extents<4, 3, 1>;
using Cube = Extents<2, 3, 4>;
using LongRow = Extents<3000, 1, 1>;
using OneThread = Extents<1, 1, 1>;
using Odd = Extents<31, 1, 1>;
using Warp = Extents<32, 1, 1>;
using MoreThanWarp = Extents<33, 1, 1>;
using Whole = Extents<1024, 1, 1>;
using Tile = Extents<8, 4, 1>;
using Brick = Extents<3, 5, 2>;
using Layers = Extents<1, 2, 64>;

SHAPE(row_of_threads, Row, OneThread, true)
SHAPE(row_of_odd, Row, Odd, true)
SHAPE(block_of_more, OneBlock, MoreThanWarp, true)
SHAPE(plane_of_tiles, Plane, Tile, true)
SHAPE(cube_of_bricks, Cube, Brick, true)
SHAPE(cube_of_warps, Cube, Warp, true)
SHAPE(whole_block, OneBlock, Whole, true)
SHAPE(layers, Row, Layers, true)
SHAPE(long_row, LongRow, OneThread, true)
SHAPE(row_from_memory, Row, Odd, false)
SHAPE(plane_from_memory, Plane, Brick, false)
SHAPE(cube_from_memory, Cube, Tile, false)
SHAPE(whole_from_memory, OneBlock, Whole, false)
CONTRACT(contract_shape_thread, Twice, Shape<ThreadStream, Cube, Brick, false>)
CONTRACT(contract_shape_created, Twice, Shape<CreatedStream, Plane, Tile, true>)
CONTRACT(contract_shape_tail, Twice, Shape<TailStream, Cube, Brick, true>)
CONTRACT(contract_shape_blocks, ByBlocks, Shape<NullStream, Cube, Brick, false>)
AT_LEVELS(shapes_of_shapes, ShapesOfShapes)
AT_LEVELS(meeting_blocks, MeetingBlocks<NullStream>)
AT_LEVELS(meeting_blocks_created, MeetingBlocks<CreatedStream>)
CONTRACT(contract_meeting_blocks_tail, ByBlocks, MeetingBlocks<TailStream>)
AT_LEVELS(meeting_bricks, MeetingBricks)
AT_LEVELS(meeting_halves, MeetingHalves)
AT_LEVELS(meeting_sizes, MeetingSizes)
AT_LEVELS(meeting_after_some_left, MeetingAfterSomeLeft)
AT_LEVELS(counting_meetings, CountingMeetings)

}  // namespace klap::differential::contract::shapes
