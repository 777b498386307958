// A parent that waits for its children, as version 1 of dynamic parallelism allowed it.
extern "C" __global__ void child(int* out) { atomicAdd(out, 1); }

extern "C" __global__ void parent(int* out) {
  child<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  atomicAdd(out, 1);
}
