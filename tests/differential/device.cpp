#include "device.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "emulator/driver/control.h"
#include "process.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::differential {

namespace {

// A driver call that failed; caught in Device::run.
struct DriverFailure {
  std::string text;
};

// The schedules that the emulator's seeds go through in turn.
constexpr std::array<const char*, 6> kSchedules = {"random",     "round-robin", "one-block",
                                                   "starve-one", "child-first", "child-last"};

}  // namespace

const char* to_string(Result::Kind kind) {
  switch (kind) {
    case Result::Kind::Equal:
      return "equal";
    case Result::Kind::Different:
      return "different";
    case Result::Kind::Failed:
      return "failed";
  }
  return "unknown";
}

// The driver's functions, found by name as any program finds them.
struct Device::Driver {
  void* library = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuInit) init = nullptr;
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) context_retain = nullptr;
  decltype(&cuDevicePrimaryCtxReset) context_reset = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) context_release = nullptr;
  decltype(&cuCtxSetCurrent) context_set = nullptr;
  decltype(&cuCtxSynchronize) synchronise = nullptr;
  decltype(&cuModuleLoadData) module_load = nullptr;
  decltype(&cuModuleUnload) module_unload = nullptr;
  decltype(&cuModuleGetFunction) module_function = nullptr;
  decltype(&cuModuleGetGlobal) module_global = nullptr;
  decltype(&cuLinkCreate) link_create = nullptr;
  decltype(&cuLinkAddData) link_data = nullptr;
  decltype(&cuLinkAddFile) link_file = nullptr;
  decltype(&cuLinkComplete) link_complete = nullptr;
  decltype(&cuLinkDestroy) link_destroy = nullptr;
  decltype(&cuMemAlloc) allocate = nullptr;
  decltype(&cuMemFree) free = nullptr;
  decltype(&cuMemcpyHtoD) to_device = nullptr;
  decltype(&cuMemcpyDtoH) to_host = nullptr;
  decltype(&cuMemcpyDtoDAsync) copy = nullptr;
  decltype(&cuMemsetD8Async) fill = nullptr;
  decltype(&cuStreamCreate) stream_create = nullptr;
  decltype(&cuStreamDestroy) stream_destroy = nullptr;
  decltype(&cuStreamSynchronize) stream_synchronise = nullptr;
  decltype(&cuLaunchKernel) launch = nullptr;
  int (*emulator_reset)(const char* changes) = nullptr;  // of the emulated driver only
  decltype(&klap_emulator_counts) emulator_counts = nullptr;
  CUdevice device = 0;

  template <class Function>
  void look_up(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw DriverFailure{std::string("the driver has no ") + name};
  }
  void open();
  void start();
  void check(CUresult result, const std::string& what) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    if (error_name(result, &name) != CUDA_SUCCESS) name = "unknown error";
    throw DriverFailure{fmt::format("{}: {} ({})", what, name, static_cast<int>(result))};
  }
  CUmodule load(const std::string& ptx) const;
  CUmodule link(const std::string& ptx) const;
  void hold_context();
  void renew_context();
};

void Device::Driver::open() {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) throw DriverFailure{"no CUDA driver: " + std::string(dlerror())};
  look_up(error_name, "cuGetErrorName");
  look_up(init, "cuInit");
  look_up(device_get, "cuDeviceGet");
  look_up(context_retain, "cuDevicePrimaryCtxRetain");
  look_up(context_reset, "cuDevicePrimaryCtxReset_v2");
  look_up(context_release, "cuDevicePrimaryCtxRelease_v2");
  look_up(context_set, "cuCtxSetCurrent");
  look_up(synchronise, "cuCtxSynchronize");
  look_up(module_load, "cuModuleLoadData");
  look_up(module_unload, "cuModuleUnload");
  look_up(module_function, "cuModuleGetFunction");
  look_up(module_global, "cuModuleGetGlobal_v2");
  look_up(link_create, "cuLinkCreate_v2");
  look_up(link_data, "cuLinkAddData_v2");
  look_up(link_file, "cuLinkAddFile_v2");
  look_up(link_complete, "cuLinkComplete");
  look_up(link_destroy, "cuLinkDestroy");
  look_up(allocate, "cuMemAlloc_v2");
  look_up(free, "cuMemFree_v2");
  look_up(to_device, "cuMemcpyHtoD_v2");
  look_up(to_host, "cuMemcpyDtoH_v2");
  look_up(copy, "cuMemcpyDtoDAsync_v2");
  look_up(fill, "cuMemsetD8Async");
  look_up(stream_create, "cuStreamCreate");
  look_up(stream_destroy, "cuStreamDestroy_v2");
  look_up(stream_synchronise, "cuStreamSynchronize");
  look_up(launch, "cuLaunchKernel");
  emulator_reset = reinterpret_cast<decltype(emulator_reset)>(dlsym(library, "klap_emulator_reset"));
  emulator_counts = reinterpret_cast<decltype(emulator_counts)>(dlsym(library, "klap_emulator_counts"));
}

void Device::Driver::start() {
  check(init(0), "cuInit");
  check(device_get(&device, 0), "cuDeviceGet");
}

// A GPU's context takes longer to make than a case to run, so all cases of a process share one. The emulated
// device starts anew for each, context and all.
void Device::Driver::hold_context() {
  CUcontext context = nullptr;
  if (emulator_reset == nullptr) check(context_retain(&context, device), "cuDevicePrimaryCtxRetain");
}

// After a failure: what it left behind must not fail the cases that follow.
void Device::Driver::renew_context() {
  if (emulator_reset != nullptr) return;
  (void)context_release(device);
  (void)context_reset(device);
  hold_context();
}

// PTX that calls the device runtime: klap_jit and the emulator link it themselves, a bare driver refuses it.
CUmodule Device::Driver::load(const std::string& ptx) const {
  CUmodule module = nullptr;
  const CUresult result = module_load(&module, ptx.c_str());
  if (result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND) return link(ptx);
  check(result, "cuModuleLoadData");
  return module;
}

// The toolkit's device runtime: the build's own, or where a machine that programs are carried to has it.
const char* device_runtime_archive() {
  const bool is_here = std::ifstream(KLAP_CUDADEVRT).good();
  return is_here ? KLAP_CUDADEVRT : "/usr/local/cuda/lib64/libcudadevrt.a";
}

CUmodule Device::Driver::link(const std::string& ptx) const {
  CUlinkState state = nullptr;
  CUmodule module = nullptr;
  void* cubin = nullptr;
  size_t bytes = 0;
  std::string log(4096, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  check(link_create(2, options, values, &state), "cuLinkCreate");
  const auto step = [&](CUresult result, const char* what) {
    if (result == CUDA_SUCCESS) return;
    (void)link_destroy(state);
    check(result, fmt::format("{}: {}", what, log.c_str()));
  };
  step(link_data(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1, "case.ptx", 0,
                 nullptr, nullptr),
       "cuLinkAddData");
  step(link_file(state, CU_JIT_INPUT_LIBRARY, device_runtime_archive(), 0, nullptr, nullptr),
       "cuLinkAddFile");
  step(link_complete(state, &cubin, &bytes), "cuLinkComplete");
  step(module_load(&module, cubin), "cuModuleLoadData of the linked module");
  check(link_destroy(state), "cuLinkDestroy");
  return module;
}

namespace {

std::string describe_differences(const Buffer& buffer, const Bytes& found) {
  constexpr int kShown = 3;
  std::string text;
  int differences = 0;
  for (size_t at = 0; at + buffer.element <= found.size(); at += buffer.element) {
    uint64_t is = 0, expected = 0;
    std::memcpy(&is, found.data() + at, buffer.element);
    std::memcpy(&expected, buffer.expected.data() + at, buffer.element);
    if (is == expected || ++differences > kShown) continue;
    text += fmt::format("{}[{}] is {} instead of {}; ", buffer.name, at / buffer.element, is, expected);
  }
  if (differences > kShown) text += fmt::format("{} differences in {}; ", differences, buffer.name);
  return text;
}

}  // namespace

// One case while it runs: what it holds is given back whatever happens.
template <class Driver>
class Running {
 public:
  Running(const Driver& driver, const Case& c) : driver_(driver), case_(c) {
    driver_.check(driver_.context_retain(&context_, driver_.device), "cuDevicePrimaryCtxRetain");
    driver_.check(driver_.context_set(context_), "cuCtxSetCurrent");
    module_ = driver_.load(c.ptx.empty() ? read_file(own_folder() / "differential" / c.file) : c.ptx);
    for (const Buffer& b : c.buffers) make(b);
  }
  ~Running() {
    // After a failure all of these may fail as well, and there is nothing to be done about it.
    for (const auto& [number, stream] : streams_) (void)driver_.stream_destroy(stream);
    for (const CUdeviceptr address : allocated_) (void)driver_.free(address);
    if (module_ != nullptr) (void)driver_.module_unload(module_);
    if (context_ != nullptr) (void)driver_.context_release(driver_.device);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void run() {
    for (size_t i = 0; i < case_.steps.size(); ++i) {
      run_step(case_.steps[i], fmt::format("step {}", i));
    }
    driver_.check(driver_.synchronise(), "cuCtxSynchronize at the end");
  }

  std::string differences() {
    std::string text;
    for (size_t i = 0; i < case_.buffers.size(); ++i) {
      const Buffer& b = case_.buffers[i];
      if (b.expected.empty()) continue;
      Bytes found(b.expected.size());
      driver_.check(driver_.to_host(found.data(), addresses_[i], found.size()), "reading " + b.name);
      if (found != b.expected) text += describe_differences(b, found);
    }
    return text;
  }

 private:
  void make(const Buffer& b) {
    CUdeviceptr address = 0;
    if (!b.variable.empty()) {
      driver_.check(driver_.module_global(&address, nullptr, module_, b.variable.c_str()),
                    "cuModuleGetGlobal of " + b.variable);
    } else {
      driver_.check(driver_.allocate(&address, std::max<size_t>(b.initial.size(), 1)),
                    "allocating " + b.name);
      allocated_.push_back(address);
    }
    addresses_.push_back(address);
    if (!b.initial.empty()) write(address, b.initial, "filling " + b.name);
  }

  // The driver's call may return before the bytes are there, and a case's streams do not wait for the NULL
  // stream.
  void write(CUdeviceptr address, const Bytes& bytes, const std::string& what) {
    driver_.check(driver_.to_device(address, bytes.data(), bytes.size()), what);
    driver_.check(driver_.stream_synchronise(nullptr), what);
  }

  CUstream stream(uint32_t number) {
    if (number == 0) return nullptr;
    const auto [at, is_new] = streams_.try_emplace(number, nullptr);
    if (is_new) {
      driver_.check(driver_.stream_create(&at->second, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    return at->second;
  }

  void run_step(const Step& s, const std::string& what) {
    const Bytes* bytes = s.buffer < case_.buffers.size() ? &case_.buffers[s.buffer].initial : nullptr;
    switch (s.kind) {
      case Step::Kind::Launch:
        return launch(s, what);
      case Step::Kind::Fill:
        return driver_.check(driver_.fill(addresses_[s.buffer], s.value, bytes->size(), stream(s.stream)),
                             what + ": cuMemsetD8Async");
      case Step::Kind::Copy:
        return driver_.check(
            driver_.copy(addresses_[s.buffer], addresses_[s.from], bytes->size(), stream(s.stream)),
            what + ": cuMemcpyDtoDAsync");
      case Step::Kind::Write:
        return write(addresses_[s.buffer], s.bytes, what + ": cuMemcpyHtoD");
      case Step::Kind::Synchronise:
        return driver_.check(
            s.stream_only ? driver_.stream_synchronise(stream(s.stream)) : driver_.synchronise(),
            what + ": synchronising");
    }
  }

  void launch(const Step& s, const std::string& what) {
    const Launch& l = s.launch;
    CUfunction function = nullptr;
    driver_.check(driver_.module_function(&function, module_, l.kernel.c_str()),
                  "cuModuleGetFunction of " + l.kernel);
    std::vector<Bytes> values;
    for (const Argument& a : l.arguments) {
      values.push_back(a.kind == Argument::Kind::Value
                           ? a.bytes
                           : bytes_of(std::vector<uint64_t>{addresses_[a.buffer] + a.offset}));
    }
    std::vector<void*> pointers;
    for (Bytes& value : values) pointers.push_back(value.data());
    const CUresult result =
        driver_.launch(function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                       l.shared, stream(s.stream), pointers.empty() ? nullptr : pointers.data(), nullptr);
    if (result == static_cast<CUresult>(s.launch_error)) return;
    if (s.launch_error == 0) driver_.check(result, fmt::format("{}: launching {}", what, l.kernel));
    throw DriverFailure{fmt::format("{}: launching {} gave {} instead of {}", what, l.kernel,
                                    static_cast<int>(result), s.launch_error)};
  }

  const Driver& driver_;
  const Case& case_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::vector<CUdeviceptr> addresses_, allocated_;
  std::map<uint32_t, CUstream> streams_;
};

Device::Device() : driver_(std::make_unique<Driver>()) {
  try {
    driver_->open();
    driver_->start();
    driver_->hold_context();
  } catch (const DriverFailure& failure) {
    missing_ = failure.text;
  }
}

Device::~Device() = default;

Device::Counts Device::counts() const {
  klap_emulator_counters counters{};
  if (is_emulated()) driver_->emulator_counts(&counters);
  return {counters.heap_allocations, counters.heap_kept, counters.device_launches, counters.over_limit};
}

bool Device::is_emulated() const { return driver_->emulator_reset != nullptr; }

void Device::reset(uint64_t seed) {
  if (!is_emulated()) return;
  // What was set by hand stays. Small devices show more: few blocks at a time, down to one.
  const auto change = [](const char* name, const std::string& value) {
    const bool is_set = std::getenv((std::string("KLAP_EMULATOR_") + name).c_str()) != nullptr;
    return is_set ? std::string() : fmt::format(" {}={}", name, value);
  };
  const std::string changes = fmt::format("SEED={}", seed) +
                              change("SCHEDULE", kSchedules.at(seed % kSchedules.size())) +
                              change("MULTIPROCESSORS", std::to_string(1 + seed % 4)) +
                              change("RESIDENT_BLOCKS", std::to_string(1 + seed / 2 % 3));
  if (driver_->emulator_reset(changes.c_str()) != 0) {
    throw Error(ErrorCode::Driver, "the emulator does not take " + changes);
  }
}

Result Device::run(const Case& c) {
  try {
    Running<Driver> running(*driver_, c);
    running.run();
    const std::string differences = running.differences();
    if (differences.empty()) return {};
    return {Result::Kind::Different, differences};
  } catch (const DriverFailure& failure) {
    try {
      driver_->renew_context();
    } catch (const DriverFailure& again) {
      return {Result::Kind::Failed, failure.text + "; then " + again.text};
    }
    return {Result::Kind::Failed, failure.text};
  }
}

}  // namespace klap::differential
