// Asynchronous copies of Ampere, with cache hints and predicated sizes.

// archs: 80 86 90 120
__global__ void stage(const float4* in, float4* out, int n) {
  __shared__ float4 buffer[256];
  unsigned s = (unsigned)__cvta_generic_to_shared(buffer + threadIdx.x);
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(s), "l"(in + threadIdx.x)
               : "memory");
  asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 8, %2, %3;" ::"r"(s + 16), "l"(in),
               "r"(n), "l"(policy)
               : "memory");
  asm volatile(
      "{ .reg .pred ignore;\n setp.eq.u32 ignore, %2, 0;\n @!ignore cp.async.ca.shared.global [%0], [%1], "
      "4;\n}" ::"r"(s),
      "l"(in), "r"(n)
      : "memory");
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;\ncp.async.wait_all;" ::: "memory");
  __syncthreads();
  float4 v = buffer[threadIdx.x ^ 1];
  asm volatile("st.global.L1::no_allocate.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out + threadIdx.x), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
  asm volatile("ld.global.L1::evict_last.L2::cache_hint.f32 %0, [%1], %2;"
               : "=f"(v.x)
               : "l"(in), "l"(policy));
  out[n].x = v.x;
}
