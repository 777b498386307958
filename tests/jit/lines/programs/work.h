// Inlined into kernels of two units, so that their line tables say "inlined at".
#pragma once

__device__ inline int scaled(const int* table, int v) {
  int r = v * 3;
  if (r > 100) r -= table[v];  // inlined
  return r;
}
