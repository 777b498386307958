/* One program, many ways to load and launch: app SCENARIO [FILE]. It says what it passed as "key value" lines
 * and leaves the judging to shim_test.cpp, which reads those and the fake driver's log. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"
#include "wrapper.h"

/* Called by the constructor of loaded_library.c. */
__attribute__((visibility("default"))) void (*loading_library)(void);

static unsigned long long out_param = 0x1000;
static int n_param = 5;
static void* params[] = {&out_param, &n_param};

static CUlibrary load_library(void) {
  CUlibrary library;
  CHECK(cu.library_load(&library, registered_wrapper(), NULL, NULL, 0, NULL, NULL, 0));
  return library;
}

static CUfunction kernel_of(CUlibrary library, const char* name) {
  CUkernel kernel;
  CHECK(cu.library_kernel(&kernel, library, name));
  return (CUfunction)kernel;
}

static CUresult launch(CUfunction function, CUstream stream) {
  return cu.launch(function, 2, 1, 1, 64, 1, 1, 0, stream, params, NULL);
}

/* ---- loading ---- */

static void do_launch(void) {
  printf("image %p\n", registered_wrapper());
  CHECK(launch(kernel_of(load_library(), "parent"), NULL));
}

/* The fastest of many loads: what the shim adds to each is in it, other processes' interruptions are not. */
static void do_load_time(void) {
  double best = 1e9;
  for (int i = 0; i < 50; ++i) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    CUlibrary library = load_library();
    clock_gettime(CLOCK_MONOTONIC, &to);
    CHECK(cu.library_unload(library));
    double microseconds = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
    if (microseconds < best) best = microseconds;
  }
  printf("microseconds %.1f\n", best);
}

static void do_module(void) {
  CUmodule module;
  CUfunction function;
  CHECK(cu.module_load_data(&module, registered_wrapper()));
  CHECK(cu.module_function(&function, module, "parent"));
  CHECK(launch(function, NULL));
}

static void do_module_options(void) {
  CUmodule module;
  CUfunction function;
  CUjit_option options[] = {CU_JIT_LOG_VERBOSE, CU_JIT_MAX_REGISTERS};
  void* values[] = {(void*)1, (void*)40};
  CHECK(cu.module_load_data_ex(&module, registered_wrapper(), 2, options, values));
  CHECK(cu.module_function(&function, module, "parent"));
  CHECK(launch(function, NULL));
}

/* Prints what became of the size of the error log. */
static void do_log_options(void) {
  CUmodule module;
  CUlibrary library;
  char log[64] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)sizeof log};
  int result = (int)cu.module_load_data_ex(&module, registered_wrapper(), 2, options, values);
  printf("module %d %zu\n", result, (size_t)values[1]);
  values[1] = (void*)sizeof log;
  result = (int)cu.library_load(&library, registered_wrapper(), options, values, 2, NULL, NULL, 0);
  printf("library %d %zu\n", result, (size_t)values[1]);
}

static void do_library_options(void) {
  CUlibrary library;
  CUjit_option options[] = {CU_JIT_LOG_VERBOSE};
  void* values[] = {(void*)1};
  CUlibraryOption library_options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  void* library_values[] = {(void*)1};
  CHECK(cu.library_load(&library, registered_wrapper(), options, values, 1, library_options, library_values,
                        1));
  CHECK(launch(kernel_of(library, "parent"), NULL));
}

static void do_function_of_kernel(void) {
  CUfunction function;
  CHECK(cu.kernel_function(&function, (CUkernel)kernel_of(load_library(), "parent")));
  CHECK(launch(function, NULL));
}

static void do_function_of_module(void) {
  CUmodule module;
  CUfunction function;
  CHECK(cu.library_module(&module, load_library()));
  CHECK(cu.module_function(&function, module, "parent"));
  CHECK(launch(function, NULL));
}

static void do_module_file(const char* file) {
  CUmodule module;
  CUfunction function;
  CHECK(cu.module_load(&module, file));
  CHECK(cu.module_function(&function, module, "parent"));
  CHECK(launch(function, NULL));
}

static void do_library_file(const char* file) {
  CUlibrary library;
  CHECK(cu.library_load_file(&library, file, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(launch(kernel_of(library, "parent"), NULL));
}

/* The file's bytes, passed as an image in memory; prints what the load returned. */
static void do_bytes(const char* name) {
  FILE* file = fopen(name, "rb");
  REQUIRE(file);
  static char bytes[1 << 22];
  REQUIRE(fread(bytes, 1, sizeof bytes - 1, file) > 0);
  CUmodule module;
  CUfunction function;
  CUresult result = cu.module_load_data(&module, bytes);
  printf("image %p\nresult %d\n", (void*)bytes, (int)result);
  if (result != CUDA_SUCCESS) return;
  CHECK(cu.module_function(&function, module, "parent"));
  CHECK(launch(function, NULL));
}

static void do_reload(void) {
  CUlibrary library = load_library();
  CUfunction first = kernel_of(library, "parent");
  CHECK(launch(first, NULL));
  CHECK(cu.library_unload(library));
  /* The same handles for another image, which is not rewritten. */
  static const char ptx[] =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry parent() { ret; }\n";
  static const char* const others[] = {"a", "b", "c", "d", "e", "f"};
  CUfunction recycled = NULL;
  for (size_t before = 0; recycled != first && before <= sizeof others / sizeof *others; ++before) {
    if (recycled) CHECK(cu.library_unload(library));
    CHECK(cu.library_load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    for (size_t i = 0; i < before; ++i) kernel_of(library, others[i]);
    recycled = kernel_of(library, "parent");
  }
  printf("recycled %d\n", recycled == first);
  CHECK(launch(recycled, NULL));
  CHECK(cu.library_unload(library));
  CHECK(launch(kernel_of(load_library(), "parent"), NULL));
}

static void do_context_reset(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  CHECK(launch(kernel, NULL));
  CHECK(cu.reset(0));
  CUcontext context;
  CHECK(cu.retain(&context, 0));
  CHECK(cu.set_current(context));
  CHECK(launch(kernel, NULL));
}

/* ---- launching ---- */

/* Takes all of the device's memory in every way there is, behind a launch that may have taken some. */
static void do_memory(void) {
  enum { WAYS = 9, ALL = 8 << 20 };
  CUfunction function = kernel_of(load_library(), "parent");
  const CUDA_ARRAY_DESCRIPTOR flat = {.Width = ALL, .Height = 1};
  const CUDA_ARRAY3D_DESCRIPTOR deep = {.Width = ALL, .Height = 1, .Depth = 1};
  for (int way = 0; way < WAYS; ++way) {
    CUdeviceptr memory = 0;
    size_t pitch;
    CHECK(launch(function, NULL));
    CHECK(way == 0   ? cu.mem_alloc(&memory, ALL)
          : way == 1 ? cu.mem_alloc_async(&memory, ALL, NULL)
          : way == 2 ? cu.mem_alloc_async_ptsz(&memory, ALL, NULL)
          : way == 3 ? cu.mem_alloc_from_pool(&memory, ALL, NULL, NULL)
          : way == 4 ? cu.mem_alloc_managed(&memory, ALL, CU_MEM_ATTACH_GLOBAL)
          : way == 5 ? cu.mem_alloc_pitch(&memory, &pitch, ALL, 1, 4)
          : way == 6 ? cu.mem_create(&memory, ALL, NULL, 0)
          : way == 7 ? cu.array_create((CUarray*)&memory, &flat)
                     : cu.array_3d_create((CUarray*)&memory, &deep));
    CHECK(cu.mem_free(memory));
    CHECK(launch(function, NULL));
    CHECK(cu.mipmapped_array_create((CUmipmappedArray*)&memory, &deep, 1));
    CHECK(cu.mem_free(memory));
  }
  REQUIRE(cu.mem_alloc(&(CUdeviceptr){0}, ALL + 1) == CUDA_ERROR_OUT_OF_MEMORY);
}

static void do_ptsz(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  CHECK(cu.launch_ptsz(kernel, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
  CUlaunchConfig config = {
      .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1};
  CHECK(cu.launch_ex_ptsz(&config, kernel, params, NULL));
}

static void do_launch_ex(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  CUlaunchAttribute attribute;
  CUlaunchConfig config = {
      .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1};
  CHECK(cu.launch_ex(&config, kernel, params, NULL));
  memset(&attribute, 0, sizeof attribute);
  config.attrs = &attribute;
  config.numAttrs = 1;
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = -2;
  CHECK(cu.launch_ex(&config, kernel, params, NULL));
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  CHECK(cu.launch_ex(&config, kernel, params, NULL));
}

static void do_extra(void) {
  struct {
    unsigned long long out;
    int n;
  } packed = {0x1000, 5};
  size_t bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CHECK(cu.launch(kernel_of(load_library(), "parent"), 2, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
}

static void do_cooperative(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  CHECK(cu.launch_cooperative(kernel, 2, 1, 1, 64, 1, 1, 0, NULL, params));
}

static void do_capture(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  CUstream stream;
  CUgraph graph;
  CHECK(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(launch(kernel, stream));
  CHECK(cu.capture_end(stream, &graph));
  CHECK(launch(kernel, stream));
}

static void launch_in_streams(int count) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  for (int i = 0; i < count; ++i) {
    CUstream stream;
    CHECK(cu.stream_create(&stream, 0));
    CHECK(launch(kernel, stream));
    CHECK(cu.stream_destroy(stream));
  }
}

static void do_streams(void) { launch_in_streams(3); }
static void do_many_streams(void) { launch_in_streams(70); }

static void do_attributes(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  CHECK(cu.kernel_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, (CUkernel)kernel, 0));
  CHECK(cu.func_attribute(kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
}

/* ---- processes and threads ---- */

static void* load_and_launch(void* argument) {
  CUcontext context = argument;
  CHECK(cu.set_current(context));
  CUlibrary library = load_library();
  CUfunction kernel = kernel_of(library, "parent");
  for (int i = 0; i < 5; ++i) CHECK(cu.launch_ptsz(kernel, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
  CHECK(cu.library_unload(library));
  return NULL;
}

static void do_threads(void) {
  pthread_t threads[16];
  CUcontext context;
  CHECK(cu.retain(&context, 0));
  for (int i = 0; i < 16; ++i) REQUIRE(pthread_create(&threads[i], NULL, load_and_launch, context) == 0);
  for (int i = 0; i < 16; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
}

/* One thread launches in a stream, and another one enqueues all kinds of things there. In a stream of its own
 * it may do so at any time. */
static CUstream shared_stream, own_stream;
static int launches_are_over;
static int rounds_of_others;

static void* keep_enqueuing(void* argument) {
  CUcontext context = argument;
  CHECK(cu.set_current(context));
  CUfunction child = kernel_of(load_library(), "child");
  CUevent event;
  int word, in_device = 0;
  void* child_params[] = {&out_param, &n_param, &n_param};
  CHECK(cu.event_create(&event, 0));
  while (!__atomic_load_n(&launches_are_over, __ATOMIC_ACQUIRE)) {
    CHECK(cu.copy_to_host(&word, (CUdeviceptr)&in_device, sizeof word, shared_stream));
    CHECK(cu.event_record(event, shared_stream));
    CHECK(cu.launch(child, 2, 1, 1, 64, 1, 1, 0, shared_stream, child_params, NULL));
    CHECK(cu.launch(child, 2, 1, 1, 64, 1, 1, 0, own_stream, child_params, NULL));
    CHECK(cu.launch_cooperative(child, 2, 1, 1, 64, 1, 1, 0, shared_stream, child_params));
    CHECK(cu.stream_synchronize(own_stream));
    __atomic_fetch_add(&rounds_of_others, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* The launches go on until the others had some turns among them, which takes a while on a busy machine. */
static void enqueue_beside_launches(unsigned flags, int is_default) {
  CUcontext context;
  CHECK(cu.retain(&context, 0));
  CUfunction kernel = kernel_of(load_library(), "parent");
  if (!is_default) CHECK(cu.stream_create(&shared_stream, flags));
  CHECK(cu.stream_create(&own_stream, CU_STREAM_NON_BLOCKING));
  CHECK(launch(kernel, shared_stream));
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) REQUIRE(pthread_create(&threads[i], NULL, keep_enqueuing, context) == 0);
  int launches = 1;
  while (launches <= 1000 || __atomic_load_n(&rounds_of_others, __ATOMIC_RELAXED) < 20) {
    CHECK(launch(kernel, shared_stream));
    ++launches;
  }
  __atomic_store_n(&launches_are_over, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 2; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  printf("launches %d\n", launches);
}

static void do_turns(void) { enqueue_beside_launches(CU_STREAM_NON_BLOCKING, 0); }
static void do_turns_in_legacy_stream(void) { enqueue_beside_launches(0, 1); }

static void* keep_launching(void* argument) {
  CUcontext context;
  CHECK(cu.retain(&context, 0));
  CHECK(cu.set_current(context));
  while (launch(argument, NULL) == CUDA_SUCCESS) continue;
  return NULL;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void do_fork(void) {
  CUfunction kernel = kernel_of(load_library(), "parent");
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, keep_launching, kernel) == 0);
  CHECK(launch(kernel, NULL));
  /* The other thread holds one lock or another most of the time, and is in the middle of a launch. The child
   * must not wait for it. */
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(10);
      CUlibrary library;
      cu.library_load(&library, registered_wrapper(), NULL, NULL, 0, NULL, NULL, 0);
      double begin = seconds();
      launch(kernel, NULL);
      REQUIRE(seconds() - begin < 0.9);
      exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  fflush(stdout);
  _exit(0);
}

/* Hooks point into libcuda, so it must stay although the program lets go of it. */
static void do_close(void) {
  close_driver();
  do_launch();
}

static void* load_and_launch_once(void* context) {
  CHECK(cu.set_current(context));
  CHECK(launch(kernel_of(load_library(), "parent"), NULL));
  return NULL;
}

static pthread_t start(void* (*run)(void*), size_t stack_bytes) {
  pthread_t thread;
  pthread_attr_t attributes;
  CUcontext context;
  CHECK(cu.retain(&context, 0));
  REQUIRE(pthread_attr_init(&attributes) == 0);
  if (stack_bytes != 0) REQUIRE(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
  REQUIRE(pthread_create(&thread, &attributes, run, context) == 0);
  return thread;
}

static void do_small_stack(void) { REQUIRE(pthread_join(start(load_and_launch_once, 64 << 10), NULL) == 0); }

static void* keep_loading(void* context) {
  CHECK(cu.set_current(context));
  for (int loads = 0; loads >= 0; ++loads) {
    CUlibrary library = load_library();
    CHECK(launch(kernel_of(library, "parent"), NULL));
    CHECK(cu.library_unload(library));
    pthread_testcancel();
  }
  return NULL;
}

/* exit() while other threads load. */
static void do_exit_loading(const char* microseconds) {
  for (int i = 0; i < 3; ++i) start(keep_loading, 0);
  usleep((useconds_t)atoi(microseconds));
  exit(0);
}

static void do_cancel_loading(const char* microseconds) {
  for (int i = 0; i < 3; ++i) {
    void* result;
    pthread_t thread = start(keep_loading, 0);
    usleep((useconds_t)atoi(microseconds));
    REQUIRE(pthread_cancel(thread) == 0);
    REQUIRE(pthread_join(thread, &result) == 0);
    REQUIRE(result == PTHREAD_CANCELED);
  }
  CHECK(launch(kernel_of(load_library(), "parent"), NULL));
}

/* Children of fork() while another thread loads: each loads, launches and ends. */
static void do_fork_loading(const char* microseconds) {
  start(keep_loading, 0);
  for (int i = 0; i < 5; ++i) {
    usleep((useconds_t)atoi(microseconds));
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(20);
      launch(kernel_of(load_library(), "parent"), NULL);
      exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  exit(0);
}

static void do_load_in_constructor(const char* file) {
  loading_library = do_launch;
  REQUIRE(dlopen(file, RTLD_NOW));
  do_launch();
}

static CUlibrary exiting_library;

static void launch_and_unload(void) {
  CHECK(launch(kernel_of(exiting_library, "parent"), NULL));
  CHECK(cu.library_unload(exiting_library));
}

/* As the CUDA runtime does: its handler was there first, so it runs after whatever the shim registered. */
static void do_exit_handler(void) {
  REQUIRE(atexit(launch_and_unload) == 0);
  exiting_library = load_library();
  CHECK(launch(kernel_of(exiting_library, "parent"), NULL));
}

static void do_export_table(void) {
  const void* table;
  CUuuid id = {{0}};
  CHECK(cu.export_table(&table, &id));
  printf("table %p\n", table);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {
      {"launch", do_launch},
      {"load_time", do_load_time},
      {"module", do_module},
      {"module_options", do_module_options},
      {"log_options", do_log_options},
      {"library_options", do_library_options},
      {"function_of_kernel", do_function_of_kernel},
      {"function_of_module", do_function_of_module},
      {"reload", do_reload},
      {"context_reset", do_context_reset},
      {"memory", do_memory},
      {"ptsz", do_ptsz},
      {"launch_ex", do_launch_ex},
      {"extra", do_extra},
      {"capture", do_capture},
      {"cooperative", do_cooperative},
      {"streams", do_streams},
      {"many_streams", do_many_streams},
      {"attributes", do_attributes},
      {"threads", do_threads},
      {"turns", do_turns},
      {"turns_in_legacy_stream", do_turns_in_legacy_stream},
      {"small_stack", do_small_stack},
      {"fork", do_fork},
      {"export_table", do_export_table},
      {"close", do_close},
      {"exit_handler", do_exit_handler},
  };
  static const struct {
    const char* name;
    void (*run)(const char*);
  } with_file[] = {{"module_file", do_module_file},
                   {"library_file", do_library_file},
                   {"bytes", do_bytes},
                   {"exit_loading", do_exit_loading},
                   {"cancel_loading", do_cancel_loading},
                   {"fork_loading", do_fork_loading},
                   {"load_in_constructor", do_load_in_constructor}};
  REQUIRE(argc >= 2);
  open_driver();
  for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof *scenarios; ++i) {
    if (strcmp(scenarios[i].name, argv[1]) == 0) return scenarios[i].run(), 0;
  }
  for (size_t i = 0; argc == 3 && i < sizeof with_file / sizeof *with_file; ++i) {
    if (strcmp(with_file[i].name, argv[1]) == 0) return with_file[i].run(argv[2]), 0;
  }
  fprintf(stderr, "no scenario %s\n", argv[1]);
  return 2;
}
