// A program of several ranks: each fills an array by kernels that launch kernels, and all add up what they
// have. Rank 0 says PASS if every rank's part is right.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "program.h"

constexpr int kParents = 96, kThreads = 32;

__global__ void fill(int* cells, int value) { cells[threadIdx.x] = value + static_cast<int>(threadIdx.x); }
__global__ void parent(int* cells, int rank) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kParents) fill<<<1, kThreads>>>(cells + i * kThreads, 1000 * rank + i);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gpu::Buffer<int> cells(kParents * kThreads);
  parent<<<kParents / 32, 32>>>(cells.data(), rank);
  gpu::wait("parent");
  const std::vector<int> filled = cells.to_host();
  int wrong = 0, all_wrong = 0;
  for (int i = 0; i < kParents * kThreads; ++i)
    wrong += filled[i] != 1000 * rank + i / kThreads + i % kThreads ? 1 : 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%s: %d ranks, %d cells wrong\n", all_wrong == 0 ? "PASS" : "FAIL", ranks, all_wrong);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
