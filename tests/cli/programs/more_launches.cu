// A second unit that launches, with a child of its own.
__global__ void other_child(int* sums) { atomicAdd(sums, 1); }

__global__ void other_parent(int* sums) { other_child<<<2, 32>>>(sums); }
