// Kernels that the cases about tail launches share: what they note shows the order in which they ran.
#pragma once

#include "contract_forms.h"

#ifdef __CUDACC__

namespace klap::differential::contract {

__global__ void one_note(int* log, int value) { note(log, value); }
__global__ void note_cell(int* log, const int* cell) { note(log, *cell); }
__global__ void add(int* cell, int value) {
  if (threadIdx.x == 0) atomicAdd(cell, value);
}
__global__ void add_later(int* cell, int value) { add<<<1, 3>>>(cell, value); }
// The sum of what all threads of a grid wrote.
__global__ void note_sum(int* cells, int first, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += cells[first + i];
  note(cells, sum);
}

// A note, and another one at the end.
__global__ void note_and_end(int* log, int value) {
  one_note<<<1, 1, 0, cudaStreamTailLaunch>>>(log, -value);
  note(log, value);
}

}  // namespace klap::differential::contract

#endif
