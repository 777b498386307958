// Every file of the emulated driver begins with this header. It has the driver's declarations, and the form
// in which a function of its API is written.
//
// A function states its body as `return call("cuName", [&](Process& process) { ... })`. The wrapper takes the
// lock, turns exceptions into an error number and lets nothing cross the C interface. The body may therefore
// assume that it is alone and leave by fail().
#pragma once

// Declares every version of every function under the name that libcuda exports.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include <mutex>
#include <string>

#define KLAP_DRIVER_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

namespace klap::emulator::driver {

class Process;

struct Failure {
  CUresult code;
};
[[noreturn]] inline void fail(CUresult code) { throw Failure{code}; }
inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(code);
}
inline void check(CUresult code) {
  if (code != CUDA_SUCCESS) fail(code);
}

// One line on standard error, "klap emulator: TEXT".
void say(const std::string& text);

// True while a function of the program is called from a stream: such functions must not call the driver.
bool& in_host_function();

// While it lives, a null stream is the calling thread's default stream, as in the functions whose names end
// in _ptds and _ptsz.
class PerThreadDefault {
 public:
  PerThreadDefault() : before_(on()) { on() = true; }
  ~PerThreadDefault() { on() = before_; }
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;
  static bool& on();

 private:
  bool before_;
};

enum class Needs { Nothing, Init };

// The exception in flight as an error number. Its text, if it has one, is printed.
CUresult current_failure(const char* function) noexcept;
// The process, locked by the caller afterwards.
Process& the_process();
std::recursive_mutex& the_mutex();
// Fails if the function must not be called now.
void enter(Needs needs);

template <typename Body>
CUresult call(const char* function, Needs needs, Body body) noexcept {
  try {
    const std::lock_guard lock(the_mutex());
    enter(needs);
    body(the_process());
    return CUDA_SUCCESS;
  } catch (const Failure& failure) {
    return failure.code;
  } catch (...) {
    return current_failure(function);
  }
}

template <typename Body>
CUresult call(const char* function, Body body) noexcept {
  return call(function, Needs::Init, std::move(body));
}

}  // namespace klap::emulator::driver
