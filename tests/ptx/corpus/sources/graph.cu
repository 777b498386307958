// Graph and particle code as programs have it: structures of arrays, queues, early exits and nested loops.
struct Graph {
  const int *rows, *columns;
  const float* weights;
  int vertices;
};
__device__ float atomic_min(float* address, float value) {
  int *bits = (int*)address, old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) <= value) break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (assumed != old);
  return __int_as_float(old);
}
__global__ void relax(Graph g, float* distance, int* queue, int* count) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= g.vertices) return;
  float d = distance[v];
  if (d > 1e30f) return;
  for (int e = g.rows[v]; e < g.rows[v + 1]; ++e) {
    int to = g.columns[e];
    float next = d + g.weights[e];
    if (next < distance[to] && atomic_min(distance + to, next) > next) queue[atomicAdd(count, 1)] = to;
  }
}
__global__ void forces(const float4* bodies, float3* out, int n) {
  extern __shared__ float4 cached[];
  float4 me = bodies[blockIdx.x * blockDim.x + threadIdx.x];
  float3 sum = {0, 0, 0};
  for (int base = 0; base < n; base += blockDim.x) {
    cached[threadIdx.x] = bodies[base + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < blockDim.x; ++i) {
      float dx = cached[i].x - me.x, dy = cached[i].y - me.y, dz = cached[i].z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-9f);
      float f = cached[i].w * r * r * r;
      sum.x += dx * f, sum.y += dy * f, sum.z += dz * f;
    }
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
