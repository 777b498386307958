// Much of what device code can contain, for the decoder to read. It is compiled, never run.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <cassert>
#include <cstdio>
#include <cuda/atomic>

namespace cg = cooperative_groups;

__device__ __managed__ int managed[3] = {1, 2};
__constant__ float table[2][3] = {{1.5f}, {2, 3, 4}};
__device__ double large = 1e300;
__device__ __noinline__ int triple(int x) { return x * 3; }
__device__ __noinline__ int exchange(int x) {
  __shared__ int s[7];
  s[x] = x;
  __syncthreads();
  return s[x ^ 1];
}
__device__ int (*const functions[2])(int) = {triple, exchange};

struct Big {
  int a[20];
};
__device__ __noinline__ Big changed(Big b, int i) {
  b.a[i & 15] = i;
  return b;
}
struct Base {
  __device__ virtual int go(int) { return 1; }
  int z;
};
struct Derived : Base {
  __device__ int go(int q) override { return q; }
};
extern __shared__ float dynamic[];

__global__ void groups(int* p, int n, const __grid_constant__ Big g) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int v = cg::reduce(warp, p[threadIdx.x], cg::plus<int>());
  v += functions[n & 1](v);
  Big x = changed(g, n);
  const Big* address = &g;
  v += x.a[n & 7] + address->a[n & 3];
  Base* object = n ? static_cast<Base*>(new Derived) : new Base;
  v += object->go(v);
  delete object;
  auto active = cg::coalesced_threads();
  v += active.shfl(v, 0);
  printf("%d %f\n", v, dynamic[0]);
  assert(v > 3);
  p[0] = v;
}

__global__ void memory(int* p, int n, float4* o, cudaTextureObject_t t) {
  int v = p[0];
  o[1] = tex1Dfetch<float4>(t, v);
  o[2] = tex2D<float4>(t, v, 2.f);
  cuda::atomic_ref<int, cuda::thread_scope_block> r(p[3]);
  r.fetch_add(3, cuda::memory_order_acq_rel);
  while (r.load(cuda::memory_order_acquire) == 0) {
  }
  r.store(1, cuda::memory_order_release);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
  __threadfence();
  atomicMax(&p[1], v);
  atomicCAS(reinterpret_cast<unsigned short*>(p), 1, 2);
  atomicAdd(reinterpret_cast<double*>(p), 1.0);
  atomicAdd(reinterpret_cast<__half2*>(p), __float2half2_rn(2.f));
  atomicAdd(o, make_float4(1, 2, 3, 4));
  atomicAdd_system(p, 2);
  p[4] = __ldcs(p) + __ldg(p + 1) + managed[1];
  int* stack = static_cast<int*>(alloca(n));
  stack[n] = 2;
  p[9] = stack[n / 2];
  p[8] = __isGlobal(p) + __isShared(p) + __isLocal(p) + __isConstant(p);
  __pipeline_memcpy_async(reinterpret_cast<int4*>(dynamic), o, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __nanosleep(10);
}

__global__ void arithmetic(int* p, float4* o, int v, int n) {
  if (__syncthreads_or(v)) v += __syncthreads_count(v > 2);
  int all = 0;
  v += __any_sync(~0u, v) + __ballot_sync(~0u, v) + __match_any_sync(~0u, v) + __match_all_sync(~0u, v, &all);
  v += __reduce_add_sync(~0u, v) + __shfl_up_sync(~0u, v, 1);
  __half h = __float2half(v);
  h = hsin(h) + h * h;
  __nv_bfloat16 b = __float2bfloat16(v);
  p[5] = __half2int_rn(h) + static_cast<int>(static_cast<float>(b * b));
  p[7] = __clzll(v) + __popc(v) + __brev(v) + __byte_perm(v, 3, 0x1234) + __funnelshift_l(v, 3, 4) +
         __dp4a(v, v, v) + __sad(v, 1, 2) + __fns(v, 0, 1);
  o[3].x = sinf(v) + __expf(v) + powf(v, 2.f) + sqrtf(v) + erff(v) + fmodf(v, 3.f) + rsqrtf(v) + tanhf(v);
  o[3].y = static_cast<float>(sin(static_cast<double>(v)) + 1.0 / large + sqrt(large) + table[v & 1][v & 1]);
  const unsigned __int128 wide = static_cast<unsigned __int128>(v) * v;
  p[2] = static_cast<int>(wide >> 77) + clock() + static_cast<int>(clock64() >> 32);
  switch (n) {
    case 0:
      p[0] = v * 3;
      break;
    case 1:
      p[3] = triple(v);
      break;
    case 2:
      p[1] ^= 7;
      break;
    case 3:
      __trap();
    case 4:
      p[8] /= v;
      break;
    case 5:
      p[0] %= v;
      break;
    case 6:
      p[22] = 1;
      break;
    case 7:
      return;
  }
}
