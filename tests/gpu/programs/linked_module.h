// Loads of driver_module.cu as programs have linked it themselves: each must be taken and compute right
// values.
#pragma once

#include "driver_program.h"

inline void test_module(const char* how, const char* what, CUresult loaded, CUmodule module) {
  CUfunction function = nullptr;
  CUdeviceptr bias = 0;
  if (loaded == CUDA_SUCCESS) loaded = driver.module_function(&function, module, "launch_all");
  if (loaded == CUDA_SUCCESS) loaded = driver.module_global(&bias, nullptr, module, "bias");
  print(how, what, loaded, loaded == CUDA_SUCCESS ? run(function, bias) : "");
  if (module != nullptr) check(driver.module_unload(module), "cuModuleUnload");
}

inline void test_library(const char* how, const char* what, const void* image) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUdeviceptr bias = 0;
  CUresult loaded = driver.library_load_data(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (loaded == CUDA_SUCCESS) loaded = driver.library_kernel(&kernel, library, "launch_all");
  if (loaded == CUDA_SUCCESS) loaded = driver.library_global(&bias, nullptr, library, "bias");
  print(how, what, loaded, loaded == CUDA_SUCCESS ? run(reinterpret_cast<CUfunction>(kernel), bias) : "");
  if (library != nullptr) check(driver.library_unload(library), "cuLibraryUnload");
}
