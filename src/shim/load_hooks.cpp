// Loading and unloading device code, and the calls by which the program learns kernel handles.
#include "runtime/handles.h"
#include "runtime/load.h"
#include "shim/guard.h"
#include "shim/hooks.h"
#include "shim/memory_guard.h"

using namespace klap;
using runtime::Driver;
using shim::attempt;
using shim::forward;
using shim::forward_with_room;
using shim::observe;

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* file) {
  const auto result =
      attempt("cuModuleLoad", [&] { return runtime::load_module_file("cuModuleLoad", module, file); });
  return result ? *result : forward_with_room<&Driver::module_load>("cuModuleLoad", module, file);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  const auto result = attempt("cuModuleLoadData",
                              [&] { return runtime::load_module("cuModuleLoadData", module, image, {}); });
  return result ? *result : forward_with_room<&Driver::module_load_data>("cuModuleLoadData", module, image);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                                CUjit_option* options, void** values) {
  const auto result = attempt("cuModuleLoadDataEx", [&] {
    return runtime::load_module("cuModuleLoadDataEx", module, image, {options, values, count});
  });
  return result ? *result
                : forward_with_room<&Driver::module_load_data_ex>("cuModuleLoadDataEx", module, image, count,
                                                                  options, values);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* fatbin) {
  const auto result = attempt("cuModuleLoadFatBinary", [&] {
    return runtime::load_module("cuModuleLoadFatBinary", module, fatbin, {});
  });
  return result ? *result
                : forward_with_room<&Driver::module_load_fat_binary>("cuModuleLoadFatBinary", module, fatbin);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                                               void** values, unsigned count,
                                               CUlibraryOption* library_options, void** library_values,
                                               unsigned library_count) {
  const auto result = attempt("cuLibraryLoadData", [&] {
    return runtime::load_library("cuLibraryLoadData", library, code, {options, values, count},
                                 {library_options, library_values, library_count});
  });
  return result ? *result
                : forward_with_room<&Driver::library_load_data>("cuLibraryLoadData", library, code, options,
                                                                values, count, library_options,
                                                                library_values, library_count);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* file,
                                                   CUjit_option* options, void** values, unsigned count,
                                                   CUlibraryOption* library_options, void** library_values,
                                                   unsigned library_count) {
  const auto result = attempt("cuLibraryLoadFromFile", [&] {
    return runtime::load_library_file("cuLibraryLoadFromFile", library, file, {options, values, count},
                                      {library_options, library_values, library_count});
  });
  return result ? *result
                : forward_with_room<&Driver::library_load_from_file>("cuLibraryLoadFromFile", library, file,
                                                                     options, values, count, library_options,
                                                                     library_values, library_count);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  observe("cuModuleUnload", [&] { runtime::forget_module(module); });
  return forward<&Driver::module_unload>(module);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  observe("cuLibraryUnload", [&] { runtime::forget_library(library); });
  return forward<&Driver::library_unload>(library);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = forward<&Driver::module_get_function>(function, module, name);
  if (result == CUDA_SUCCESS) {
    observe("cuModuleGetFunction", [&] { runtime::learn_function(module, name, *function); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result = forward<&Driver::library_get_kernel>(kernel, library, name);
  if (result == CUDA_SUCCESS) {
    observe("cuLibraryGetKernel", [&] { runtime::learn_kernel(library, name, *kernel); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  const CUresult result = forward<&Driver::library_get_module>(module, library);
  if (result == CUDA_SUCCESS) {
    observe("cuLibraryGetModule", [&] { runtime::learn_module(library, *module); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = forward<&Driver::kernel_get_function>(function, kernel);
  if (result == CUDA_SUCCESS) {
    observe("cuKernelGetFunction", [&] { runtime::learn_function_of(kernel, *function); });
  }
  return result;
}

}  // extern "C"
