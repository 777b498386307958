// What the two translation units of the sparse matrix-vector program share: the child kernel and its
// argument.
#pragma once

// One long row, passed to the child kernel by value.
struct RowWork {
  const float* values;
  const int* columns;
  const double* x;
  double* y;  // this row's element of the result, already set to zero
  int begin;
  int end;
  float weight;
};

// Child blocks are 16 by 4 threads; grids are gridDim.x by 2 blocks.
constexpr int kChildBlockX = 16;
constexpr int kChildBlockY = 4;
constexpr int kChildGridY = 2;

__global__ void row_product(RowWork row);

// Multiplies the whole result; lives in the child's unit, set by the host.
extern __constant__ double scale_factor;
void set_scale(double scale);

// Blocks of row_product that have run since the last reset.
void reset_row_blocks();
unsigned row_blocks();
