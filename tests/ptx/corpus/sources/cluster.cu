// Clusters: dimensions in the kernel's header, distributed shared memory, cluster barriers, dependent
// launches.

// since: 12.1
// archs: 90 100 100f 120
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1) exchange(int* out) {
  __shared__ int value;
  if (threadIdx.x == 0) value = blockIdx.x;
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  unsigned here = (unsigned)__cvta_generic_to_shared(&value), there, rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank ^ 1));
  int got;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(there) : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there),
               "r"(got), "r"(there + 8)
               : "memory");
  out[threadIdx.x] = got;
}
__global__ void __launch_bounds__(128, 2, 4) bounded(int* out) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  unsigned elected;
  asm volatile("{ .reg .pred p; .reg .b32 lane; elect.sync lane|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
               : "=r"(elected));
  out[threadIdx.x] = elected;
}
