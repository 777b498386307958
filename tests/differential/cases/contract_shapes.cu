// The contract of a launch's shape: the grid and the blocks that the program names are those that the child
// gets, wherever and by whomever it is launched.
#include "contract_forms.h"

namespace klap::differential::contract::shapes {

// A number for a thread of a grid, in which every coordinate counts.
KLAP_SHARED inline int number_of(int bx, int by, int bz, int tx, int ty, int tz) {
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

}  // namespace klap::differential::contract::shapes
