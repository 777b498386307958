/* loader FATBIN KERNEL BLOCKS [TIMES]: a driver API program as small as it gets. It loads FATBIN, which holds
 * one unit of relocatable code, as programs built with -rdc=true load theirs, and launches KERNEL(int*, int)
 * once or so often, with that many blocks of 64 threads. If LOADER_AWAITS is set, it waits behind the first
 * launch until there is that text in the library's log (KLAP_LOG_FILE), for a minute at most. Run with the
 * preload library and the driver of the tests, which writes down what was loaded and launched; only that
 * driver takes the unit for the linked code that a real wrapper points to as well. Exit codes: 0, or 1 with a
 * line on standard error.
 */
#define _POSIX_C_SOURCE 199309L
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void* libcuda;

static void* symbol(const char* name) {
  void* const address = dlsym(libcuda, name);
  if (address != NULL) return address;
  fprintf(stderr, "loader: no %s\n", name);
  exit(1);
}

#define NAME_OF(function) #function
#define CU(function, ...) \
  check(((__typeof__(&function))symbol(NAME_OF(function)))(__VA_ARGS__), NAME_OF(function))

static void check(CUresult result, const char* function) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "loader: %s: error %d\n", function, (int)result);
  exit(1);
}

static int is_in_log(const char* text) {
  static char log[1 << 20];
  FILE* const file = fopen(getenv("KLAP_LOG_FILE"), "r");
  if (file == NULL) return 0;
  log[fread(log, 1, sizeof log - 1, file)] = 0;
  fclose(file);
  return strstr(log, text) != NULL;
}

static void await(const char* text) {
  const struct timespec pause = {0, 10000000};
  for (int i = 0; text != NULL && !is_in_log(text); ++i) {
    nanosleep(&pause, NULL);
    if (i < 6000) continue;
    fprintf(stderr, "loader: the log never says '%s'\n", text);
    exit(1);
  }
}

static const void* read_fatbin(const char* path) {
  static _Alignas(16) char bytes[1 << 20];
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fread(bytes, 1, sizeof bytes, file) == 0) {
    fprintf(stderr, "loader: cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
  return bytes;
}

/* What nvcc puts into a program: the linked code and, behind it, the units it was made from. */
struct wrapper {
  int magic, version;
  const void* linked;
  const void* const* units;
};

int main(int argc, char** argv) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUmodule module = NULL;
  CUfunction kernel = NULL;
  CUdeviceptr sums = 0;
  int count = 64;
  void* params[] = {&sums, &count};
  libcuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (argc < 4 || libcuda == NULL) {
    fprintf(stderr, "loader: wrong usage or no driver\n");
    return 1;
  }
  CU(cuInit, 0);
  CU(cuDeviceGet, &device, 0);
  CU(cuDevicePrimaryCtxRetain, &context, device);
  CU(cuCtxSetCurrent, context);
  CU(cuMemAlloc, &sums, 4096);
  const void* const units[] = {read_fatbin(argv[1]), NULL};
  const struct wrapper wrapper = {0x466243B1, 2, units[0], units};
  CU(cuModuleLoadData, &module, &wrapper);
  CU(cuModuleGetFunction, &kernel, module, argv[2]);
  const int times = argc > 4 ? atoi(argv[4]) : 1;
  for (int i = 0; i < times; ++i) {
    CU(cuLaunchKernel, kernel, (unsigned)atoi(argv[3]), 1, 1, 64, 1, 1, 0, NULL, params, NULL);
    if (i == 0) await(getenv("LOADER_AWAITS"));
  }
  CU(cuCtxSynchronize);
  return 0;
}
