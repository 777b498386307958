// Copies and fills of memory that device code puts into streams, in kernels that the executor runs and in
// their parents: in the order of launches, in each kind of stream, of any size and alignment, and with the
// codes that CUDA returns (an H100 with driver 580).
#include "case.h"

KLAP_SHARED static inline int next_value(int value) {
  return static_cast<int>((value * 1103515245u + 12345u) >> 3);
}

// A copy in two dimensions.
struct Box {
  unsigned to, to_pitch, from, from_pitch, width, height;
};
// A copy in three dimensions. Each side has a beginning, bytes of a row, and rows of a slice. The copy begins
// at some place in there.
struct Slices {
  unsigned to, to_pitch, to_rows, from, from_pitch, from_rows, x, y, z, width, height, depth;
};

#ifdef __CUDACC__

constexpr cudaMemcpyKind kOnDevice = cudaMemcpyDeviceToDevice;

// ---- in the order of launches ----

__global__ void step_cells(int* cells, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    cells[i] = next_value(cells[i]);
}

// Every node writes down what the cells were before its subtree and behind it, in rows of its own.
__global__ void snapshots(int* cells, int* rows, int* free_row, int depth) {
  int* const before = rows + 48 * (*free_row)++;
  cudaMemcpyAsync(before, cells, 48 * sizeof(int), kOnDevice);
  step_cells<<<1, 32>>>(cells, 48);
  if (depth > 0) {
    snapshots<<<1, 1>>>(cells, rows, free_row, depth - 1);
    cudaMemsetAsync(cells + 3 * depth, depth, 10);
    snapshots<<<1, 1>>>(cells, rows, free_row, depth - 1);
  }
  cudaMemcpyAsync(before + 24, cells + 24, 24 * sizeof(int), cudaMemcpyDefault);
}
extern "C" __global__ void begin_snapshots(int* cells, int* rows, int* free_row) {
  cudaMemsetAsync(cells, 5, 48 * sizeof(int));
  snapshots<<<1, 1>>>(cells, rows, free_row, 3);
  cudaMemcpyAsync(rows, cells, 24 * sizeof(int), kOnDevice);
  snapshots<<<1, 1>>>(cells, rows, free_row, 2);
}

// ---- streams ----

// A kernel without launches, whose threads have streams of their own.
__global__ void by_threads(int* rows) {
  int* const row = rows + 8 * (blockIdx.x * blockDim.x + threadIdx.x);
  cudaMemsetAsync(row, static_cast<int>(threadIdx.x), 16, cudaStreamPerThread);
  cudaMemcpyAsync(row + 4, row, 8, kOnDevice, cudaStreamPerThread);
  cudaMemcpyAsync(row + 6, row + 4, 8, kOnDevice, cudaStreamPerThread);
}
__global__ void copy_cell(int* to, const int* from) { *to = *from; }
__global__ void one_more(int* cell) { ++*cell; }

// The tail comes behind all else, in its own order. What is fired and forgotten is complete by then.
__global__ void in_streams(int* cells, int* rows, int depth) {
  cudaMemcpyAsync(cells + 1, cells, 4, kOnDevice, cudaStreamTailLaunch);
  one_more<<<1, 1, 0, cudaStreamTailLaunch>>>(cells + 1);
  cudaMemcpyAsync(cells + 2, cells + 1, 4, kOnDevice, cudaStreamTailLaunch);
  cudaMemsetAsync(cells + 4, depth + 1, 40, cudaStreamFireAndForget);
  cudaStream_t a, b;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  for (int i = 0; i < 4; ++i) {
    one_more<<<1, 1, 0, a>>>(cells + 16);
    cudaMemcpyAsync(cells + 17 + i, cells + 16, 4, kOnDevice, a);
    cudaMemsetAsync(cells + 24, i, 4, b);
    copy_cell<<<1, 1, 0, b>>>(cells + 25 + i, cells + 24);
  }
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
  by_threads<<<2, 40>>>(rows);
  one_more<<<1, 1>>>(cells);
  if (depth > 0) in_streams<<<1, 1>>>(cells + 32, rows + 640, depth - 1);
}
extern "C" __global__ void begin_streams_of_copies(int* cells, int* rows) {
  in_streams<<<1, 1>>>(cells, rows, 2);
}

// Threads of the parent and of a child that put copies and launches into their block's NULL stream.
__global__ void add_to(int* total, const int* cell) { *total += *cell; }
__global__ void of_block(int* cells, int* totals, int rounds) {
  const int i = static_cast<int>(threadIdx.x);
  int* const cell = cells + 64 * blockIdx.x + i;
  if (i % 3 != 0) cudaMemsetAsync(cell, i, 1);
  __syncthreads();
  if (i % 2 == 0) cudaMemcpyAsync(cell + 32, cell, 4, kOnDevice);
  __syncthreads();
  if (i % 4 == 0) add_to<<<1, 1>>>(totals + blockIdx.x, cell + 32);
  if (i == 0 && rounds > 0) of_block<<<2, 32, 0, cudaStreamTailLaunch>>>(cells + 128, totals + 2, rounds - 1);
}
extern "C" __global__ void blocks_of_copies(int* cells, int* totals) {
  const int i = static_cast<int>(threadIdx.x);
  int* const cell = cells + 64 * blockIdx.x + i;
  if (i % 3 != 0) cudaMemsetAsync(cell, i, 1);
  __syncthreads();
  cudaMemcpyAsync(cell + 32, cell, 4, kOnDevice);
  __syncthreads();
  if (i % 4 == 0) add_to<<<1, 1>>>(totals + blockIdx.x, cell + 32);
  if (i == 0)
    of_block<<<2, 32, 0, cudaStreamTailLaunch>>>(cells + 128 + 256 * blockIdx.x, totals + 2 + 4 * blockIdx.x,
                                                 1);
}

// ---- sizes ----

__global__ void copy_boxes(char* to, const char* from, const Box* boxes, int count) {
  for (int i = 0; i < count; ++i) {
    const Box box = boxes[i];
    if (box.height == 1) {
      cudaMemcpyAsync(to + box.to, from + box.from, box.width, kOnDevice);
      cudaMemsetAsync(to + box.to + box.width + 1, i, box.width / 2);
    } else {
      cudaMemcpy2DAsync(to + box.to, box.to_pitch, from + box.from, box.from_pitch, box.width, box.height,
                        cudaMemcpyDefault);
      cudaMemset2DAsync(to + box.to + 1, box.to_pitch, i, box.width / 3, box.height / 2);
    }
  }
}
extern "C" __global__ void sizes_of_copies(char* to, const char* from, const Box* boxes, int count) {
  copy_boxes<<<1, 1>>>(to, from, boxes, count);
}

__device__ cudaPitchedPtr pitched(const void* begin, size_t pitch, size_t rows) {
  return {const_cast<void*>(begin), pitch, pitch, rows};
}
__global__ void copy_passed(cudaMemcpy3DParms copy) { cudaMemcpy3DAsync(&copy, nullptr); }
__device__ void copy_and_fill_slices(char* to, const char* from, const Slices& box, int value) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = pitched(from + box.from, box.from_pitch, box.from_rows);
  copy.srcPos = {box.x, box.y, box.z};
  copy.dstPtr = pitched(to + box.to, box.to_pitch, box.to_rows);
  copy.dstPos = {box.z, box.x, box.y};
  copy.extent = {box.width, box.height, box.depth};
  copy.kind = value % 2 == 0 ? kOnDevice : cudaMemcpyDefault;
  if (value % 4 == 3) {
    copy_passed<<<1, 1>>>(copy);
  } else {
    cudaMemcpy3DAsync(&copy, nullptr);
  }
  cudaMemset3DAsync(pitched(to + box.to + 1, box.to_pitch, box.to_rows), value,
                    {box.width / 3, box.height / 2, (box.depth + 1) / 2}, nullptr);
}
__global__ void copy_slices(char* to, const char* from, const Slices* boxes, int count) {
  for (int i = 0; i < count; ++i) copy_and_fill_slices(to, from, boxes[i], i);
}
extern "C" __global__ void slices_of_copies(char* to, const char* from, const Slices* boxes, int count) {
  copy_and_fill_slices(to, from, boxes[0], 0);
  copy_slices<<<1, 1>>>(to, from, boxes + 1, count - 1);
  copy_and_fill_slices(to, from, boxes[1], 9);
}

__global__ void step_bytes(unsigned char* bytes, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) bytes[i] = static_cast<unsigned char>(3 * bytes[i] + i);
}
// Large ones between wide grids.
__global__ void copy_large(unsigned char* a, unsigned char* b, int bytes, int rounds) {
  step_bytes<<<(bytes + 255) / 256, 256>>>(a, bytes);
  cudaMemcpyAsync(b + 4, a, bytes, kOnDevice);
  cudaMemsetAsync(a + bytes / 3, rounds, bytes / 2);
  step_bytes<<<(bytes + 255) / 256, 256>>>(b + 3, bytes);
  cudaMemcpyAsync(a + 1, b, bytes / 3, kOnDevice);
  if (rounds > 1) copy_large<<<1, 1>>>(a, b, bytes, rounds - 1);
}
extern "C" __global__ void large_copies(unsigned char* a, unsigned char* b, int bytes) {
  copy_large<<<1, 1>>>(a, b, bytes, 3);
}

// ---- codes ----

// Writes down what a call returns, and the last error behind it.
struct Codes {
  int* next;
  __device__ void operator()(cudaError_t returned) {
    *next++ = returned;
    *next++ = cudaGetLastError();
  }
};
__device__ void refused_copies(int* codes, char* to, const char* from, cudaMemcpyKind wrong,
                               cudaStream_t none) {
  __shared__ int shared[4];
  Codes note{codes};
  note(cudaMemcpyAsync(to, from, 4, wrong));
  note(cudaMemcpyAsync(to, from, 0, wrong));
  note(cudaMemcpyAsync(nullptr, nullptr, 0, kOnDevice, none));
  note(cudaMemsetAsync(nullptr, 1, 0, none));
  note(cudaMemsetAsync(nullptr, 1, 4));
  note(cudaMemsetAsync(shared, 1, 4));
  note(cudaMemcpyAsync(to, from, 4, kOnDevice, none));
  note(cudaMemsetAsync(to, 1, 4, none));
  note(cudaMemcpy2DAsync(to, 4, from, 16, 8, 2, kOnDevice));
  note(cudaMemcpy2DAsync(to, 16, from, 4, 8, 2, kOnDevice));
  note(cudaMemcpy2DAsync(to, 16, from, 16, 8, 2, wrong));
  note(cudaMemcpy2DAsync(to, 4, from, 4, 8, 0, wrong));
  note(cudaMemset2DAsync(to, 4, 1, 8, 2));
  note(cudaMemset2DAsync(to, 4, 1, 0, 2));
  note(cudaMemsetAsync(to, 1, 4, cudaStreamLegacy));
  if (cudaMemcpyAsync(to, from, 4, wrong) != cudaSuccess) *note.next++ = 77;
  note(cudaMemset2DAsync(to + 4, 4, 2, 8, 1));
}
__global__ void refused_in_child(int* codes, char* to, const char* from, cudaMemcpyKind wrong,
                                 cudaStream_t none) {
  refused_copies(codes, to, from, wrong, none);
}
extern "C" __global__ void codes_of_copies(int* codes, char* to, const char* from, cudaMemcpyKind wrong,
                                           cudaStream_t none) {
  refused_copies(codes, to, from, wrong, none);
  for (int i = 1; i < 4; ++i) refused_in_child<<<1, 1>>>(codes + 35 * i, to + 16 * i, from, wrong, none);
}

// Makes something wrong of a right copy, but for 8, which goes into a wrong stream, and 9.
constexpr int kChanges = 10;
__device__ void change(cudaMemcpy3DParms& call, int what, void* elsewhere, cudaMemcpyKind wrong) {
  if (what == 0) call.srcArray = static_cast<cudaArray_t>(elsewhere);
  if (what == 1) call.dstArray = static_cast<cudaArray_t>(elsewhere);
  if (what == 2 || what == 3) call.kind = wrong;
  if (what == 3) call.extent.depth = 0;
  if (what == 4) call.srcPtr.ptr = nullptr;
  if (what == 4) call.srcPtr.pitch = 2;
  if (what == 5) call.dstPtr.pitch = 2;
  if (what == 6) call.srcPtr.ysize = 1;
  if (what == 7) call.dstPtr.ptr = elsewhere;
  if (what == 9) call.dstPtr.ysize = 1;
  if (what == 9) call.extent.depth = 1;
}
__device__ void refused_slices(int* codes, char* to, const char* from, cudaMemcpyKind wrong,
                               cudaStream_t none) {
  __shared__ int shared[16];
  Codes note{codes};
  note(cudaMemcpy3DAsync(nullptr, nullptr));
#pragma unroll 1
  for (int what = 0; what < kChanges; ++what) {
    cudaMemcpy3DParms call{};
    call.srcPtr = pitched(from, 8, 2);
    call.dstPtr = pitched(to, 8, 2);
    call.extent = {4, 2, 2};
    call.kind = kOnDevice;
    change(call, what, shared, wrong);
    note(cudaMemcpy3DAsync(&call, what == 3 || what == 8 ? none : nullptr));
  }
  const struct {
    void* begin;
    size_t pitch, rows, depth;
    cudaStream_t stream;
  } fills[] = {{nullptr, 8, 2, 2, nullptr}, {nullptr, 8, 2, 0, none},   {to, 2, 2, 1, nullptr},
               {to, 8, 1, 2, nullptr},      {shared, 8, 2, 2, nullptr}, {to, 8, 2, 2, none},
               {to + 16, 8, 0, 1, nullptr}};
#pragma unroll 1
  for (const auto& fill : fills)
    note(cudaMemset3DAsync(pitched(fill.begin, fill.pitch, fill.rows), 3, {4, 2, fill.depth}, fill.stream));
}
__global__ void refused_slices_in_child(int* codes, char* to, const char* from, cudaMemcpyKind wrong,
                                        cudaStream_t none) {
  refused_slices(codes, to, from, wrong, none);
}
extern "C" __global__ void codes_of_slices(int* codes, char* to, const char* from, cudaMemcpyKind wrong,
                                           cudaStream_t none) {
  refused_slices(codes, to, from, wrong, none);
  refused_slices_in_child<<<1, 1>>>(codes + 40, to + 32, from, wrong, none);
}

#else

#include <algorithm>

namespace {

using klap::differential::Builder;

void executed(Builder& c, const char* parent, const char* on_device, const char* by_warp) {
  c.left_on_device(parent, on_device);
  c.by_warp(by_warp);
}

// ---- the programs in C++ ----

void fill_bytes(void* to, int value, size_t bytes) { std::memset(to, value, bytes); }

void snapshots(int* cells, int* rows, int& free_row, int depth) {
  int* const before = rows + ptrdiff_t{48} * free_row++;
  std::copy(cells, cells + 48, before);
  for (int i = 0; i < 48; ++i) cells[i] = next_value(cells[i]);
  if (depth > 0) {
    snapshots(cells, rows, free_row, depth - 1);
    fill_bytes(cells + ptrdiff_t{3} * depth, depth, 10);
    snapshots(cells, rows, free_row, depth - 1);
  }
  std::copy(cells + 24, cells + 48, before + 24);
}

void by_threads(int* rows) {
  for (int i = 0; i < 80; ++i) {
    int* const row = rows + ptrdiff_t{8} * i;
    fill_bytes(row, i % 40, 16);
    std::copy(row, row + 2, row + 4);
    std::copy(row + 4, row + 6, row + 6);
  }
}

void in_streams(int* cells, int* rows, int depth) {
  fill_bytes(cells + 4, depth + 1, 40);
  for (int i = 0; i < 4; ++i) {
    cells[17 + i] = ++cells[16];
    fill_bytes(cells + 24, i, 4);
    cells[25 + i] = cells[24];
  }
  by_threads(rows);
  ++cells[0];
  if (depth > 0) in_streams(cells + 32, rows + 640, depth - 1);
  cells[1] = cells[0];
  ++cells[1];
  cells[2] = cells[1];
}

// A block's cells and the total that it adds up; `copies` tells which threads copy.
void of_block(int* cells, int& total, int copies) {
  for (int i = 0; i < 32; ++i) {
    if (i % 3 != 0) fill_bytes(cells + i, i, 1);
  }
  for (int i = 0; i < 32; i += copies) cells[32 + i] = cells[i];
  for (int i = 0; i < 32; i += 4) total += cells[32 + i];
}

void fill_box(unsigned char* to, unsigned pitch, size_t value, unsigned width, unsigned height) {
  for (unsigned y = 0; y < height; ++y) fill_bytes(to + size_t{y} * pitch, static_cast<int>(value), width);
}

std::vector<Box> boxes() {
  std::vector<Box> all;
  unsigned to = 0;
  int state = 9;
  const auto any = [&](unsigned below) { return static_cast<unsigned>(state = next_value(state)) % below; };
  const auto add = [&](Box box) {
    box.to += to;
    all.push_back(box);
    to += box.height * std::max(box.to_pitch, 2 * box.width + 1) + 32;
  };
  for (const unsigned width :
       {1U, 2U, 3U, 4U, 7U, 15U, 16U, 17U, 31U, 64U, 100U, 513U, 4096U, 16384U, 16385U, 40001U})
    add({any(17), 0, any(17), 0, width, 1});
  for (const unsigned aligned : {4U, 8U, 16U}) add({0, 0, aligned, 0, 1000, 1});
  for (unsigned i = 0; i < 12; ++i) {
    const unsigned width = 1 + any(40);
    add({any(9), width + any(5), any(9), width + any(7), width, 2 + any(50)});
  }
  add({0, 32, 16, 48, 16, 37});
  add({4, 20, 8, 24, 12, 300});
  add({0, 64, 0, 64, 64, 300});
  add({3, 17000, 5, 16600, 16500, 3});
  add({0, 9000, 0, 8500, 8200, 3});
  return all;
}

void copy_and_fill_slices(unsigned char* to, const unsigned char* from, const Slices& box, int value) {
  const auto at = [](unsigned pitch, unsigned rows, unsigned x, unsigned y, unsigned z) {
    return x + size_t{pitch} * (y + size_t{rows} * z);
  };
  for (unsigned z = 0; z < box.depth; ++z) {
    for (unsigned y = 0; y < box.height; ++y)
      std::copy_n(from + box.from + at(box.from_pitch, box.from_rows, box.x, box.y + y, box.z + z), box.width,
                  to + box.to + at(box.to_pitch, box.to_rows, box.z, box.x + y, box.y + z));
  }
  for (unsigned z = 0; z < (box.depth + 1) / 2; ++z) {
    for (unsigned y = 0; y < box.height / 2; ++y)
      fill_bytes(to + box.to + 1 + at(box.to_pitch, box.to_rows, 0, y, z), value, box.width / 3);
  }
}

// Slices that lie one behind the other, or with a distance on one side or on both; wide and narrow ones.
std::vector<Slices> slices() {
  std::vector<Slices> all = {
      {0, 16, 3, 0, 16, 3, 0, 0, 0, 16, 3, 5},          {0, 32, 4, 16, 48, 6, 0, 0, 0, 16, 3, 5},
      {0, 20, 3, 4, 24, 3, 0, 1, 0, 12, 2, 6},          {3, 41, 9, 5, 37, 7, 2, 1, 1, 29, 5, 4},
      {0, 70, 1, 0, 70, 1, 0, 0, 0, 70, 1, 9},          {1, 64, 5, 0, 64, 5, 0, 0, 0, 64, 5, 1},
      {0, 17000, 2, 3, 16500, 3, 1, 0, 0, 16400, 2, 3}, {0, 9000, 2, 0, 8500, 2, 0, 0, 0, 8200, 2, 2},
      {0, 8, 40, 0, 8, 50, 0, 0, 0, 8, 40, 30},         {2, 0, 0, 7, 0, 0, 0, 0, 0, 333, 1, 1},
  };
  unsigned to = 0;
  for (Slices& box : all) {
    box.to += to;
    to += box.to_pitch * box.to_rows * (box.depth + box.y) + 4 * box.width + 200;
  }
  return all;
}

}  // namespace

KLAP_CASE(executed_copies_of_slices, "a copy or a fill in three dimensions has other bytes") {
  const std::vector<Slices> all = slices();
  std::vector<unsigned char> from(300000), to(500000, 0xee);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
  const std::vector<unsigned char> before = to;
  copy_and_fill_slices(to.data(), from.data(), all[0], 0);
  for (size_t i = 1; i < all.size(); ++i)
    copy_and_fill_slices(to.data(), from.data(), all[i], static_cast<int>(i - 1));
  copy_and_fill_slices(to.data(), from.data(), all[1], 9);
  const auto of_to = c.buffer("to", before, to);
  const auto of_from = c.input("from", from);
  const auto of_boxes = c.input("boxes", all);
  c.launch("slices_of_copies", {1, 1, 1}, {1, 1, 1}, c.address(of_to), c.address(of_from),
           c.address(of_boxes), static_cast<int>(all.size()));
  executed(c, "slices_of_copies", "runtime-call", "child-launches");
}

KLAP_CASE(executed_codes_of_slices, "a copy in three dimensions that CUDA refuses has another error") {
  const std::vector<int> of_one = {1,   1,   1, 1, 1, 1, 21, 21, 0, 0, 1, 1, 12, 12, 12,  12,  1, 1,
                                   999, 999, 0, 0, 1, 1, 0,  0,  1, 1, 1, 1, 1,  1,  999, 999, 0, 0};
  std::vector<int> codes(of_one);
  codes.insert(codes.end(), 40 - of_one.size(), -1);
  codes.insert(codes.end(), of_one.begin(), of_one.end());
  codes.insert(codes.end(), 40 - of_one.size(), -1);
  std::vector<unsigned char> to(64);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t y = 0; y < 2; ++y) {
      fill_bytes(to.data() + 32 * i + 8 * y, 9, 4);
      fill_bytes(to.data() + 32 * i + 16 + 8 * y, 3, 4);
    }
  }
  const auto of_codes = c.buffer("codes", std::vector<int>(codes.size(), -1), codes);
  const auto of_to = c.buffer("to", std::vector<unsigned char>(64), to);
  const auto from = c.input("from", std::vector<unsigned char>(64, 9));
  c.launch("codes_of_slices", {1, 1, 1}, {1, 1, 1}, c.address(of_codes), c.address(of_to), c.address(from), 1,
           c.address(from));
  executed(c, "codes_of_slices", "runtime-call", "child-launches");
}

KLAP_CASE(executed_copies, "a copy or a fill does not run in the order of the launches around it") {
  std::vector<int> cells(48), rows(48 * 22, -1);
  const std::vector<int> before = rows;
  int free_row = 0;
  fill_bytes(cells.data(), 5, 48 * sizeof(int));
  snapshots(cells.data(), rows.data(), free_row, 3);
  std::copy(cells.begin(), cells.begin() + 24, rows.begin());
  snapshots(cells.data(), rows.data(), free_row, 2);
  const auto of_cells = c.buffer("cells", std::vector<int>(48), cells);
  const auto of_rows = c.buffer("rows", before, rows);
  const auto of_free = c.buffer("free_row", std::vector<int>(1), std::vector<int>{free_row});
  c.launch("begin_snapshots", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), c.address(of_rows),
           c.address(of_free));
  executed(c, "begin_snapshots", "runtime-call", "child-launches");
}

KLAP_CASE(executed_copies_in_streams, "a copy goes into another stream, or a stream does not wait for it") {
  std::vector<int> cells(96), rows(3 * 640);
  in_streams(cells.data(), rows.data(), 2);
  const auto of_cells = c.buffer("cells", std::vector<int>(cells.size()), cells);
  const auto of_rows = c.buffer("rows", std::vector<int>(rows.size(), -1), rows);
  c.launch("begin_streams_of_copies", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), c.address(of_rows));
  executed(c, "begin_streams_of_copies", "child-launches", "child-launches");
}

KLAP_CASE(executed_copies_of_blocks, "threads of a block lose copies, or a launch overtakes one") {
  std::vector<int> cells(128 + 2 * 256), totals(2 + 2 * 4);
  for (size_t block = 0; block < 2; ++block) {
    of_block(cells.data() + 64 * block, totals[block], 1);
    // Both blocks of the first tail launch make the second one.
    for (const size_t i : {0, 1, 2, 3, 2, 3})
      of_block(cells.data() + 128 + 256 * block + 64 * i, totals[2 + 4 * block + i], 2);
  }
  const auto of_cells = c.buffer("cells", std::vector<int>(cells.size()), cells);
  const auto of_totals = c.buffer("totals", std::vector<int>(totals.size()), totals);
  c.launch("blocks_of_copies", {2, 1, 1}, {32, 1, 1}, c.address(of_cells), c.address(of_totals));
  executed(c, "blocks_of_copies", "runtime-call", "any");
}

KLAP_CASE(executed_sizes_of_copies, "a copy or a fill has other bytes, or touches bytes beside its own") {
  const std::vector<Box> all = boxes();
  std::vector<unsigned char> from(70000), to(400000, 0xee);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
  const std::vector<unsigned char> before = to;
  for (size_t i = 0; i < all.size(); ++i) {
    const Box& box = all[i];
    for (unsigned y = 0; y < box.height; ++y)
      std::copy_n(from.begin() + box.from + y * box.from_pitch, box.width,
                  to.begin() + box.to + y * box.to_pitch);
    if (box.height == 1) {
      fill_box(to.data() + box.to + box.width + 1, 0, i, box.width / 2, 1);
    } else {
      fill_box(to.data() + box.to + 1, box.to_pitch, i, box.width / 3, box.height / 2);
    }
  }
  const auto of_to = c.buffer("to", before, to);
  const auto of_from = c.input("from", from);
  const auto of_boxes = c.input("boxes", all);
  c.launch("sizes_of_copies", {1, 1, 1}, {1, 1, 1}, c.address(of_to), c.address(of_from), c.address(of_boxes),
           static_cast<int>(all.size()));
  executed(c, "sizes_of_copies", "child-launches", "child-launches");
}

KLAP_CASE(executed_large_copies,
          "a copy of many blocks begins before a wide grid is complete, or loses blocks") {
  constexpr size_t kBytes = 70001;
  std::vector<unsigned char> a(kBytes + 16), b(kBytes + 16);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<unsigned char>(i * 11);
  const std::vector<unsigned char> before = a;
  const auto step = [](unsigned char* bytes) {
    for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(3 * bytes[i] + i);
  };
  for (int rounds = 3; rounds > 0; --rounds) {
    step(a.data());
    std::copy_n(a.begin(), kBytes, b.begin() + 4);
    fill_bytes(a.data() + kBytes / 3, rounds, kBytes / 2);
    step(b.data() + 3);
    std::copy_n(b.begin(), kBytes / 3, a.begin() + 1);
  }
  const auto of_a = c.buffer("a", before, a);
  const auto of_b = c.buffer("b", std::vector<unsigned char>(b.size()), b);
  c.launch("large_copies", {1, 1, 1}, {1, 1, 1}, c.address(of_a), c.address(of_b), static_cast<int>(kBytes));
  executed(c, "large_copies", "child-launches", "child-launches");
}

KLAP_CASE(executed_codes_of_copies, "a copy that CUDA refuses is made, or has another error") {
  const std::vector<int> of_one = {21, 21, 0,  0,  0,  0, 0, 0, 1, 1, 1, 1, 999, 999, 999, 999, 12,
                                   12, 12, 12, 21, 21, 0, 0, 1, 1, 0, 0, 0, 0,   77,  0,   21};
  std::vector<int> codes;
  for (int i = 0; i < 4; ++i) {
    codes.insert(codes.end(), of_one.begin(), of_one.end());
    codes.insert(codes.end(), 35 - of_one.size(), -1);
  }
  std::vector<unsigned char> to(64);
  for (size_t i = 0; i < 4; ++i) {
    fill_bytes(to.data() + 16 * i, 1, 4);
    fill_bytes(to.data() + 16 * i + 4, 2, 8);
  }
  const auto of_codes = c.buffer("codes", std::vector<int>(codes.size(), -1), codes);
  const auto of_to = c.buffer("to", std::vector<unsigned char>(64), to);
  const auto from = c.input("from", std::vector<unsigned char>(64, 9));
  c.launch("codes_of_copies", {1, 1, 1}, {1, 1, 1}, c.address(of_codes), c.address(of_to), c.address(from), 1,
           c.address(from));
  executed(c, "codes_of_copies", "runtime-call", "child-launches");
}

#endif
