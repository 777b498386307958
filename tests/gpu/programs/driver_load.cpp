// A driver API program that loads one module in every way there is and launches its parent kernel in every
// way: PTX and fatbins, from memory and from files, as modules and as libraries; with an argument array, with
// an argument buffer, and through cuLaunchKernelEx; by function handle and by kernel handle, which it asks
// for by name or finds in the list of all kernels. That list has the module's own kernels only.
//
// The module calls the device runtime without being linked with it, which CUDA refuses (error 218 for PTX):
// natively most lines end in "refused". A refusal is not a failure; a module that loads and computes wrong
// values is. The harness knows which lines must say "right" in a preloaded run. One image is linked and loads
// everywhere.
#include "driver_program.h"

namespace {

// The parent's handle in the list of an image's kernels; null, and one more mistake, if the list is wrong.
template <class Handle, class Image, class Count, class List, class Name>
Handle listed_parent(Image image, Count count, List list, Name name) {
  unsigned number = 0;
  check(count(&number, image), "counting kernels");
  // Room for one more than there are, which must be left alone.
  std::vector<Handle> handles(number + 1, nullptr);
  check(list(handles.data(), number + 1, image), "listing kernels");
  Handle found = nullptr;
  for (unsigned i = 0; i < number; ++i) {
    const char* is = nullptr;
    check(name(&is, handles[i]), "asking for a kernel's name");
    if (std::string(is) == "launch_all") found = handles[i];
    if (std::string(is).find("klap") != std::string::npos) {
      std::printf("the list of kernels has %s\n", is);
      ++wrong;
    }
  }
  if (found == nullptr || handles[number] != nullptr) {
    std::printf("the list of %u kernels lacks the parent, or has more than were counted\n", number);
    ++wrong;
  }
  return found;
}

void test_module(const char* how, const char* what, CUresult loaded, CUmodule module) {
  if (loaded != CUDA_SUCCESS) return print(how, what, loaded, "");
  CUfunction function = nullptr;
  CUdeviceptr bias = 0;
  // An image of relocatable code that nobody linked loads, and is found to hold no kernels.
  const CUresult usable = driver.module_function(&function, module, "launch_all");
  if (usable != CUDA_SUCCESS) {
    print(how, what, usable, "");
    check(driver.module_unload(module), "cuModuleUnload");
    return;
  }
  check(driver.module_global(&bias, nullptr, module, "bias"), "cuModuleGetGlobal");
  print(how, what, loaded, run(function, bias));
  const auto listed =
      listed_parent<CUfunction>(module, driver.module_count, driver.module_list, driver.function_name);
  if (listed != nullptr)
    print(how, (std::string(what) + ", from the list").c_str(), loaded, run(listed, bias));
  check(driver.module_unload(module), "cuModuleUnload");
}

void test_library(const char* how, const char* what, CUresult loaded, CUlibrary library) {
  if (loaded != CUDA_SUCCESS) return print(how, what, loaded, "");
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr bias = 0;
  // Libraries are loaded on first use, so this is where the driver refuses what it cannot link.
  CUresult usable = driver.library_kernel(&kernel, library, "launch_all");
  if (usable == CUDA_SUCCESS) usable = driver.library_global(&bias, nullptr, library, "bias");
  if (usable != CUDA_SUCCESS) {
    print(how, what, usable, "");
    check(driver.library_unload(library), "cuLibraryUnload");
    return;
  }
  // The driver takes a kernel handle wherever it takes a function.
  print(how, what, loaded, run(reinterpret_cast<CUfunction>(kernel), bias));
  check(driver.kernel_function(&function, kernel), "cuKernelGetFunction");
  print(how, (std::string(what) + ", by its function").c_str(), loaded, run(function, bias));
  const auto listed =
      listed_parent<CUkernel>(library, driver.library_count, driver.library_list, driver.kernel_name);
  if (listed != nullptr)
    print(how, (std::string(what) + ", from the list").c_str(), loaded,
          run(reinterpret_cast<CUfunction>(listed), bias));
  check(driver.library_unload(library), "cuLibraryUnload");
}

void test_image(const std::string& folder, const char* name, bool fatbin) {
  const std::string file = folder + "/" + name;
  const std::string image = read_file(file);
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUresult result = driver.module_load(&module, file.c_str());
  test_module("cuModuleLoad", name, result, module);
  result = driver.module_load_data(&module, image.c_str());
  test_module("cuModuleLoadData", name, result, module);
  char log[512] = "";
  CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* value[] = {log, reinterpret_cast<void*>(sizeof log)};
  result = driver.module_load_data_ex(&module, image.c_str(), 2, option, value);
  test_module("cuModuleLoadDataEx", name, result, module);
  if (fatbin) {
    result = driver.module_load_fatbin(&module, image.c_str());
    test_module("cuModuleLoadFatBinary", name, result, module);
  }
  result = driver.library_load_data(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  test_library("cuLibraryLoadData", name, result, library);
  result = driver.library_load_file(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  test_library("cuLibraryLoadFromFile", name, result, library);
}

}  // namespace

int main(int, char** argv) {
  program_name = "driver_load";
  open_driver();
  const std::string folder = folder_of(argv[0]);
  test_image(folder, "driver_module.ptx", false);
  test_image(folder, "driver_module.fatbin", true);
  test_image(folder, "driver_module_linked.fatbin", true);
  return finish();
}
