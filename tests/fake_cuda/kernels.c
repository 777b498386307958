/* Modules, libraries, and the handles of their kernels. */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUfunction function_for(CUmodule module, CUkernel kernel, const struct fake_kernel_info* info);

CUresult fake_load(CUfunction function) {
  if (function->loaded || !getenv("FAKE_CUDA_LAZY")) return CUDA_SUCCESS;
  if (fake_is_gated_locked()) return CUDA_ERROR_LAUNCH_TIMEOUT;
  function->loaded = 1;
  fake_log("load kernel=%s", function->info.name);
  return CUDA_SUCCESS;
}

CUresult fake_resolve(const void* handle, struct fake_kernel_info** info) {
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&fake_lock);
  if (fake_is(handle, FAKE_KERNEL)) {
    *info = &((CUkernel)handle)->info;
    if (fake_current()) result = fake_load(function_for(NULL, (CUkernel)handle, *info));
  } else if (!fake_is(handle, FAKE_FUNCTION)) {
    result = CUDA_ERROR_INVALID_HANDLE;
  } else {
    *info = &((CUfunction)handle)->info;
    if (((CUfunction)handle)->context != fake_current()) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) result = fake_load((CUfunction)handle);
  }
  pthread_mutex_unlock(&fake_lock);
  return result;
}

/* The information on the kernel called `name`; CUDA_ERROR_NOT_FOUND if the image has none. */
static CUresult kernel_info(struct fake_image* image, const char* name, struct fake_kernel_info* info) {
  const struct fake_kernel_info* known = fake_find_kernel(image, name);
  if (!known && !image->any_name) return CUDA_ERROR_NOT_FOUND;
  memset(info, 0, sizeof *info);
  if (known) *info = *known;
  snprintf(info->name, sizeof info->name, "%s", name);
  return CUDA_SUCCESS;
}

/* ---- modules ---- */

static void drop_functions(CUmodule module) {
  for (unsigned i = 0; i < fake_count(); ++i) {
    CUfunction function = fake_at(i, FAKE_FUNCTION);
    if (function && function->module == module) fake_delete(function);
  }
}

static void drop_module(CUmodule module) {
  drop_functions(module);
  if (!module->library) free(module->image.kernels); /* else they are the library's */
  fake_delete(module);
}

void fake_drop_context(CUcontext context) {
  for (unsigned i = 0; i < fake_count(); ++i) {
    CUmodule module = fake_at(i, FAKE_MODULE);
    if (module && module->context == context) drop_module(module);
  }
  for (unsigned i = 0; i < fake_count(); ++i) {
    CUfunction function = fake_at(i, FAKE_FUNCTION);
    if (function && function->context == context) fake_delete(function);
  }
}

static CUresult load_module(const char* function, CUmodule* module, const void* image) {
  struct fake_image read;
  CUresult result = fake_failure(function, NULL);
  if (result == CUDA_SUCCESS) result = fake_read_image(image, &read);
  if (result == CUDA_SUCCESS) {
    pthread_mutex_lock(&fake_lock);
    *module = fake_new(FAKE_MODULE, sizeof **module);
    (*module)->context = fake_current();
    (*module)->image = read;
    pthread_mutex_unlock(&fake_lock);
  }
  fake_log("%s image=%p result=%d module=%p", function, image, (int)result,
           result == CUDA_SUCCESS ? (void*)*module : NULL);
  return result;
}

EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module("cuModuleLoadData", module, image);
}

/* Says how much of its log is used, as the driver does. */
static void use_options(unsigned count, CUjit_option* options, void** values) {
  for (unsigned i = 0; i < count; ++i) {
    fake_log("jit_option option=%d value=%p", (int)options[i], values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) values[i] = (void*)7;
  }
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                   void** values) {
  use_options(count, options, values);
  return load_module("cuModuleLoadDataEx", module, image);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_module("cuModuleLoadFatBinary", module, image);
}

/* The bytes of a file with a NUL behind them, NULL if it cannot be read. Never freed. */
static char* file_bytes(const char* name) {
  FILE* file = fopen(name, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char* bytes = calloc(1, (size_t)size + 1);
  if (fread(bytes, 1, (size_t)size, file) != (size_t)size) abort();
  fclose(file);
  return bytes;
}

EXPORT CUresult cuModuleLoad(CUmodule* module, const char* file) {
  char* bytes = file_bytes(file);
  fake_log("file name=%s", file);
  return bytes ? load_module("cuModuleLoad", module, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  fake_log("cuModuleUnload module=%p", (void*)module);
  pthread_mutex_lock(&fake_lock);
  drop_module(module);
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

/* The function of a module or of a kernel in the current context; the same handle each time. */
static CUfunction function_for(CUmodule module, CUkernel kernel, const struct fake_kernel_info* info) {
  CUcontext context = module ? module->context : fake_current();
  for (unsigned i = 0; i < fake_count(); ++i) {
    CUfunction known = fake_at(i, FAKE_FUNCTION);
    if (known && known->module == module && known->kernel == kernel && known->context == context &&
        strcmp(known->info.name, info->name) == 0) {
      return known;
    }
  }
  CUfunction made = fake_new(FAKE_FUNCTION, sizeof *made);
  made->module = module;
  made->kernel = kernel;
  made->context = context;
  made->info = *info;
  return made;
}

EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  struct fake_kernel_info info;
  *function = NULL;
  pthread_mutex_lock(&fake_lock);
  CUresult result = fake_is(module, FAKE_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS) result = kernel_info(&module->image, name, &info);
  if (result == CUDA_SUCCESS) *function = function_for(module, NULL, &info);
  if (result == CUDA_SUCCESS) result = fake_load(*function);
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuModuleGetFunction module=%p name=%s result=%d function=%p", (void*)module, name, (int)result,
           (void*)*function);
  return result;
}

/* ---- libraries ---- */

static CUresult load_library(const char* function, CUlibrary* library, const void* image) {
  struct fake_image read;
  CUresult result = fake_failure(function, NULL);
  if (result == CUDA_SUCCESS) result = fake_read_image(image, &read);
  if (result == CUDA_SUCCESS) {
    pthread_mutex_lock(&fake_lock);
    *library = fake_new(FAKE_LIBRARY, sizeof **library);
    (*library)->image = read;
    pthread_mutex_unlock(&fake_lock);
  }
  fake_log("%s image=%p result=%d library=%p", function, image, (int)result,
           result == CUDA_SUCCESS ? (void*)*library : NULL);
  return result;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                                  unsigned count, CUlibraryOption* library_options, void** library_values,
                                  unsigned library_count) {
  use_options(count, options, values);
  for (unsigned i = 0; i < library_count; ++i) {
    fake_log("library_option option=%d value=%p", (int)library_options[i], library_values[i]);
  }
  return load_library("cuLibraryLoadData", library, code);
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* options,
                                      void** values, unsigned count, CUlibraryOption* library_options,
                                      void** library_values, unsigned library_count) {
  (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
  char* bytes = file_bytes(file);
  fake_log("file name=%s", file);
  return bytes ? load_library("cuLibraryLoadFromFile", library, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
}

EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  fake_log("cuLibraryUnload library=%p", (void*)library);
  pthread_mutex_lock(&fake_lock);
  for (unsigned i = 0; i < fake_count(); ++i) {
    CUmodule module = fake_at(i, FAKE_MODULE);
    if (module && module->library == library) {
      drop_functions(module);
      fake_delete(module);
    }
    CUfunction function = fake_at(i, FAKE_FUNCTION);
    if (function && function->kernel && function->kernel->library == library) fake_delete(function);
  }
  for (unsigned i = 0; i < fake_count(); ++i) {
    CUkernel kernel = fake_at(i, FAKE_KERNEL);
    if (kernel && kernel->library == library) fake_delete(kernel);
  }
  free(library->image.kernels);
  fake_delete(library);
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  struct fake_kernel_info info;
  *kernel = NULL;
  CUresult result = fake_failure("cuLibraryGetKernel", name);
  pthread_mutex_lock(&fake_lock);
  if (result == CUDA_SUCCESS && !fake_is(library, FAKE_LIBRARY)) result = CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS) result = kernel_info(&library->image, name, &info);
  for (unsigned i = 0; result == CUDA_SUCCESS && i < fake_count(); ++i) {
    CUkernel known = fake_at(i, FAKE_KERNEL);
    if (known && known->library == library && strcmp(known->info.name, name) == 0) *kernel = known;
  }
  if (result == CUDA_SUCCESS && !*kernel) {
    *kernel = fake_new(FAKE_KERNEL, sizeof **kernel);
    (*kernel)->library = library;
    (*kernel)->info = info;
  }
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuLibraryGetKernel library=%p name=%s result=%d kernel=%p", (void*)library, name, (int)result,
           (void*)*kernel);
  return result;
}

/* The images here have no variables. */
EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  (void)address, (void)bytes;
  fake_log("cuLibraryGetGlobal library=%p name=%s", (void*)library, name);
  return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  (void)address, (void)bytes;
  fake_log("cuModuleGetGlobal module=%p name=%s", (void*)module, name);
  return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  pthread_mutex_lock(&fake_lock);
  CUresult result = fake_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  if (result == CUDA_SUCCESS) *function = function_for(NULL, kernel, &kernel->info);
  if (result == CUDA_SUCCESS) result = fake_load(*function);
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuKernelGetFunction kernel=%p result=%d", (void*)kernel, (int)result);
  return result;
}

/* This driver lists nothing: the emulated one does. */
EXPORT CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  fake_log("cuLibraryGetKernelCount library=%p count=%p", (void*)library, (void*)count);
  return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  fake_log("cuLibraryEnumerateKernels library=%p kernels=%p room=%u", (void*)library, (void*)kernels, room);
  return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  fake_log("cuModuleGetFunctionCount module=%p count=%p", (void*)module, (void*)count);
  return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule module) {
  fake_log("cuModuleEnumerateFunctions module=%p functions=%p room=%u", (void*)module, (void*)functions,
           room);
  return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  pthread_mutex_lock(&fake_lock);
  CUresult result = fake_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  *module = NULL;
  for (unsigned i = 0; result == CUDA_SUCCESS && i < fake_count(); ++i) {
    CUmodule known = fake_at(i, FAKE_MODULE);
    if (known && known->library == library && known->context == fake_current()) *module = known;
  }
  if (result == CUDA_SUCCESS && !*module) {
    *module = fake_new(FAKE_MODULE, sizeof **module);
    (*module)->context = fake_current();
    (*module)->library = library;
    (*module)->image = library->image;
  }
  pthread_mutex_unlock(&fake_lock);
  fake_log("cuLibraryGetModule library=%p result=%d module=%p", (void*)library, (int)result, (void*)*module);
  return result;
}
