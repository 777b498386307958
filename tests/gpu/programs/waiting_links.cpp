// A driver API program that links kernels which wait for their children, and loads the result in every way.
// The kernels are those of waiting/fibonacci.cu, as NVRTC 11.8 has compiled them. The linkers are the
// driver's and nvJitLink. Natively both refuse that code for devices of compute capability 9.0 and later.
//
//   waiting_links              links and runs
//   waiting_links keep FILE    writes the driver's result to a file
//   waiting_links load FILE    loads it where nobody knows its inputs: it must be refused, or its kernel must
//                              end with an error
#include <nvJitLink.h>

#include <cstring>

#include "driver_link.h"

namespace {

constexpr int kNumber = 8;
constexpr long kExpected = 21;  // the eighth Fibonacci number

// The launch's result, or the error of the kernel.
CUresult run_kernel(CUfunction function, long& result) {
  const std::vector<long> empty(size_t{1} << (kNumber + 1));
  const size_t bytes = empty.size() * sizeof(long);
  CUdeviceptr results = 0;
  int node = 0, number = kNumber;
  check(driver.mem_alloc(&results, bytes), "cuMemAlloc");
  check(driver.to_device(results, empty.data(), bytes), "cuMemcpyHtoD");
  void* arguments[] = {&results, &node, &number};
  CUresult error = driver.launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
  if (error == CUDA_SUCCESS) error = driver.synchronize();
  if (error != CUDA_SUCCESS) return error;
  check(driver.to_host(&result, results, sizeof result), "cuMemcpyDtoH");
  check(driver.mem_free(results), "cuMemFree");
  return error;
}

std::string run(CUfunction function) {
  long result = 0;
  const CUresult error = run_kernel(function, result);
  if (error != CUDA_SUCCESS) return "wrong: error " + std::to_string(error);
  return result == kExpected ? "right" : "wrong: " + std::to_string(result);
}

void report(const char* how, const char* what, CUresult loaded, CUfunction function) {
  print(how, what, loaded, loaded == CUDA_SUCCESS ? run(function) : "");
  if (loaded != CUDA_SUCCESS) ++wrong;
}

void test_module(const char* how, const char* what, CUresult loaded, CUmodule module) {
  CUfunction function = nullptr;
  if (loaded == CUDA_SUCCESS) loaded = driver.module_function(&function, module, "fibonacci");
  report(how, what, loaded, function);
  if (module != nullptr) check(driver.module_unload(module), "cuModuleUnload");
}

CUresult load_library(const void* image, CUlibrary& library, CUfunction& function) {
  CUkernel kernel = nullptr;
  CUresult loaded = driver.library_load_data(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (loaded == CUDA_SUCCESS) loaded = driver.library_kernel(&kernel, library, "fibonacci");
  function = reinterpret_cast<CUfunction>(kernel);
  return loaded;
}

void test_library(const char* what, const void* image) {
  CUlibrary library = nullptr;
  CUfunction function = nullptr;
  const CUresult loaded = load_library(image, library, function);
  report("cuLibraryLoadData", what, loaded, function);
  if (library != nullptr) check(driver.library_unload(library), "cuLibraryUnload");
}

void write_file(const std::string& name, const std::string& bytes) {
  std::ofstream file(name, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) give_up("cannot write " + name);
}

void test_image(const char* what, const std::string& image) {
  CUmodule module = nullptr;
  CUresult result = driver.module_load_data(&module, image.c_str());
  test_module("cuModuleLoadData", what, result, module);
  test_library(what, image.c_str());

  char file[] = "/tmp/waiting_links.XXXXXX";
  const int opened = mkstemp(file);
  if (opened < 0) give_up("cannot make a file");
  close(opened);
  write_file(file, image);
  module = nullptr;
  result = driver.module_load(&module, file);
  test_module("cuModuleLoad", what, result, module);
  unlink(file);
}

std::string finished(Link& link) {
  const auto* const image = static_cast<const char*>(link.complete());
  return {image, link.bytes()};
}

void test_driver(const std::string& folder) {
  const std::string ptx = folder + "/nvrtc11/fibonacci.ptx";
  {
    Link link;
    link.add_data(CU_JIT_INPUT_PTX, read_file(ptx), "fibonacci");
    CUmodule module = nullptr;
    const std::string image = finished(link);
    const CUresult result = driver.module_load_data(&module, image.c_str());
    test_module("cuModuleLoadData before the link's end", "PTX from memory", result, module);
    test_image("PTX from memory", image);
  }
  {
    Link link;
    link.add_file(CU_JIT_INPUT_PTX, ptx);
    test_image("PTX from a file", finished(link));
  }
  {
    Link link;
    link.add_data(CU_JIT_INPUT_FATBINARY, read_file(folder + "/waiting.fatbin"), nullptr);
    test_image("a fatbin", finished(link));
  }
  {
    Link link;
    link.add_data(CU_JIT_INPUT_PTX, read_file(folder + "/driver_child.ptx"), "child");
    link.add_file(CU_JIT_INPUT_FATBINARY, folder + "/waiting.fatbin");
    test_image("two units", finished(link));
  }
}

// Kernels of both versions in one module, which cannot run. The load says what the link would have said.
void test_refused(const std::string& folder) {
  Link link;
  link.add_file(CU_JIT_INPUT_PTX, folder + "/nvrtc11/fibonacci.ptx");
  link.add_file(CU_JIT_INPUT_PTX, folder + "/driver_module.ptx");
  CUmodule module = nullptr;
  const CUresult result = driver.module_load_data(&module, link.complete());
  print("cuModuleLoadData", "both versions", result, "wrong: it is loaded");
  if (result != CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC) ++wrong;
}

void step(nvJitLinkResult result, const char* what) {
  if (result != NVJITLINK_SUCCESS) give_up(std::string(what) + ": error " + std::to_string(result));
}

template <class Add>
void test_nvjitlink(const char* what, const Add& add) {
  const char* option = KLAP_ARCH_OPTION;
  nvJitLinkHandle link = nullptr;
  size_t bytes = 0;
  step(nvJitLinkCreate(&link, 1, &option), "nvJitLinkCreate");
  step(nvJitLinkAddFile(link, NVJITLINK_INPUT_LIBRARY, device_runtime()), "nvJitLinkAddFile");
  step(add(link), "adding the kernels");
  step(nvJitLinkComplete(link), "nvJitLinkComplete");
  step(nvJitLinkGetLinkedCubinSize(link, &bytes), "nvJitLinkGetLinkedCubinSize");
  std::string image(bytes, '\0');
  step(nvJitLinkGetLinkedCubin(link, image.data()), "nvJitLinkGetLinkedCubin");
  step(nvJitLinkDestroy(&link), "nvJitLinkDestroy");
  test_image(what, image);
}

void test_nvjitlink(const std::string& folder) {
  const std::string file = folder + "/nvrtc11/fibonacci.ptx", ptx = read_file(file);
  const std::string fatbin = read_file(folder + "/waiting.fatbin");
  test_nvjitlink("nvJitLink, PTX from memory", [&](nvJitLinkHandle link) {
    return nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, ptx.c_str(), ptx.size() + 1, "fibonacci");
  });
  test_nvjitlink("nvJitLink, PTX from a file", [&](nvJitLinkHandle link) {
    return nvJitLinkAddFile(link, NVJITLINK_INPUT_ANY, file.c_str());
  });
  test_nvjitlink("nvJitLink, a fatbin", [&](nvJitLinkHandle link) {
    return nvJitLinkAddData(link, NVJITLINK_INPUT_FATBIN, fatbin.data(), fatbin.size(), "fibonacci");
  });
}

int keep(const std::string& folder, const char* file) {
  Link link;
  link.add_file(CU_JIT_INPUT_PTX, folder + "/nvrtc11/fibonacci.ptx");
  write_file(file, finished(link));
  return finish();
}

int load_kept(const char* file) {
  const std::string image = read_file(file);
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  long result = 0;
  CUresult error = load_library(image.c_str(), library, function);
  std::printf("cuLibraryLoadData: %s\n", error == CUDA_SUCCESS ? "loaded" : "refused");
  if (error == CUDA_SUCCESS && run_kernel(function, result) == CUDA_SUCCESS) ++wrong;
  error = driver.module_load(&module, file);
  std::printf("cuModuleLoad: error %d\n", static_cast<int>(error));
  if (error == CUDA_SUCCESS) ++wrong;
  return finish();
}

}  // namespace

int main(int count, char** arguments) {
  program_name = "waiting_links";
  open_driver();
  open_linker();
  const std::string folder = folder_of(arguments[0]);
  if (count == 3 && std::strcmp(arguments[1], "keep") == 0) return keep(folder, arguments[2]);
  if (count == 3 && std::strcmp(arguments[1], "load") == 0) return load_kept(arguments[2]);
  test_driver(folder);
  test_refused(folder);
  test_nvjitlink(folder);
  open_first_linker();
  test_driver(folder);
  return finish();
}
