// Children that say when they begin and end, launched into every kind of stream.
struct Times {
  unsigned clock;
  unsigned begin[64], end[64];
};

static __device__ void stamp(Times* t, unsigned* where) { *where = atomicAdd(&t->clock, 1u) + 1u; }

static __device__ void work_for(Times* t, int id) {
  if (threadIdx.x == 0) stamp(t, &t->begin[id]);
  __syncthreads();
  volatile int spin = 0;
  for (int i = 0; i < 5; ++i) spin = spin + i;
  __syncthreads();
  if (threadIdx.x == 0) stamp(t, &t->end[id]);
}

extern "C" __global__ void work(Times* t, int id) { work_for(t, id); }

// Its own child counts as its number plus one.
extern "C" __global__ void work_and_launch(Times* t, int id) {
  if (threadIdx.x == 0) work<<<1, 32, 0, cudaStreamFireAndForget>>>(t, id + 1);
  work_for(t, id);
}

static __device__ int number() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void null_stream(Times* t) {
  work_and_launch<<<1, 33>>>(t, 4 * number());
  work<<<1, 32>>>(t, 4 * number() + 2);
}

extern "C" __global__ void own_stream(Times* t) {
  work_and_launch<<<1, 33, 0, cudaStreamPerThread>>>(t, 4 * number());
  work<<<1, 32, 0, cudaStreamPerThread>>>(t, 4 * number() + 2);
}

extern "C" __global__ void fire_and_forget(Times* t) {
  work<<<1, 32, 0, cudaStreamFireAndForget>>>(t, 2 * number());
  work<<<1, 32, 0, cudaStreamFireAndForget>>>(t, 2 * number() + 1);
}

// Two streams, the second shared by all threads of the block.
extern "C" __global__ void created_streams(Times* t) {
  __shared__ cudaStream_t shared;
  if (threadIdx.x == 0) cudaStreamCreateWithFlags(&shared, cudaStreamNonBlocking);
  __syncthreads();
  cudaStream_t own;
  cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  work<<<1, 32, 0, own>>>(t, 4 * number());
  work<<<1, 32, 0, own>>>(t, 4 * number() + 1);
  work<<<1, 32, 0, shared>>>(t, 4 * number() + 2);
  cudaStreamDestroy(own);
}

extern "C" __global__ void by_event(Times* t) {
  cudaStream_t a, b;
  cudaEvent_t event;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  work<<<1, 32, 0, a>>>(t, 0);
  cudaEventRecord(event, a);
  work<<<1, 32, 0, a>>>(t, 1);
  cudaStreamWaitEvent(b, event, 0);
  work<<<1, 32, 0, b>>>(t, 2);
  cudaEventDestroy(event);
}

// A tail launch that makes tail launches itself.
extern "C" __global__ void nested_tail(Times* t, int id) {
  work_for(t, id);
  if (threadIdx.x == 0) {
    work<<<1, 32, 0, cudaStreamTailLaunch>>>(t, id + 1);
    work<<<1, 32, 0, cudaStreamFireAndForget>>>(t, id + 2);
  }
}

extern "C" __global__ void tail_launches(Times* t) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    nested_tail<<<1, 32, 0, cudaStreamTailLaunch>>>(t, 10);
    work<<<1, 32, 0, cudaStreamTailLaunch>>>(t, 13);
    work_and_launch<<<1, 32>>>(t, 1);
  }
  __syncthreads();
  if (blockIdx.x == 0) work_for(t, 0);
}

// Plain read-modify-write: right only if each child sees what the one before it wrote.
extern "C" __global__ void step(unsigned* value, unsigned digit) {
  if (threadIdx.x == 31) *value = *value * 10u + digit;
}

extern "C" __global__ void add_up(const unsigned* values, int n, unsigned* sum) {
  unsigned all = 0;
  for (int i = 0; i < n; ++i) all += values[i];
  *sum = all;
}

extern "C" __global__ void steps(unsigned* values, unsigned* plain) {
  unsigned* mine = values + blockIdx.x;
  if (threadIdx.x == 0) {
    plain[blockIdx.x] = 7;  // before the launch: the children see it
    for (unsigned digit = 1; digit <= 5; ++digit) step<<<1, 32>>>(mine, digit);
    step<<<1, 32, 0, cudaStreamTailLaunch>>>(values + gridDim.x, blockIdx.x == 0 ? plain[0] - 1 : 9);
  }
}

// What a grid and its children write, seen by a tail launch, by the host's next launch and by a copy.
extern "C" __global__ void steps_then_sum(unsigned* values, unsigned* sum) {
  if (threadIdx.x == 0) {
    step<<<1, 32, 0, cudaStreamFireAndForget>>>(values + blockIdx.x, blockIdx.x + 1);
    if (blockIdx.x == 0) add_up<<<1, 1, 0, cudaStreamTailLaunch>>>(values, 2 * gridDim.x, sum);
  }
  if (threadIdx.x == 1) values[gridDim.x + blockIdx.x] = 100;
}

extern "C" __global__ void copy_then_sum(unsigned* values, unsigned* copy, int n, unsigned* sum) {
  step<<<1, 32>>>(values, 7);
  cudaMemcpyAsync(copy, values, n * sizeof(unsigned), cudaMemcpyDeviceToDevice, 0);
  add_up<<<1, 1>>>(copy, n, sum);
}
