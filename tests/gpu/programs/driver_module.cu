// The module that driver_load loads through the driver API, as PTX and as fatbins. It calls the device
// runtime, so as PTX the driver alone cannot link it. Programs that link it themselves also have it in two
// units, ONLY_CHILD and ONLY_PARENT.
#ifdef ONLY_PARENT
extern "C" __global__ void add_bias(int* cells, int count, int t);
#else
__device__ int bias = 5;

extern "C" __global__ void add_bias(int* cells, int count, int t) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) cells[i] += t + bias;
}
#endif

#ifndef ONLY_CHILD
extern "C" __global__ void launch_all(int* cells, int count, int parents) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < parents) add_bias<<<(count + 31) / 32, 32>>>(cells + static_cast<long long>(t) * count, count, t);
}
#endif
