// Launches that fail, the pending limit, recursion, and the errors that threads see.
extern "C" __global__ void count(unsigned* ran) {
  if (threadIdx.x == 0) atomicAdd(ran, 1u);
}

extern "C" __global__ void __launch_bounds__(64) count_bounded(unsigned* ran) {
  if (threadIdx.x == 0) atomicAdd(ran, 1u);
}

extern "C" __global__ void many(int n, unsigned* ran, unsigned* failed, int* code) {
  for (int i = 0; i < n; ++i) {
    count<<<1, 32, 0, cudaStreamFireAndForget>>>(ran);
    const int error = cudaGetLastError();
    if (error != cudaSuccess) {
      ++*failed;
      *code = error;
    }
  }
}

extern "C" __global__ void tree(int depth, unsigned* ran) {
  if (threadIdx.x == 0) atomicAdd(ran, 1u);
  if (depth > 0 && threadIdx.x < 3) tree<<<1, 32>>>(depth - 1, ran);
}

// Per thread: code peeked, code taken, code after that.
extern "C" __global__ void errors(unsigned* ran, int* codes) {
  const int t = threadIdx.x;
  switch (t) {
    case 0:
      count<<<1, 32>>>(ran);
      break;
    case 1:
      count<<<0, 32>>>(ran);
      break;
    case 2:
      count<<<1, 0>>>(ran);
      break;
    case 3:
      count<<<dim3(1, 70000), 32>>>(ran);
      break;
    case 4:
      count<<<1, 1025>>>(ran);
      break;
    case 5:
      count<<<1, 32, 64 * 1024>>>(ran);
      break;
    case 6:
      count_bounded<<<1, 65>>>(ran);
      break;
    case 7:
      count_bounded<<<1, 64>>>(ran);
      break;
    case 8:
      count<<<1, 32, 0, (cudaStream_t)0x1234>>>(ran);
      break;
    case 9:
      cudaMemcpyAsync(codes, ran, 4, cudaMemcpyHostToDevice, 0);
      break;
    default:
      break;
  }
  codes[3 * t] = cudaPeekAtLastError();
  codes[3 * t + 1] = cudaGetLastError();
  codes[3 * t + 2] = cudaGetLastError();
}

struct Big {
  int values[40];
  double last;
  char tail;
};

extern "C" __global__ void take_arguments(char a, Big b, short c, unsigned long long d, double* out) {
  if (threadIdx.x != 0) return;
  double sum = a + c + static_cast<double>(d) + b.last + b.tail;
  for (int v : b.values) sum += v;
  *out = sum;
}

extern "C" __global__ void give_arguments(double* out) {
  Big b;
  for (int i = 0; i < 40; ++i) b.values[i] = i;
  b.last = 0.5;
  b.tail = 3;
  take_arguments<<<1, 1>>>(1, b, -2, 1ull << 40, out);
}

extern "C" __global__ void shape(unsigned* out) {
  extern __shared__ unsigned dynamic[];
  if (threadIdx.x + threadIdx.y + threadIdx.z != 0) return;
  dynamic[99] = 5;
  unsigned* mine = out + 8 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  mine[0] = gridDim.x;
  mine[1] = gridDim.y;
  mine[2] = gridDim.z;
  mine[3] = blockDim.x;
  mine[4] = blockDim.y;
  mine[5] = blockDim.z;
  mine[6] = dynamic[99];
  mine[7] = blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z;
}

extern "C" __global__ void launch_shape(unsigned* out) { shape<<<dim3(2, 3, 2), dim3(4, 2, 3), 400>>>(out); }

typedef void (*Kernel)(unsigned*);
__device__ Kernel kernels[2] = {count, count_bounded};

extern "C" __global__ void by_pointer(int which, unsigned* ran) { kernels[which]<<<3, 32>>>(ran); }

extern "C" __global__ void wait_for_flag(volatile int* flag) {
  while (*flag == 0) {
  }
}

extern "C" __global__ void barrier_alone() {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
}

extern "C" __global__ void write_to(int* p) { *p = 1; }
extern "C" __global__ void launch_write_to(int* p) { write_to<<<1, 1>>>(p); }
