// The tensor memory accelerator: tensor maps as parameters, bulk copies, and mbarriers with a try-wait loop
// in a scope.

// since: 12.0
// archs: 90 90a 100 100f 120
struct __align__(64) Map {
  unsigned long long words[16];
};
__device__ __forceinline__ void wait(unsigned bar, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra done;\n"
      "bra again;\n"
      "done:\n"
      "}\n" ::"r"(bar),
      "r"(parity)
      : "memory");
}
__global__ void copy_tiles(const __grid_constant__ Map map, const float* bulk, float* out, int x, int y) {
  __shared__ __align__(128) float tile[1024];
  __shared__ __align__(8) unsigned long long bar;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar), t = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(b),
                 "r"(4096)
                 : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(t),
        "l"(&map), "r"(x), "r"(y), "r"(b)
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];" ::"r"(t),
        "l"(bulk), "r"(b)
        : "memory");
  }
  __syncthreads();
  wait(b, 0);
  wait(b, 1);
  out[threadIdx.x] = tile[threadIdx.x];
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(out), "r"(t) : "memory");
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(out),
               "r"(t)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
}
