#include "runtime/links/driver_linker.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <mutex>

#include "jit/compile/toolchain.h"
#include "runtime/driver.h"
#include "support/error.h"
#include "support/log.h"

namespace klap::runtime {
namespace {

// The options of one link as the driver wants them, with room for its log.
class Options {
 public:
  explicit Options(const std::vector<std::string>& options) {
    add(CU_JIT_ERROR_LOG_BUFFER, log_.data());
    add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(log_.size()));
    for (const std::string& option : options) translate(option);
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(names_.size()); }
  [[nodiscard]] CUjit_option* names() { return names_.data(); }
  [[nodiscard]] void** values() { return values_.data(); }
  [[nodiscard]] const char* log() const { return log_.data(); }

 private:
  static void* number(uintptr_t value) {
    return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr): the driver's own convention
  }
  void add(CUjit_option name, void* value) {
    names_.push_back(name);
    values_.push_back(value);
  }

  void translate(const std::string& option) {
    static constexpr std::string_view kArch = "-arch=sm_", kAssembler = "-Xptxas=-O";
    unsigned value = 0;
    if (option == "-lineinfo") {
      add(CU_JIT_GENERATE_LINE_INFO, number(1));
    } else if (number_after(option, kArch, value)) {
      add(CU_JIT_TARGET, number(value));
    } else if (number_after(option, kAssembler, value)) {
      add(CU_JIT_OPTIMIZATION_LEVEL, number(value));
    } else if (option == "-Xptxas=-dlcm=ca" || option == "-Xptxas=-dlcm=cg") {
      add(CU_JIT_CACHE_MODE,
          number(option.ends_with("cg") ? CU_JIT_CACHE_OPTION_CG : CU_JIT_CACHE_OPTION_CA));
    } else {
      throw Error(ErrorCode::Unsupported, fmt::format("the driver's linker has no option {}", option));
    }
  }

  static bool number_after(std::string_view option, std::string_view prefix, unsigned& value) {
    if (!option.starts_with(prefix)) return false;
    const char* const end = option.data() + option.size();
    const auto [stop, error] = std::from_chars(option.data() + prefix.size(), end, value);
    return error == std::errc() && stop == end;
  }

  std::array<char, 16384> log_{};
  std::vector<CUjit_option> names_;
  std::vector<void*> values_;
};

// One session; destroyed whatever happens.
class Session {
 public:
  explicit Session(const std::vector<std::string>& options) : options_(options) {
    const CUresult result =
        driver()->link_create(options_.count(), options_.names(), options_.values(), &state_);
    if (result != CUDA_SUCCESS) fail("cannot begin to link", result);
  }
  ~Session() {
    if (state_ != nullptr) driver()->link_destroy(state_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void add(const jit::LinkInput& input) {
    CUresult result = CUDA_SUCCESS;
    if (input.kind == jit::LinkInputKind::Library) {
      result = driver()->link_add_file(state_, CU_JIT_INPUT_LIBRARY, std::string(input.bytes).c_str(), 0,
                                       nullptr, nullptr);
    } else {
      const bool is_ptx = input.kind == jit::LinkInputKind::Ptx;
      std::string bytes(input.bytes);  // PTX with the NUL that ends it
      result =
          driver()->link_add_data(state_, is_ptx ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN, bytes.data(),
                                  bytes.size() + (is_ptx ? 1 : 0), input.name.c_str(), 0, nullptr, nullptr);
    }
    if (result != CUDA_SUCCESS) fail("cannot add " + input.name, result);
  }

  std::string finish() {
    void* image = nullptr;
    size_t bytes = 0;
    const CUresult result = driver()->link_complete(state_, &image, &bytes);
    if (result != CUDA_SUCCESS) fail("cannot link", result);
    return {static_cast<const char*>(image), bytes};
  }

 private:
  [[noreturn]] void fail(const std::string& what, CUresult result) const {
    throw Error(ErrorCode::Link,
                fmt::format("{} (the driver's linker: {}): {}", what, error_name(result), options_.log()));
  }

  Options options_;
  CUlinkState state_ = nullptr;
};

}  // namespace

std::string DriverLinker::link(const std::vector<jit::LinkInput>& inputs,
                               const std::vector<std::string>& options) const {
  Session session(options);
  for (const jit::LinkInput& input : inputs) session.add(input);
  return session.finish();
}

std::string AvailableLinker::link(const std::vector<jit::LinkInput>& inputs,
                                  const std::vector<std::string>& options) const {
  const std::string problem = jit::nvjitlink_problem();
  if (problem.empty()) return jit::link_to_cubin(inputs, options);
  static std::once_flag once;
  std::call_once(once, [&] { log().info("the driver links: {}", problem); });
  try {
    return DriverLinker().link(inputs, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Link) throw;
    throw Error(ErrorCode::Link, fmt::format("{}; {}", error.reason(), problem));
  }
}

const jit::Linker* chosen_linker(settings::LinkerChoice choice) {
  static const DriverLinker driver_linker;
  static const AvailableLinker available;
  switch (choice) {
    case settings::LinkerChoice::NvJitLink:
      return nullptr;
    case settings::LinkerChoice::Driver:
      return &driver_linker;
    case settings::LinkerChoice::Auto:
      break;
  }
  return takes_machine_code() ? static_cast<const jit::Linker*>(&available) : &driver_linker;
}

bool takes_machine_code() { return driver()->emulates_ptx == nullptr; }

}  // namespace klap::runtime
