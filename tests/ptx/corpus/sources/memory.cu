// Every state space: variables with initialisers, addresses in initialisers, arrays in local memory,
// parameters by value, shared memory of fixed and of dynamic size.
struct Pair {
  char tag;
  double value;
  int list[5];
};

__constant__ float factors[4] = {1.f, -2.5f, 3e-20f, 0.f};
__constant__ Pair pair = {'x', 2.5, {1, 2, 3, 4, 5}};
__device__ int counters[8] = {1, 2, 3};
__device__ int* first = counters + 1;
__device__ const char* text = "tabs\tquotes\" and \x80 bytes";
__device__ volatile int flag;
__managed__ int managed = 3;
static __device__ short unsigned internal_value = 7;
extern __shared__ char dynamic[];

__global__ void spaces(Pair by_value, const Pair* __restrict__ pairs, float* out, int n) {
  __shared__ float tile[32][33];
  __shared__ Pair shared_pair;
  int t = threadIdx.x;
  tile[t][t + 1] = out[t] * factors[t & 3];
  if (t == 0) shared_pair = pairs[n];
  __syncthreads();
  float local[16];
  for (int i = 0; i < 16; ++i) local[i] = tile[t][i];
  local[n & 15] += by_value.list[n % 5] + shared_pair.value + pair.list[n % 5] + (float)by_value.value;
  reinterpret_cast<float*>(dynamic)[t] = local[t & 15];
  flag = *first + managed + internal_value++ + text[n];
  __threadfence();
  out[t] = local[(t * 7) & 15] + reinterpret_cast<float*>(dynamic)[t ^ 1];
}

__global__ void bytes(const unsigned char* in, short* out, const bool* which) {
  out[threadIdx.x] = which[threadIdx.x] ? in[threadIdx.x] : -in[threadIdx.x + 1];
  memcpy(out + 100, in + 50, 24);
  memset(out + 200, 0, 12);
}

__global__ void generic(int* a, int which) {
  __shared__ int s[4];
  int l[4] = {a[0], a[1], a[2], a[3]};
  int* p = which == 0 ? a : which == 1 ? s : l;
  p[which & 3] = 5;
  a[7] = l[1] + s[2] + __isGlobal(p) + __isShared(p);
}
