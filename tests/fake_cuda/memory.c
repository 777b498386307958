/* Memory, copies and events. Device memory is host memory that goes with its context, so that a sanitizer
 * sees who uses it too late. Events are complete as soon as they are recorded, unless FAKE_CUDA_FAIL says
 * otherwise. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

/* Large blocks are near each other, as on a device. Else the C library might take some of them from its heap.
 */
__attribute__((constructor)) static void keep_large_blocks_together(void) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

struct allocation {
  struct allocation* next;
  CUcontext context;
  void* memory;
  size_t bytes;
  CUmemoryPool pool; /* NULL: of cuMemAlloc */
  int is_part;       /* of another one, with which it goes */
};
static struct allocation* allocations;

void fake_drop_memory(CUcontext context, const void* memory) {
  struct allocation** link = &allocations;
  while (*link) {
    struct allocation* entry = *link;
    if (entry->context != context && entry->memory != memory) {
      link = &entry->next;
      continue;
    }
    *link = entry->next;
    if (!entry->is_part) free(entry->memory);
    free(entry);
  }
}

static size_t device_bytes(void) {
  const char* bytes = getenv("FAKE_CUDA_MEMORY");
  return bytes ? strtoull(bytes, NULL, 10) : (size_t)64 << 30;
}

static size_t free_bytes(void) {
  size_t used = 0;
  for (const struct allocation* entry = allocations; entry; entry = entry->next) used += entry->bytes;
  const size_t all = device_bytes();
  return used < all ? all - used : 0;
}

static CUresult allocate(void** address, size_t bytes, CUmemoryPool pool, CUresult result) {
  void* memory = NULL;
  if (result == CUDA_SUCCESS && bytes > free_bytes()) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS && posix_memalign(&memory, 512, bytes) != 0) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) {
    struct allocation* entry = malloc(sizeof *entry);
    *entry = (struct allocation){allocations, fake_current(), memory, bytes, pool, 0};
    allocations = entry;
  }
  *address = memory;
  return result;
}

static CUresult allocate_for(const char* function, CUdeviceptr* address, size_t bytes) {
  FAIL_IF_SCRIPTED(function);
  void* memory = NULL;
  pthread_mutex_lock(&fake_lock);
  CUresult result = fake_current() ? fake_unsafe_call() : CUDA_ERROR_INVALID_CONTEXT;
  result = allocate(&memory, bytes, NULL, result);
  pthread_mutex_unlock(&fake_lock);
  *address = (CUdeviceptr)(uintptr_t)memory;
  fake_log("%s bytes=%zu result=%d address=%p", function, bytes, (int)result, memory);
  return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate_for("cuMemAlloc_v2", address, bytes);
}

/* The first version has 32-bit addresses, which no device has today. */
EXPORT CUresult cuMemAlloc(unsigned* address, unsigned bytes);
EXPORT CUresult cuMemAlloc(unsigned* address, unsigned bytes) {
  (void)address, (void)bytes;
  return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate_for("cuMemAllocManaged", address, bytes);
}

EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device);
EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  FAIL_IF_SCRIPTED("cuMemAdvise");
  fake_log("cuMemAdvise address=%p bytes=%zu advice=%d device=%d", (void*)(uintptr_t)address, bytes,
           (int)advice, device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream);
EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  FAIL_IF_SCRIPTED("cuMemPrefetchAsync");
  fake_log("cuMemPrefetchAsync address=%p bytes=%zu device=%d stream=%p", (void*)(uintptr_t)address, bytes,
           device, (void*)stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                   unsigned element_bytes) {
  (void)element_bytes;
  *pitch = width;
  return allocate_for("cuMemAllocPitch_v2", address, width * height);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  (void)stream;
  return allocate_for("cuMemAllocAsync", address, bytes);
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  (void)stream;
  return allocate_for("cuMemAllocAsync_ptsz", address, bytes);
}

/* What is given out here is the address of a piece of memory. */
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                            const CUmemAllocationProp* properties, unsigned long long flags) {
  (void)properties, (void)flags;
  CUdeviceptr address = 0;
  const CUresult result = allocate_for("cuMemCreate", &address, bytes);
  *handle = address;
  return result;
}

static CUresult create_array(const char* function, void** array, size_t width, size_t height, size_t depth) {
  CUdeviceptr address = 0;
  const size_t bytes = width * (height ? height : 1) * (depth ? depth : 1);
  const CUresult result = allocate_for(function, &address, bytes);
  *array = (void*)(uintptr_t)address;
  return result;
}

EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* form) {
  return create_array("cuArrayCreate_v2", (void**)array, form->Width, form->Height, 0);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* form) {
  return create_array("cuArray3DCreate_v2", (void**)array, form->Width, form->Height, form->Depth);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* form,
                                       unsigned levels) {
  (void)levels;
  return create_array("cuMipmappedArrayCreate", (void**)array, form->Width, form->Height, form->Depth);
}

EXPORT CUresult cuMemGetInfo_v2(size_t* left, size_t* total) {
  FAIL_IF_SCRIPTED("cuMemGetInfo_v2");
  LOCKED(*left = free_bytes());
  *total = device_bytes();
  return CUDA_SUCCESS;
}

/* Makes two allocations of the one at `address`, side by side as a driver's may lie, for as long as their
 * context lives. */
EXPORT void fakeSplitAllocation(CUdeviceptr address, size_t bytes);
EXPORT void fakeSplitAllocation(CUdeviceptr address, size_t bytes) {
  pthread_mutex_lock(&fake_lock);
  struct allocation* first = allocations;
  while (first && first->memory != (void*)(uintptr_t)address) first = first->next;
  if (!first) abort();
  struct allocation* second = malloc(sizeof *second);
  *second = (struct allocation){allocations,          first->context, (char*)first->memory + bytes,
                                first->bytes - bytes, first->pool,    1};
  first->bytes = bytes;
  allocations = second;
  pthread_mutex_unlock(&fake_lock);
}

EXPORT CUresult cuMemFree(unsigned address);
EXPORT CUresult cuMemFree(unsigned address) {
  (void)address;
  return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  fake_log("cuMemFree_v2 address=%p", (void*)(uintptr_t)address);
  LOCKED(fake_drop_memory(NULL, (void*)(uintptr_t)address));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  FAIL_IF_SCRIPTED("cuMemPoolCreate");
  static int one_for_all;
  fake_log("cuMemPoolCreate device=%d", properties->location.id);
  *pool = (CUmemoryPool)(void*)&one_for_all;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  static int one_for_all;
  (void)device;
  *pool = (CUmemoryPool)(void*)&one_for_all;
  return CUDA_SUCCESS;
}

static void put_attribute(CUpointer_attribute attribute, void* value, const struct allocation* of) {
  const size_t address = of ? (size_t)(uintptr_t)of->memory : 0, bytes = of ? of->bytes : 0;
  const CUmemoryPool pool = of ? of->pool : NULL;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      memcpy(value, &address, sizeof address);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      memcpy(value, &bytes, sizeof bytes);
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      memcpy(value, &pool, sizeof pool);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned*)value = of ? CU_MEMORYTYPE_DEVICE : 0;
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *(int*)value = of && !pool;
      break;
    default:
      *(int*)value = 0;
  }
}

EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                       CUdeviceptr address) {
  FAIL_IF_SCRIPTED("cuPointerGetAttributes");
  fake_log("cuPointerGetAttributes address=%p", (void*)(uintptr_t)address);
  pthread_mutex_lock(&fake_lock);
  const struct allocation* of = allocations;
  while (of && address - (CUdeviceptr)(uintptr_t)of->memory >= of->bytes) of = of->next;
  for (unsigned i = 0; i < count; ++i) put_attribute(attributes[i], values[i], of);
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
  (void)pool;
  fake_log("cuMemPoolTrimTo bytes=%zu", bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  (void)pool;
  FAIL_IF_SCRIPTED("cuMemPoolSetAttribute");
  fake_log("cuMemPoolSetAttribute attribute=%d value=%d", (int)attribute, *(int*)value);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                        CUstream stream) {
  FAIL_IF_SCRIPTED("cuMemAllocFromPoolAsync");
  void* memory = NULL;
  pthread_mutex_lock(&fake_lock);
  CUresult result =
      allocate(&memory, bytes, pool, fake_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
  pthread_mutex_unlock(&fake_lock);
  *address = (CUdeviceptr)(uintptr_t)memory;
  fake_log("cuMemAllocFromPoolAsync bytes=%zu result=%d address=%p stream=%p", bytes, (int)result, memory,
           (void*)stream);
  return result;
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                             CUstream stream) {
  return cuMemAllocFromPoolAsync(address, bytes, pool, stream ? stream : CU_STREAM_PER_THREAD);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  FAIL_IF_SCRIPTED("cuMemFreeAsync");
  fake_log("cuMemFreeAsync address=%p stream=%p", (void*)(uintptr_t)address, (void*)stream);
  LOCKED(fake_drop_memory(NULL, (void*)(uintptr_t)address));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return cuMemFreeAsync(address, stream ? stream : CU_STREAM_PER_THREAD);
}

static CUresult copy_to_device(const char* function, CUdeviceptr to, const void* from, size_t bytes,
                               CUstream stream) {
  char hex[2 * 128 + 1] = "";
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < bytes && i < 128; ++i) {
    hex[2 * i] = digits[((const unsigned char*)from)[i] >> 4];
    hex[2 * i + 1] = digits[((const unsigned char*)from)[i] & 15];
    hex[2 * i + 2] = 0;
  }
  fake_log("%s to=%p bytes=%zu stream=%p data=%s", function, (void*)(uintptr_t)to, bytes, (void*)stream, hex);
  memcpy((void*)(uintptr_t)to, from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  FAIL_IF_SCRIPTED("cuMemcpyHtoDAsync_v2");
  return copy_to_device("cuMemcpyHtoDAsync_v2", to, from, bytes, stream);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_to_device("cuMemcpyHtoDAsync_v2_ptsz", to, from, bytes, stream);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAIL_IF_SCRIPTED("cuMemcpyDtoHAsync_v2");
  fake_log("cuMemcpyDtoHAsync_v2 from=%p bytes=%zu stream=%p", (void*)(uintptr_t)from, bytes, (void*)stream);
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  FAIL_IF_SCRIPTED("cuMemsetD8Async");
  fake_log("cuMemsetD8Async to=%p value=%u bytes=%zu stream=%p", (void*)(uintptr_t)to, value, bytes,
           (void*)stream);
  memset((void*)(uintptr_t)to, value, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  FAIL_IF_SCRIPTED("cuMemHostRegister_v2");
  fake_log("cuMemHostRegister_v2 memory=%p bytes=%zu flags=%u", memory, bytes, flags);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
  (void)flags;
  *address = (CUdeviceptr)(uintptr_t)memory;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  FAIL_IF_SCRIPTED("cuEventCreate");
  LOCKED(*event = fake_new(FAKE_EVENT, sizeof(struct fake_object)));
  fake_log("cuEventCreate event=%p flags=%u", (void*)*event, flags);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAIL_IF_SCRIPTED("cuEventRecord");
  const CUresult queued = fake_enqueue();
  if (queued != CUDA_SUCCESS) return queued;
  fake_log("cuEventRecord event=%p stream=%p", (void*)event, (void*)stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return cuEventRecord(event, stream ? stream : CU_STREAM_PER_THREAD);
}

EXPORT CUresult cuEventQuery(CUevent event) {
  (void)event;
  FAIL_IF_SCRIPTED("cuEventQuery");
  if (fake_unsafe_call() != CUDA_SUCCESS) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return fake_is_gated() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* Every stretch of work takes 1.5 ms, or as many as FAKE_CUDA_MS says. The header means a newer version of
 * the function by the plain name. */
#undef cuEventElapsedTime
EXPORT CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end);
EXPORT CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  (void)start;
  (void)end;
  FAIL_IF_SCRIPTED("cuEventElapsedTime");
  const char* const told = getenv("FAKE_CUDA_MS");
  *ms = told ? strtof(told, NULL) : 1.5f;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  fake_log("cuEventDestroy_v2 event=%p", (void*)event);
  LOCKED(fake_delete(event));
  return CUDA_SUCCESS;
}
