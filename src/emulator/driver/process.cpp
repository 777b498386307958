// The process-wide state, and the boundary between the program and the driver.
#include "emulator/driver/process.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "support/error.h"

namespace klap::emulator::driver {
namespace {

CUresult number_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::Parse:
    case ErrorCode::Link:  // as the driver says of PTX with undefined symbols
      return CUDA_ERROR_INVALID_PTX;
    case ErrorCode::Container:
      return CUDA_ERROR_INVALID_IMAGE;
    case ErrorCode::Unsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case ErrorCode::Config:
      return CUDA_ERROR_INVALID_VALUE;
    case ErrorCode::Io:
      return CUDA_ERROR_FILE_NOT_FOUND;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace

// Both are never destroyed: programs call the driver from destructors of their own at exit.
Process& the_process() {
  static auto* const process = new Process;
  return *process;
}

std::recursive_mutex& the_mutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

bool& in_host_function() {
  static thread_local bool inside = false;
  return inside;
}

bool& PerThreadDefault::on() {
  static thread_local bool on = false;
  return on;
}

std::vector<CUcontext>& context_stack() {
  static thread_local std::vector<CUcontext> stack;
  return stack;
}

void say(const std::string& text) { std::fputs(fmt::format("klap emulator: {}\n", text).c_str(), stderr); }

void enter(Needs needs) {
  if (needs == Needs::Nothing) return;
  require(!in_host_function(), CUDA_ERROR_NOT_PERMITTED);
  require(the_process().is_initialised, CUDA_ERROR_NOT_INITIALIZED);
}

CUresult current_failure(const char* function) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    say(fmt::format("{}: {}", function, error.what()));
    return number_of(error);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "klap emulator: %s: %s\n", function, error.what());
    return CUDA_ERROR_UNKNOWN;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

void require_device(const Process& process, CUdevice device) {
  require(device >= 0 && static_cast<size_t>(device) < process.primary.size(), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace klap::emulator::driver
