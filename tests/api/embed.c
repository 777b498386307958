/* Example of the C API: a program that loads device code itself and wants its children aggregated.
 *
 *   embed IMAGE           rewrites IMAGE (PTX, a fatbin, or any file with device code in it) and says what
 * became of each launch site and how the variants are to be launched embed IMAGE LIBCUDA   also loads the
 * result with the driver at LIBCUDA and launches kernel `parent` of tests/cli/programs/launches.cu, variant
 * and consumer, and checks the sums where they were computed
 *
 * Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "klap/klap.h"

#define KERNEL "_Z6parentPii" /* parent(int* sums, int count) */
enum { COUNT = 1000, BLOCK = 128, GRID = (COUNT + BLOCK - 1) / BLOCK, SUMS = 7, PAGE = 4096 };

static void die(const char* what, const char* why) {
  fprintf(stderr, "embed: %s: %s\n", what, why);
  exit(1);
}

/* ---- rewriting ---- */

static char* read_all(const char* path, size_t* bytes) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) die(path, "cannot be read");
  const long length = ftell(file);
  if (length < 0) die(path, "cannot be read");
  char* const text = malloc((size_t)length + 1);
  if (text == NULL) die(path, "out of memory");
  rewind(file);
  *bytes = fread(text, 1, (size_t)length, file);
  fclose(file);
  return text;
}

static klap_module* rewrite(const char* path) {
  klap_options options = {0};
  options.struct_bytes = sizeof options;
  options.compute_capability = 90;

  klap_module* module = NULL;
  klap_status status = KLAP_OK;
  const char* const ending = strrchr(path, '.');
  if (ending != NULL && (strcmp(ending, ".ptx") == 0 || strcmp(ending, ".fatbin") == 0)) {
    /* Bytes that the program has anyway, from wherever it has them. */
    size_t bytes = 0;
    char* const image = read_all(path, &bytes);
    status = klap_rewrite(image, bytes, &options, &module);
    free(image);
  } else {
    status = klap_rewrite_file(path, &options, &module);
  }
  if (status != KLAP_OK) die(path, klap_error_text());
  return module;
}

static void print_module(const klap_module* module) {
  size_t bytes = 0;
  klap_module_image(module, &bytes);
  printf("image: %zu bytes\n", bytes);
  for (size_t i = 0; i < klap_module_variant_count(module); ++i) {
    klap_variant variant = {.struct_bytes = sizeof variant};
    if (klap_module_variant(module, i, &variant) != KLAP_OK) die("variant", klap_error_text());
    printf("variant of %s: launch %s (queue at %u), then %s in blocks of %u; records of %u bytes\n",
           variant.parent, variant.parent_variant, variant.queue_param_offset, variant.consumer,
           variant.consumer_block_threads, variant.record_bytes);
  }
  printf("%s\n", klap_module_explain(module));
}

static klap_variant variant_of(const klap_module* module, const char* parent) {
  klap_variant variant = {.struct_bytes = sizeof variant};
  for (size_t i = 0; klap_module_variant(module, i, &variant) == KLAP_OK; ++i) {
    if (strcmp(variant.parent, parent) == 0) return variant;
  }
  die(parent, "was not rewritten");
  return variant;
}

/* ---- launching ---- */

static void* libcuda;

static void* symbol(const char* name) {
  void* const address = dlsym(libcuda, name);
  if (address == NULL) die(name, "not in this driver");
  return address;
}

/* Calls a function of the driver, under the name that cuda.h gives its current version. */
#define NAME_OF(function) #function
#define CU(function, ...) \
  check(((__typeof__(&function))symbol(NAME_OF(function)))(__VA_ARGS__), NAME_OF(function))

static void check(CUresult result, const char* function) {
  char code[32];
  snprintf(code, sizeof code, "error %d", (int)result);
  if (result != CUDA_SUCCESS) die(function, code);
}

static unsigned blocks_that_fit(CUdevice device, CUfunction consumer, unsigned block_threads) {
  int multiprocessors = 0, resident = 0;
  CU(cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, &resident, consumer, (int)block_threads, 0);
  return (unsigned)multiprocessors * (unsigned)resident;
}

static CUdeviceptr make_queue(const klap_variant* variant, uint64_t records, CUstream stream) {
  CUdeviceptr queue = 0;
  unsigned char header[KLAP_QUEUE_HEADER_BYTES];
  CU(cuMemAlloc, &queue, klap_queue_bytes(variant, records));
  if (variant->group_blocks != 0) CU(cuMemsetD8Async, queue, 0, klap_queue_bytes(variant, records), stream);
  const size_t bytes = klap_queue_header(variant, records, queue, header, sizeof header);
  CU(cuMemcpyHtoDAsync, queue, header, bytes, stream);
  return queue;
}

/* Thread i launches i % 7 + 1 blocks of 32 threads, and thread t of block b adds i + t to sums[b]. */
static void check_sums(const int* sums) {
  for (int block = 0; block < SUMS; ++block) {
    int expected = 0;
    for (int i = 0; i < COUNT; ++i) {
      for (int t = 0; t < 32 && block < i % 7 + 1; ++t) expected += i + t;
    }
    if (sums[block] != expected) die("sums", "wrong");
  }
  printf("sums: right\n");
}

static void launch(const klap_module* module) {
  const klap_variant variant = variant_of(module, KERNEL);
  CUdevice device = 0;
  CUcontext context = NULL;
  CUmodule loaded = NULL;
  CUfunction parent = NULL, consumer = NULL;
  CUdeviceptr sums = 0;
  int count = COUNT;
  int* const host_sums = aligned_alloc(PAGE, PAGE);
  if (host_sums == NULL) die("sums", "out of memory");
  memset(host_sums, 0, PAGE);

  CU(cuInit, 0);
  CU(cuDeviceGet, &device, 0);
  CU(cuDevicePrimaryCtxRetain, &context, device);
  CU(cuCtxSetCurrent, context);
  CU(cuModuleLoadData, &loaded, klap_module_image(module, NULL));
  CU(cuModuleGetFunction, &parent, loaded, variant.parent_variant);
  CU(cuModuleGetFunction, &consumer, loaded, variant.consumer);
  CU(cuMemHostRegister, host_sums, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP);
  CU(cuMemHostGetDevicePointer, &sums, host_sums, 0);

  CUdeviceptr queue = make_queue(&variant, (uint64_t)GRID * BLOCK, NULL);
  void* parent_params[] = {&sums, &count, &queue};
  void* consumer_params[] = {&queue};
  CU(cuLaunchKernel, parent, GRID, 1, 1, BLOCK, 1, 1, 0, NULL, parent_params, NULL);
  if (variant.launcher == KLAP_LAUNCHER_HOST) {
    CU(cuLaunchKernel, consumer, blocks_that_fit(device, consumer, variant.consumer_block_threads), 1, 1,
       variant.consumer_block_threads, 1, 1, 0, NULL, consumer_params, NULL);
  }
  CU(cuCtxSynchronize);
  printf("launched: %s, %s\n", variant.parent_variant, variant.consumer);
  /* The driver of the tests without a GPU executes nothing. */
  if (getenv("FAKE_CUDA_LOG") == NULL) check_sums(host_sums);
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: embed IMAGE [LIBCUDA]\n");
    return 2;
  }
  klap_module* const module = rewrite(argv[1]);
  print_module(module);
  if (argc == 3) {
    libcuda = dlopen(argv[2], RTLD_NOW);
    if (libcuda == NULL) die(argv[2], dlerror());
    launch(module);
  }
  klap_module_free(module);
  return 0;
}
