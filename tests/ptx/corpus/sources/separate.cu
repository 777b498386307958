// Relocatable code: symbols defined elsewhere, weak and static ones.

// options: -rdc=true
extern __device__ int elsewhere(int x, float* y);
extern __device__ int shared_counter;
extern __constant__ float shared_factor;
static __device__ int own;
__device__ int exported = 4;
inline __device__ __noinline__ int in_every_unit(int x) { return x * 5 + exported; }
__device__ __noinline__ int visible(int x) { return own += x; }
__device__ int (*address)(int, float*) = elsewhere;
__global__ void uses(float* data) {
  data[0] = elsewhere(3, data + 1) * shared_factor + in_every_unit((int)data[2]) + visible(shared_counter++) +
            address(2, data);
}
