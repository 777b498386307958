// What the driver API programs have in common: the driver's functions, and runs of driver_module.cu's parent.
//
// The driver is opened at run time, as in every program that must start without one.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// The driver functions used, looked up like any CUDA program does it.
struct Driver {
  decltype(&cuInit) init;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDevicePrimaryCtxRetain) context_retain;
  decltype(&cuCtxSetCurrent) context_set;
  decltype(&cuCtxSynchronize) synchronize;
  decltype(&cuMemAlloc) mem_alloc;
  decltype(&cuMemFree) mem_free;
  decltype(&cuMemcpyHtoD) to_device;
  decltype(&cuMemcpyDtoH) to_host;
  decltype(&cuModuleLoad) module_load;
  decltype(&cuModuleLoadData) module_load_data;
  decltype(&cuModuleLoadDataEx) module_load_data_ex;
  decltype(&cuModuleLoadFatBinary) module_load_fatbin;
  decltype(&cuModuleUnload) module_unload;
  decltype(&cuModuleGetFunction) module_function;
  decltype(&cuModuleGetGlobal) module_global;
  decltype(&cuLibraryLoadData) library_load_data;
  decltype(&cuLibraryLoadFromFile) library_load_file;
  decltype(&cuLibraryUnload) library_unload;
  decltype(&cuLibraryGetKernel) library_kernel;
  decltype(&cuLibraryGetGlobal) library_global;
  decltype(&cuKernelGetFunction) kernel_function;
  decltype(&cuModuleGetFunctionCount) module_count;
  decltype(&cuModuleEnumerateFunctions) module_list;
  decltype(&cuFuncGetName) function_name;
  decltype(&cuLibraryGetKernelCount) library_count;
  decltype(&cuLibraryEnumerateKernels) library_list;
  decltype(&cuKernelGetName) kernel_name;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuLaunchKernelEx) launch_ex;
};

inline Driver driver;
inline int wrong = 0;
inline const char* program_name = "";

[[noreturn]] inline void give_up(const std::string& why) {
  std::printf("FAIL %s: %s\n", program_name, why.c_str());
  std::exit(3);
}

inline void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) give_up(std::string(what) + ": error " + std::to_string(result));
}

template <class Function>
void look_up(decltype(&cuGetProcAddress) get, const char* name, Function& function) {
  void* address = nullptr;
  if (get(name, &address, 12040, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS ||
      address == nullptr) {
    give_up(std::string("the driver has no ") + name);
  }
  function = reinterpret_cast<Function>(address);
}

inline void open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) give_up("no CUDA driver: " + std::string(dlerror()));
  const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) give_up("the driver has no cuGetProcAddress_v2");
  look_up(get, "cuInit", driver.init);
  look_up(get, "cuDeviceGet", driver.device_get);
  look_up(get, "cuDevicePrimaryCtxRetain", driver.context_retain);
  look_up(get, "cuCtxSetCurrent", driver.context_set);
  look_up(get, "cuCtxSynchronize", driver.synchronize);
  look_up(get, "cuMemAlloc", driver.mem_alloc);
  look_up(get, "cuMemFree", driver.mem_free);
  look_up(get, "cuMemcpyHtoD", driver.to_device);
  look_up(get, "cuMemcpyDtoH", driver.to_host);
  look_up(get, "cuModuleLoad", driver.module_load);
  look_up(get, "cuModuleLoadData", driver.module_load_data);
  look_up(get, "cuModuleLoadDataEx", driver.module_load_data_ex);
  look_up(get, "cuModuleLoadFatBinary", driver.module_load_fatbin);
  look_up(get, "cuModuleUnload", driver.module_unload);
  look_up(get, "cuModuleGetFunction", driver.module_function);
  look_up(get, "cuModuleGetGlobal", driver.module_global);
  look_up(get, "cuLibraryLoadData", driver.library_load_data);
  look_up(get, "cuLibraryLoadFromFile", driver.library_load_file);
  look_up(get, "cuLibraryUnload", driver.library_unload);
  look_up(get, "cuLibraryGetKernel", driver.library_kernel);
  look_up(get, "cuLibraryGetGlobal", driver.library_global);
  look_up(get, "cuKernelGetFunction", driver.kernel_function);
  look_up(get, "cuModuleGetFunctionCount", driver.module_count);
  look_up(get, "cuModuleEnumerateFunctions", driver.module_list);
  look_up(get, "cuFuncGetName", driver.function_name);
  look_up(get, "cuLibraryGetKernelCount", driver.library_count);
  look_up(get, "cuLibraryEnumerateKernels", driver.library_list);
  look_up(get, "cuKernelGetName", driver.kernel_name);
  look_up(get, "cuLaunchKernel", driver.launch);
  look_up(get, "cuLaunchKernelEx", driver.launch_ex);
  const CUresult result = driver.init(0);
  if (result != CUDA_SUCCESS) give_up("cuInit: error " + std::to_string(result));
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(driver.device_get(&device, 0), "cuDeviceGet");
  check(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver.context_set(context), "cuCtxSetCurrent");
}

constexpr int kParents = 200;
constexpr int kCount = 70;  // cells of each parent thread
constexpr unsigned kBlock = 64;
constexpr unsigned kGrid = (kParents + kBlock - 1) / kBlock;
constexpr int kBias = 9;  // written over the module's own 5, so that a second copy of the variable shows

enum class Form { Array, Buffer, Extended };

inline CUresult launch(CUfunction function, Form form, CUdeviceptr cells) {
  int count = kCount;
  int parents = kParents;
  if (form == Form::Buffer) {
    struct {
      CUdeviceptr cells;
      int count;
      int parents;
    } arguments = {cells, count, parents};
    size_t size = sizeof arguments;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return driver.launch(function, kGrid, 1, 1, kBlock, 1, 1, 0, nullptr, nullptr, extra);
  }
  void* arguments[] = {&cells, &count, &parents};
  if (form == Form::Array) {
    return driver.launch(function, kGrid, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr);
  }
  CUlaunchConfig config{};
  config.gridDimX = kGrid;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kBlock;
  config.blockDimY = config.blockDimZ = 1;
  return driver.launch_ex(&config, function, arguments, nullptr);
}

// Launches in each form; every launch adds the same to each cell.
inline std::string run(CUfunction function, CUdeviceptr bias) {
  std::vector<int> cells(static_cast<size_t>(kParents) * kCount);
  CUdeviceptr on_device = 0;
  const size_t bytes = cells.size() * sizeof(int);
  const int other_bias = kBias;
  check(driver.mem_alloc(&on_device, bytes), "cuMemAlloc");
  check(driver.to_device(on_device, cells.data(), bytes), "cuMemcpyHtoD");
  check(driver.to_device(bias, &other_bias, sizeof other_bias), "writing the bias");
  for (const Form form : {Form::Array, Form::Buffer, Form::Extended}) {
    const CUresult result = launch(function, form, on_device);
    if (result != CUDA_SUCCESS) return "wrong: launch error " + std::to_string(result);
  }
  check(driver.synchronize(), "running the parent");
  check(driver.to_host(cells.data(), on_device, bytes), "cuMemcpyDtoH");
  check(driver.mem_free(on_device), "cuMemFree");
  for (size_t i = 0; i < cells.size(); ++i) {
    const int expected = 3 * (static_cast<int>(i) / kCount + kBias);
    if (cells[i] != expected) {
      return "wrong: cell " + std::to_string(i) + " is " + std::to_string(cells[i]) + " instead of " +
             std::to_string(expected);
    }
  }
  return "right";
}

inline void print(const char* how, const char* what, CUresult loaded, const std::string& verdict) {
  const std::string outcome =
      loaded == CUDA_SUCCESS ? verdict : "refused with error " + std::to_string(static_cast<int>(loaded));
  std::printf("%s, %s: %s\n", how, what, outcome.c_str());
  std::fflush(stdout);
  if (loaded == CUDA_SUCCESS && verdict != "right") ++wrong;
}

inline std::string read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) give_up("cannot open " + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The folder of the program, where its images are.
inline std::string folder_of(const char* program) {
  const std::string path = program;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The program's last line and exit code.
inline int finish() {
  if (wrong == 0) {
    std::printf("PASS %s\n", program_name);
    return 0;
  }
  std::printf("FAIL %s: %d ways are wrong\n", program_name, wrong);
  return 1;
}
