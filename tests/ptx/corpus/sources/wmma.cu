// Tensor cores through the header: wmma fragments of several types.

// headers: cuda
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda::wmma;
__global__ void product(const __half* a, const __half* b, float* c, int n) {
  fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> acc;
  fill_fragment(acc, 0.f);
  for (int k = 0; k < n; k += 16) {
    load_matrix_sync(fa, a + k, n);
    load_matrix_sync(fb, b + k, n);
    mma_sync(acc, fa, fb, acc);
  }
  for (int i = 0; i < acc.num_elements; ++i) acc.x[i] *= 0.5f;
  store_matrix_sync(c, acc, n, mem_row_major);
}
__global__ void bytes(const signed char* a, const signed char* b, int* c) {
  fragment<matrix_a, 32, 8, 16, signed char, row_major> fa;
  fragment<matrix_b, 32, 8, 16, signed char, col_major> fb;
  fragment<accumulator, 32, 8, 16, int> acc;
  load_matrix_sync(acc, c, 8, mem_row_major);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(acc, fa, fb, acc, true);
  store_matrix_sync(c, acc, 8, mem_col_major);
}
