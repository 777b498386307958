// Loading and unloading device code, and the calls by which the program learns kernel handles.
#include "runtime/load/load.h"
#include "runtime/parents/handles.h"
#include "runtime/parents/listed_kernels.h"
#include "shim/guard.h"
#include "shim/hooks.h"

using namespace klap;
using runtime::Driver;
using shim::after;
using shim::in_place;
using shim::unload;
using shim::When;

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* file) {
  return in_place<&Driver::module_load>(
      "cuModuleLoad", [&] { return runtime::load_module_file("cuModuleLoad", module, file); }, module, file);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return in_place<&Driver::module_load_data>(
      "cuModuleLoadData", [&] { return runtime::load_module("cuModuleLoadData", module, image, {}); }, module,
      image);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                                CUjit_option* options, void** values) {
  return in_place<&Driver::module_load_data_ex>(
      "cuModuleLoadDataEx",
      [&] {
        return runtime::load_module("cuModuleLoadDataEx", module, image, {options, values, count});
      },
      module, image, count, options, values);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* fatbin) {
  return in_place<&Driver::module_load_fat_binary>(
      "cuModuleLoadFatBinary",
      [&] { return runtime::load_module("cuModuleLoadFatBinary", module, fatbin, {}); }, module, fatbin);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                                               void** values, unsigned count,
                                               CUlibraryOption* library_options, void** library_values,
                                               unsigned library_count) {
  const auto load = [&] {
    return runtime::load_library("cuLibraryLoadData", library, code, {options, values, count},
                                 {library_options, library_values, library_count});
  };
  return in_place<&Driver::library_load_data>("cuLibraryLoadData", load, library, code, options, values,
                                              count, library_options, library_values, library_count);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* file,
                                                   CUjit_option* options, void** values, unsigned count,
                                                   CUlibraryOption* library_options, void** library_values,
                                                   unsigned library_count) {
  const auto load = [&] {
    return runtime::load_library_file("cuLibraryLoadFromFile", library, file, {options, values, count},
                                      {library_options, library_values, library_count});
  };
  return in_place<&Driver::library_load_from_file>("cuLibraryLoadFromFile", load, library, file, options,
                                                   values, count, library_options, library_values,
                                                   library_count);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return unload<&Driver::module_unload>(
      "cuModuleUnload", [&] { runtime::forget_module(module); }, module);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  return unload<&Driver::library_unload>(
      "cuLibraryUnload", [&] { runtime::forget_library(library); }, library);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return after<&Driver::module_get_function>(
      "cuModuleGetFunction", [&] { runtime::learn_function(module, name, *function); }, function, module,
      name);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return after<&Driver::library_get_kernel>(
      "cuLibraryGetKernel", [&] { runtime::learn_kernel(library, name, *kernel); }, kernel, library, name);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return in_place<&Driver::library_get_kernel_count, When::OnceRewritten>(
      "cuLibraryGetKernelCount", [&] { return runtime::count_kernels(count, library); }, count, library);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  return in_place<&Driver::library_enumerate_kernels, When::OnceRewritten>(
      "cuLibraryEnumerateKernels", [&] { return runtime::list_kernels(kernels, room, library); }, kernels,
      room, library);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return in_place<&Driver::module_get_function_count, When::OnceRewritten>(
      "cuModuleGetFunctionCount", [&] { return runtime::count_functions(count, module); }, count, module);
}

KLAP_EXPORT CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned room,
                                                        CUmodule module) {
  return in_place<&Driver::module_enumerate_functions, When::OnceRewritten>(
      "cuModuleEnumerateFunctions", [&] { return runtime::list_functions(functions, room, module); },
      functions, room, module);
}

KLAP_EXPORT CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return after<&Driver::library_get_module>(
      "cuLibraryGetModule", [&] { runtime::learn_module(library, *module); }, module, library);
}

KLAP_EXPORT CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return after<&Driver::kernel_get_function>(
      "cuKernelGetFunction", [&] { runtime::learn_function_of(kernel, *function); }, function, kernel);
}

}  // extern "C"
