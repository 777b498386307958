// cuda::barrier and cuda::atomic_ref: the standard library's barriers, memory orders and scopes.

// headers: cccl
// archs: 80 90
#include <cuda/atomic>
#include <cuda/barrier>
__global__ void phases(int* data, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    auto token = bar.arrive();
    data[threadIdx.x] += i;
    bar.wait(static_cast<decltype(token)&&>(token));
  }
  cuda::atomic_ref<int, cuda::thread_scope_device> counter(data[n]);
  counter.fetch_add(1, cuda::memory_order_acq_rel);
  while (counter.load(cuda::memory_order_acquire) < n) {
  }
  counter.store(0, cuda::memory_order_release);
}
