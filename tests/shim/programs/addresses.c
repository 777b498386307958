/* Prints who owns the functions that look-ups return: "ROUTE NAME OBJECT SYMBOL", one line each. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void say(const char* route, const char* name, void* function) {
  Dl_info info;
  if (!function) {
    printf("%s %s null -\n", route, name);
  } else if (dladdr(function, &info) == 0) {
    printf("%s %s unknown -\n", route, name);
  } else {
    const char* file = strrchr(info.dli_fname, '/');
    printf("%s %s %s %s\n", route, name, file ? file + 1 : info.dli_fname,
           info.dli_sname ? info.dli_sname : "-");
  }
}

typedef CUresult (*get_v1)(const char*, void**, int, cuuint64_t);
typedef CUresult (*get_v2)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static void ask(get_v2 get, const char* name, int version, cuuint64_t flags) {
  char route[64];
  void* function = NULL;
  /* The status may be NULL. */
  get(name, &function, version, flags, NULL);
  snprintf(route, sizeof route, "proc:%d:%d", version, (int)flags);
  say(route, name, function);
}

/* Whether two requests get one function. */
static void compare(get_v2 get, const char* what, const char* name, int version, cuuint64_t flags,
                    int other_version, cuuint64_t other_flags) {
  void *function = NULL, *other = NULL;
  get(name, &function, version, flags, NULL);
  get(name, &other, other_version, other_flags, NULL);
  printf("one %s %s -\n", what, function == other ? "yes" : "no");
}

int main(void) {
  static const char* const names[] = {"cuInit",
                                      "cuGetExportTable",
                                      "cuMemFree_v2",
                                      "cuMemAlloc",
                                      "cuNoSuchFunction",
                                      "cuStreamSynchronize",
                                      "cuMemcpyDtoHAsync_v2",
                                      "cuEventRecord",
                                      "curl_easy_init",
                                      "cuGetProcAddress",
                                      "cuGetProcAddress_v2",
                                      "cuModuleLoad",
                                      "cuModuleLoadData",
                                      "cuModuleLoadDataEx",
                                      "cuModuleLoadFatBinary",
                                      "cuModuleUnload",
                                      "cuModuleGetFunction",
                                      "cuLinkCreate",
                                      "cuLinkCreate_v2",
                                      "cuLinkAddData",
                                      "cuLinkAddData_v2",
                                      "cuLinkAddFile",
                                      "cuLinkAddFile_v2",
                                      "cuLinkComplete",
                                      "cuLinkDestroy",
                                      "cuLibraryLoadData",
                                      "cuLibraryLoadFromFile",
                                      "cuLibraryUnload",
                                      "cuLibraryGetKernel",
                                      "cuLibraryGetKernelCount",
                                      "cuLibraryEnumerateKernels",
                                      "cuModuleGetFunctionCount",
                                      "cuModuleEnumerateFunctions",
                                      "cuLibraryGetModule",
                                      "cuKernelGetFunction",
                                      "cuKernelSetAttribute",
                                      "cuKernelSetCacheConfig",
                                      "cuFuncSetAttribute",
                                      "cuFuncSetCacheConfig",
                                      "cuLaunchKernel",
                                      "cuLaunchKernel_ptsz",
                                      "cuLaunchKernelEx",
                                      "cuLaunchKernelEx_ptsz",
                                      "cuCtxDestroy",
                                      "cuCtxDestroy_v2",
                                      "cuCtxGetLimit",
                                      "cuCtxSetLimit",
                                      "cuDevicePrimaryCtxRelease",
                                      "cuDevicePrimaryCtxRelease_v2",
                                      "cuDevicePrimaryCtxReset",
                                      "cuDevicePrimaryCtxReset_v2",
                                      "cuGreenCtxDestroy",
                                      "cuStreamDestroy",
                                      "cuStreamDestroy_v2",
                                      "cuArray3DCreate_v2",
                                      "cuArrayCreate_v2",
                                      "cuMemAlloc_v2",
                                      "cuMemAllocAsync",
                                      "cuMemAllocAsync_ptsz",
                                      "cuMemAllocFromPoolAsync",
                                      "cuMemAllocFromPoolAsync_ptsz",
                                      "cuMemAllocManaged",
                                      "cuMemAllocPitch_v2",
                                      "cuMemCreate",
                                      "cuMemFree_v2",
                                      "cuMemFreeAsync",
                                      "cuMemFreeAsync_ptsz",
                                      "cuMipmappedArrayCreate"};
  /* Before there is a libcuda nothing of it may be found. */
  say("before", "cuLaunchKernel", dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
  const char* error = dlerror();
  printf("before error %s -\n", error && strstr(error, "cuLaunchKernel") ? "set" : "missing");

  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) say("dlsym", names[i], dlsym(library, names[i]));
  say("default", "cuLaunchKernel", dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
  say("libc", "malloc", dlsym(RTLD_DEFAULT, "malloc"));

  get_v2 get = (get_v2)dlsym(library, "cuGetProcAddress_v2");
  ask(get, "cuInit", 12000, 0);
  ask(get, "cuCtxDestroy", 12000, 0);
  ask(get, "cuCtxDestroy", 3000, 0);
  ask(get, "cuLinkCreate", 6000, 0);
  ask(get, "cuLinkCreate", 12000, 0);
  ask(get, "cuGreenCtxDestroy", 12040, 0);
  ask(get, "cuDevicePrimaryCtxReset", 12000, 0);
  ask(get, "cuDevicePrimaryCtxRelease", 12000, 0);
  ask(get, "cuGetExportTable", 12000, 0);
  ask(get, "cuStreamSynchronize", 12000, 0);
  ask(get, "cuEventRecord", 12000, 0);
  ask(get, "cuNoSuchFunction", 12000, 0);
  ask(get, "cuMemAlloc", 2000, 0);
  ask(get, "cuMemAlloc", 3020, 0);
  ask(get, "cuMemAllocAsync", 12000, 0);
  ask(get, "cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask(get, "cuMemFree", 2000, 0);
  ask(get, "cuMemFree", 3020, 0);
  ask(get, "cuMemFreeAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask(get, "cuLaunchKernel", 3000, 0);
  ask(get, "cuLaunchKernel", 4000, 0);
  ask(get, "cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  ask(get, "cuLaunchKernel", 5000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask(get, "cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask(get, "cuLaunchKernelEx", 12000, 0);
  ask(get, "cuLaunchKernelEx", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask(get, "cuLibraryLoadData", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask(get, "cuStreamDestroy", 3000, 0);
  ask(get, "cuStreamDestroy", 4000, 0);
  ask(get, "cuGetProcAddress", 11000, 0);
  ask(get, "cuGetProcAddress", 11030, 0);
  ask(get, "cuGetProcAddress", 12000, 0);

  const cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  compare(get, "twice", "cuEventRecord", 12000, 0, 12000, 0);
  compare(get, "per_thread", "cuEventRecord", 12000, 0, 12000, per_thread);
  compare(get, "older_than_per_thread", "cuEventRecord", 5000, per_thread, 12000, 0);
  void* copy = NULL;
  get("cuMemcpyDtoHAsync", &copy, 12000, 0, NULL);
  printf("one by_symbol %s -\n", copy == dlsym(library, "cuMemcpyDtoHAsync_v2") ? "yes" : "no");

  /* The older version of the look-up itself, with its four parameters. */
  void *older = NULL, *function = NULL;
  get("cuGetProcAddress", &older, 11040, 0, NULL);
  ((get_v1)older)("cuLaunchKernel", &function, 11040, 0);
  say("older", "cuLaunchKernel", function);
  return 0;
}
