/* A libcuda.so.1 for tests, which executes nothing.
 *
 * It keeps what a driver keeps (contexts, streams, modules, kernels, memory), answers the questions that the
 * shim and its test programs ask, and writes every call to the file FAKE_CUDA_LOG as one line "name key=value
 * ...". Like the driver it hands out the addresses of dead objects again, but never an id. Kernels are known
 * by name: those of a linked cubin exactly, with their parameters; for a wrapper, a fatbin or PTX any name is
 * accepted.
 *
 * Environment:
 *   FAKE_CUDA_LOG      the log file; nothing is written without it
 *   FAKE_CUDA_FAIL     "cuMemAlloc_v2=2,cuLaunchKernel:child=701@3": this call (for this kernel) returns that
 *                      code, every time, only the third time, or from the third time on (@3+)
 *   FAKE_CUDA_LAZY     a function is loaded when it is first used, and not together with its module
 *   FAKE_CUDA_LINKER   the result of all links; without it nothing can be linked
 *   FAKE_CUDA_MANAGED  devices have managed memory, which kernels may use at any time unless it is "alone"
 *   FAKE_CUDA_MEMORY   bytes of device memory, where it is not 64 GiB
 *   FAKE_CUDA_MS       milliseconds between any two events, where it is not 1.5
 *   FAKE_CUDA_NAME     the name of all devices
 *   FAKE_CUDA_SM       compute capabilities of the devices, "90" or "90,80"
 *   FAKE_CUDA_THREADS  "kernel=128,...": CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK where it is not 1024
 *   FAKE_CUDA_OCCUPANCY  "kernel=2,...": blocks on a multiprocessor, whatever their size
 */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Each version of a function is a function of its own here. */
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
#undef cuLinkAddData
#undef cuLinkAddFile
#undef cuLinkCreate
#undef cuMemAdvise
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemPrefetchAsync
#undef cuStreamDestroy

CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned count, CUjit_option* options, void** values);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                       CUjit_option* options, void** values);

#define EXPORT __attribute__((visibility("default")))
#define LOCKED(statement) \
  (pthread_mutex_lock(&fake_lock), (statement), (void)pthread_mutex_unlock(&fake_lock))
#define FAIL_IF_SCRIPTED(name)                                   \
  do {                                                           \
    CUresult scripted_result = fake_failure(name, NULL);         \
    if (scripted_result != CUDA_SUCCESS) return scripted_result; \
  } while (0)

/* Guards all objects. */
extern pthread_mutex_t fake_lock;

/* ---- log.c ---- */
void fake_log(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* The code FAKE_CUDA_FAIL gives for this call, else CUDA_SUCCESS. `detail` may be NULL. */
CUresult fake_failure(const char* function, const char* detail);
/* The number behind NAME= in a list "name=1,other=2"; `otherwise` if it is not there. */
int fake_setting(const char* list, const char* name, int otherwise);

/* ---- pool.c: objects whose addresses are recycled ---- */
enum fake_kind {
  FAKE_CONTEXT = 1,
  FAKE_STREAM,
  FAKE_EVENT,
  FAKE_MODULE,
  FAKE_LIBRARY,
  FAKE_KERNEL,
  FAKE_FUNCTION
};
struct fake_object {
  enum fake_kind kind; /* 0 while free */
  enum fake_kind previous_kind;
};
void* fake_new(enum fake_kind kind, size_t bytes);
void fake_delete(void* object);
/* True if the handle points to a live object of that kind. */
int fake_is(const void* handle, enum fake_kind kind);
/* For going through all objects: the one at `index` if it is a live one of that kind, else NULL. */
void* fake_at(unsigned index, enum fake_kind kind);
unsigned fake_count(void);

struct CUctx_st {
  struct fake_object object;
  unsigned long long id;
  CUdevice device;
  int is_green;
};

struct CUstream_st {
  struct fake_object object;
  unsigned long long id;
  CUcontext context;
  int blocking; /* synchronises with the NULL stream */
  int capturing;
  CUstreamCaptureMode capture_mode;
  pthread_t capture_thread;
};

/* ---- image.c: what a cubin says about its kernels ---- */
#define FAKE_MAX_PARAMS 64
struct fake_kernel_info {
  char name[256];
  int known_params; /* from .nv.info; otherwise the parameters are not read */
  unsigned param_count;
  unsigned param_offset[FAKE_MAX_PARAMS], param_bytes[FAKE_MAX_PARAMS];
};
struct fake_image {
  int any_name; /* not a cubin: every kernel name is accepted */
  unsigned kernel_count;
  struct fake_kernel_info* kernels;
};
CUresult fake_read_image(const void* image, struct fake_image* result);
struct fake_kernel_info* fake_find_kernel(struct fake_image* image, const char* name);

/* ---- state.c ---- */
CUcontext fake_current(void);
/* Whether the driver would forbid the calling thread an allocation because of a capture; ends that capture.
 */
CUresult fake_unsafe_call(void);
unsigned long long fake_stream_id(CUstream stream);
int fake_is_special(CUstream stream);
int fake_capturing(CUstream stream);

/* Between fakeGate(1) and fakeGate(0) nothing that is enqueued gets done, as behind a kernel that waits for
 * the host. */
int fake_is_gated(void);
int fake_is_gated_locked(void);
/* An entry in the queue of the driver, which has 1,024 of them: CUDA_ERROR_LAUNCH_TIMEOUT where a driver
 * would block the caller until the gate opens. */
CUresult fake_enqueue(void);

/* ---- memory.c ---- */
/* Frees the allocations of a context, or the one at `memory`. */
void fake_drop_memory(CUcontext context, const void* memory);

/* ---- kernels.c ---- */
/* Frees modules and functions of a context that goes. */
void fake_drop_context(CUcontext context);

#endif
