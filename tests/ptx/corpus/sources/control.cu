// Branches, loops, switches (branch tables), labels and early exits.

// by: nvrtc nvcc clang
__global__ void table(const int* in, int* out) {
  int x = in[threadIdx.x], y = 0;
  switch (x) {
    case 0:
      y = out[1] + 3;
      break;
    case 1:
      y = out[2] * x;
      break;
    case 2:
      y = out[3] / (x + 1);
      break;
    case 3:
      y = out[4] ^ x;
      break;
    case 4:
      out[9] = x;  // falls through
    case 5:
      y = out[6] - x;
      break;
    case 6:
      return;
    case 7:
      y = __popc(out[7]);
      break;
    default:
      y = -1;
  }
  out[threadIdx.x] = y;
}

__global__ void loops(int* out, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    if (out[i] < 0) continue;
    if (out[i] == 77) break;
    int j = i;
    do {
      sum += out[j] * i;
      j = j / 2;
    } while (j > 0);
  }
#pragma unroll 4
  for (int i = 0; i < 64; ++i) sum ^= out[i * n];
#pragma unroll 1
  for (int i = 0; i < 16; ++i) sum += out[i + sum];
  out[threadIdx.x] = sum;
}

__global__ void jumps(int* out, int n) {
  int i = threadIdx.x;
again:
  i = out[i];
  if (i & 1) goto again;
  if (i > n) goto done;
  i = -i;
  if (out[n] == 3) goto again;
done:
  out[0] = i;
}

__global__ void uniform(int* out, int n) {
  if (n > 5) {
    __syncthreads();
    if (threadIdx.x > 3) return;
    out[threadIdx.x] = n;
  } else if (__syncthreads_or(out[threadIdx.x])) {
    out[n] = 5;
  }
  __syncwarp();
}
