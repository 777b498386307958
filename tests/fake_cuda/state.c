/* Devices, contexts, streams and captures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

enum { MAX_DEVICES = 8 };
static CUcontext primary[MAX_DEVICES];
static __thread CUcontext current;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static unsigned long long next_id = 1; /* of contexts and streams alike, never given out twice */

/* A forked child may still ask: only the shim's locks are to be on trial there, not this one. */
static void lock_all(void) { pthread_mutex_lock(&fake_lock); }
static void unlock_all(void) { pthread_mutex_unlock(&fake_lock); }
__attribute__((constructor)) static void survive_forks(void) {
  pthread_atfork(lock_all, unlock_all, unlock_all);
}

/* ---- devices ---- */

EXPORT CUresult cuInit(unsigned flags) {
  fake_log("cuInit flags=%u", flags);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

static int capability(int device) {
  const char* list = getenv("FAKE_CUDA_SM");
  int value = 90;
  for (int i = 0; list && *list; ++i) {
    value = atoi(list);
    if (i == device) return value;
    list = strchr(list, ',');
    if (list) ++list;
  }
  return value;
}

EXPORT CUresult cuDeviceGetCount(int* count) {
  const char* list = getenv("FAKE_CUDA_SM");
  FAIL_IF_SCRIPTED("cuDeviceGetCount");
  *count = 1;
  for (; list && *list; ++list) *count += *list == ',';
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < MAX_DEVICES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  const char* const told = getenv("FAKE_CUDA_NAME");
  (void)device;
  FAIL_IF_SCRIPTED("cuDeviceGetName");
  snprintf(name, (size_t)bytes, "%s", told ? told : "fake device");
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability(device) / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability(device) % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      *value = getenv("FAKE_CUDA_MANAGED") != NULL;
      break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      *value = getenv("FAKE_CUDA_MANAGED") && strcmp(getenv("FAKE_CUDA_MANAGED"), "alone") != 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
      return CUDA_SUCCESS;
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
      *name = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND";
      return CUDA_SUCCESS;
    default:
      *name = NULL;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/* ---- contexts ---- */

static CUcontext new_context(CUdevice device) {
  CUcontext context = fake_new(FAKE_CONTEXT, sizeof *context);
  context->id = next_id++;
  context->device = device;
  return context;
}

static void drop_context(CUcontext context) {
  fake_drop_context(context);
  fake_drop_memory(context, NULL);
  fake_delete(context);
}

CUcontext fake_current(void) { return fake_is(current, FAKE_CONTEXT) ? current : NULL; }

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  pthread_mutex_lock(&fake_lock);
  if (!primary[device]) primary[device] = new_context(device);
  *context = primary[device];
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuDevicePrimaryCtxRetain device=%d context=%p id=%llu", device, (void*)*context, (*context)->id);
  return CUDA_SUCCESS;
}

/* Nobody counts who retains it. It stays until it is reset. */
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  fake_log("cuDevicePrimaryCtxRelease_v2 device=%d", device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  LOCKED(*active = primary[device] != NULL);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  fake_log("cuDevicePrimaryCtxReset_v2 device=%d", device);
  pthread_mutex_lock(&fake_lock);
  if (primary[device]) drop_context(primary[device]);
  primary[device] = NULL;
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  LOCKED(*context = current = new_context(device));
  fake_log("cuCtxCreate_v2 flags=%u context=%p id=%llu", flags, (void*)*context, (*context)->id);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  fake_log("cuCtxDestroy_v2 context=%p", (void*)context);
  LOCKED(drop_context(context));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  LOCKED(*context = fake_current());
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  CUcontext context = NULL;
  LOCKED(context = fake_current());
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  FAIL_IF_SCRIPTED("cuCtxGetId");
  if (!context) LOCKED(context = fake_current());
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

/* Device-side launches that may wait, and the device's heap, as CUDA has them by default. */
EXPORT CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  FAIL_IF_SCRIPTED("cuCtxGetLimit");
  if (!fake_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (limit != CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT && limit != CU_LIMIT_MALLOC_HEAP_SIZE)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = limit == CU_LIMIT_MALLOC_HEAP_SIZE ? 8 << 20 : 2048;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  FAIL_IF_SCRIPTED("cuCtxSetLimit");
  fake_log("cuCtxSetLimit limit=%d value=%zu", (int)limit, value);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void) {
  fake_log("cuCtxSynchronize");
  return CUDA_SUCCESS;
}

/* ---- streams ---- */

int fake_is_special(CUstream stream) {
  return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

int fake_capturing(CUstream stream) { return !fake_is_special(stream) && stream->capturing; }

unsigned long long fake_stream_id(CUstream stream) {
  static __thread struct { unsigned long long context, id; } of_thread[16];
  if (!fake_is_special(stream)) return stream->id;
  /* The NULL stream has one id in each context, the per-thread stream one in each thread and context. */
  CUcontext context = fake_current();
  if (stream != CU_STREAM_PER_THREAD) return (unsigned long long)1 << 32 | (context ? context->id : 0);
  for (size_t i = 0; i < sizeof of_thread / sizeof *of_thread; ++i) {
    if (of_thread[i].id == 0) {
      of_thread[i].context = context->id;
      of_thread[i].id = next_id++;
    }
    if (of_thread[i].context == context->id) return of_thread[i].id;
  }
  abort();
}

EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  pthread_mutex_lock(&fake_lock);
  *stream = fake_new(FAKE_STREAM, sizeof **stream);
  (*stream)->id = next_id++;
  (*stream)->context = fake_current();
  (*stream)->blocking = !(flags & CU_STREAM_NON_BLOCKING);
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuStreamCreate stream=%p id=%llu flags=%u", (void*)*stream, (*stream)->id, flags);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy(CUstream stream) {
  fake_log("cuStreamDestroy stream=%p", (void*)stream);
  LOCKED(fake_delete(stream));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  fake_log("cuStreamDestroy_v2 stream=%p", (void*)stream);
  LOCKED(fake_delete(stream));
  return CUDA_SUCCESS;
}

/* Whether the stream itself is captured, which such a question ends. */
static int ends_capture(CUstream stream) {
  int ends = 0;
  LOCKED(ends = !fake_is_special(stream) && stream->capturing);
  if (ends) LOCKED(stream->capturing = CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  return ends;
}

EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  FAIL_IF_SCRIPTED("cuStreamGetId");
  if (ends_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  LOCKED(*id = fake_stream_id(stream));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long* id) {
  return cuStreamGetId(stream ? stream : CU_STREAM_PER_THREAD, id);
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (ends_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  LOCKED(*context = fake_is_special(stream) ? fake_current() : stream->context);
  return CUDA_SUCCESS;
}

/* ---- green contexts: contexts that are parts of the primary one ---- */

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc part, CUdevice device, unsigned flags) {
  (void)part, (void)flags;
  CUcontext made = NULL;
  LOCKED(made = new_context(device));
  made->is_green = 1;
  *green = (CUgreenCtx)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  fake_log("cuGreenCtxDestroy context=%p", (void*)green);
  LOCKED(drop_context((CUcontext)green));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  *context = (CUcontext)green;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags, int priority) {
  (void)priority;
  CUresult result = cuStreamCreate(stream, flags);
  if (result == CUDA_SUCCESS) (*stream)->context = (CUcontext)green;
  return result;
}

EXPORT CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* green) {
  *green = stream->context->is_green ? (CUgreenCtx)stream->context : NULL;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  *device = stream->context->device;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
  FAIL_IF_SCRIPTED("cuStreamQuery");
  if (fake_unsafe_call() != CUDA_SUCCESS) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  fake_log("cuStreamQuery stream=%p", (void*)stream);
  return fake_is_gated() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static int queued; /* behind the gate */
static int gate_is_closed;

EXPORT void fakeGate(int closed);
EXPORT void fakeGate(int closed) { LOCKED((gate_is_closed = closed, queued = 0)); }

int fake_is_gated_locked(void) { return gate_is_closed; }

int fake_is_gated(void) {
  int closed = 0;
  LOCKED(closed = gate_is_closed);
  return closed;
}

CUresult fake_enqueue(void) {
  enum { ENTRIES = 1024 };
  int entries = 0;
  LOCKED(entries = gate_is_closed ? ++queued : 0);
  return entries > ENTRIES ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  fake_log("cuStreamSynchronize stream=%p", (void*)stream);
  return CUDA_SUCCESS;
}

/* ---- capture ---- */

static CUstream captured[16]; /* streams being captured now */

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  fake_log("cuStreamBeginCapture_v2 stream=%p mode=%d", (void*)stream, (int)mode);
  pthread_mutex_lock(&fake_lock);
  stream->capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  stream->capture_mode = mode;
  stream->capture_thread = pthread_self();
  for (int i = 0;; ++i) {
    if (!captured[i]) {
      captured[i] = stream;
      break;
    }
  }
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  int status = 0;
  pthread_mutex_lock(&fake_lock);
  status = stream->capturing;
  stream->capturing = 0;
  for (int i = 0; i < 16; ++i) {
    if (captured[i] == stream) captured[i] = NULL;
  }
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuStreamEndCapture stream=%p status=%d", (void*)stream, status);
  *graph = NULL;
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&fake_lock);
  *status =
      fake_is_special(stream) ? CU_STREAM_CAPTURE_STATUS_NONE : (CUstreamCaptureStatus)stream->capturing;
  for (int i = 0; i < 16; ++i) {
    if (captured[i] && captured[i]->blocking && (stream == NULL || stream == CU_STREAM_LEGACY)) {
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  pthread_mutex_unlock(&fake_lock);
  return result;
}

EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return cuStreamIsCapturing(stream ? stream : CU_STREAM_PER_THREAD, status);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  CUstreamCaptureMode previous = thread_mode;
  thread_mode = *mode;
  *mode = previous;
  return CUDA_SUCCESS;
}

CUresult fake_unsafe_call(void) {
  CUresult result = CUDA_SUCCESS;
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (int i = 0; i < 16; ++i) {
    CUstream stream = captured[i];
    if (!stream || stream->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    int own = pthread_equal(stream->capture_thread, pthread_self());
    int forbidden = own || (stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                            thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (!forbidden) continue;
    stream->capturing = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}
