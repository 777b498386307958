// The module that driver_load loads through the driver API, as PTX and as fatbins. It calls the device
// runtime, so as PTX the driver alone cannot link it.
__device__ int bias = 5;

extern "C" __global__ void add_bias(int* cells, int count, int t) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) cells[i] += t + bias;
}

extern "C" __global__ void launch_all(int* cells, int count, int parents) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < parents) add_bias<<<(count + 31) / 32, 32>>>(cells + static_cast<long long>(t) * count, count, t);
}
