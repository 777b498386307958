// A second unit, which needs the first.
extern __device__ int counter;

extern "C" __global__ void read_counter(int* out) { *out = counter; }
