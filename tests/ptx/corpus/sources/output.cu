// The device's library functions: formatted output, the heap, traps and clocks.
__device__ int depth;
__global__ void prints(const double* x, int n) {
  printf("thread %d of %d: %f \"%s\" %c %llu\n", threadIdx.x, n, x[threadIdx.x], "text", 'c', 1ull << 40);
  if (n == 7) printf("no arguments\n");
  if (n >= 100) __trap();
  int* list = (int*)malloc(n * sizeof(int));
  if (list == nullptr) __trap();
  list[n - 1] = depth;
  depth = list[0];
  free(list);
  int* object = new int[3];
  object[n] = (int)clock64() + (int)clock();
  delete[] object;
  __nanosleep(100);
  if (n == 9) __brkpt();
}
