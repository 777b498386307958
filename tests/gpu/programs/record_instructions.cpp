// Records what the GPU makes of the instruction suite (tests/emulator/alu/suite.h says what that is).
//
// Usage: record_instructions SUITE [FROM_LINE TO_LINE] > RECORDED
//
// Prints the suite again with every case's results; lines that are no cases are kept. With a range of lines
// only those are run, the others keep what they have. A case that the driver refuses to compile is named on
// standard error, left without results and makes the exit code 1. Cases run in one thread, a few hundred in a
// kernel.
//
// The driver is opened at run time, as in every program that must start without one.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include "../../emulator/alu/suite.h"

namespace {

using suite::Case;

constexpr size_t kBatch = 200;

struct Driver {
  decltype(&cuInit) init;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDevicePrimaryCtxRetain) context_retain;
  decltype(&cuCtxSetCurrent) context_set;
  decltype(&cuCtxSynchronize) synchronize;
  decltype(&cuMemAlloc) mem_alloc;
  decltype(&cuMemcpyHtoD) to_device;
  decltype(&cuMemcpyDtoH) to_host;
  decltype(&cuModuleLoadDataEx) module_load;
  decltype(&cuModuleUnload) module_unload;
  decltype(&cuModuleGetFunction) module_function;
  decltype(&cuLaunchKernel) launch;
};
Driver driver;

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "record_instructions: " << why << "\n";
  std::exit(3);
}

void check(CUresult result, const char* what) {
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

void open_driver() {
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
  look_up(get, "cuMemcpyHtoD", driver.to_device);
  look_up(get, "cuMemcpyDtoH", driver.to_host);
  look_up(get, "cuModuleLoadDataEx", driver.module_load);
  look_up(get, "cuModuleUnload", driver.module_unload);
  look_up(get, "cuModuleGetFunction", driver.module_function);
  look_up(get, "cuLaunchKernel", driver.launch);
  check(driver.init(0), "cuInit");
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(driver.device_get(&device, 0), "cuDeviceGet");
  check(driver.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver.context_set(context), "cuCtxSetCurrent");
}

class Recorder {
 public:
  Recorder() {
    check(driver.mem_alloc(&inputs_, kBatch * suite::kInputs * suite::kCell), "cuMemAlloc");
    check(driver.mem_alloc(&outputs_, kBatch * suite::kOutputs * suite::kCell), "cuMemAlloc");
  }

  // Runs cases [first, last), at most kBatch. What the driver refuses is halved until the case is found.
  void record(std::vector<Case>& cases, size_t first, size_t last) {
    if (first == last) return;
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    const std::string ptx = suite::write_module(cases, first, last);
    const CUresult result = driver.module_load(&module, ptx.c_str(), 2, options, values);
    if (result == CUDA_SUCCESS) {
      run(module, cases, first, last);
      check(driver.module_unload(module), "cuModuleUnload");
    } else if (last - first > 1) {
      const size_t middle = first + (last - first) / 2;
      record(cases, first, middle);
      record(cases, middle, last);
    } else {
      std::cerr << "line " << cases[first].line << " is refused with error " << result << ": "
                << cases[first].text << "\n"
                << log << "\n";
      cases[first].results.clear();
      ++refused_;
    }
  }

  [[nodiscard]] int refused() const { return refused_; }

 private:
  void run(CUmodule module, std::vector<Case>& cases, size_t first, size_t last) {
    const size_t count = last - first;
    std::vector<suite::Value> in(count * suite::kInputs), out(count * suite::kOutputs);
    static_assert(sizeof(suite::Value) == suite::kCell, "a value is a cell");
    for (size_t i = 0; i < count; ++i) {
      const std::vector<suite::Value>& values = cases[first + i].values;
      std::copy(values.begin(), values.end(), in.begin() + static_cast<std::ptrdiff_t>(i * suite::kInputs));
    }
    CUfunction function = nullptr;
    void* arguments[] = {&inputs_, &outputs_};
    check(driver.to_device(inputs_, in.data(), in.size() * suite::kCell), "cuMemcpyHtoD");
    // Cells that are narrower than 16 bytes must be zero above.
    check(driver.to_device(outputs_, out.data(), out.size() * suite::kCell), "cuMemcpyHtoD");
    check(driver.module_function(&function, module, "cases"), "cuModuleGetFunction");
    check(driver.launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), "cuLaunchKernel");
    check(driver.synchronize(), "running the cases");
    check(driver.to_host(out.data(), outputs_, out.size() * suite::kCell), "cuMemcpyDtoH");
    for (size_t i = 0; i < count; ++i) {
      Case& each = cases[first + i];
      each.results.assign(suite::all_registers(each.destinations).size(), {});
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(i * suite::kOutputs), each.results.size(),
                  each.results.begin());
    }
  }

  CUdeviceptr inputs_ = 0, outputs_ = 0;
  int refused_ = 0;
};

// The case's line with its results.
std::string print(const Case& each) {
  if (each.results.empty()) return each.text;
  const std::vector<suite::Register> registers = suite::all_registers(each.destinations);
  std::string line = each.text + " |";
  for (size_t i = 0; i < each.results.size(); ++i) {
    line += " " + suite::print_value(each.results[i], registers[i].carry ? 1 : registers[i].bits);
  }
  return line;
}

void print_all(const char* path, const std::vector<Case>& cases) {
  std::map<int, const Case*> by_line;
  for (const Case& each : cases) by_line[each.line] = &each;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const auto found = by_line.find(++number);
    std::cout << (found == by_line.end() ? line : print(*found->second)) << "\n";
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 4) give_up("usage: record_instructions SUITE [FROM_LINE TO_LINE]");
  std::ifstream file(arguments[1]);
  if (!file) give_up(std::string("cannot open ") + arguments[1]);
  std::vector<Case> cases = suite::parse_suite(file);
  const int from = count == 4 ? std::atoi(arguments[2]) : 0;
  const int to = count == 4 ? std::atoi(arguments[3]) : cases.back().line;
  size_t first = 0, end = 0;
  while (first < cases.size() && cases[first].line < from) ++first;
  for (end = first; end < cases.size() && cases[end].line <= to;) ++end;
  open_driver();
  Recorder recorder;
  for (; first < end; first += std::min(kBatch, end - first)) {
    recorder.record(cases, first, std::min(first + kBatch, end));
  }
  print_all(arguments[1], cases);
  return recorder.refused() == 0 ? 0 : 1;
}
