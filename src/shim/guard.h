// The boundary between the program's C calls and klap_jit's C++: whatever happens behind it, the program sees
// the driver's own behaviour.
#pragma once

#include <cuda.h>
#include <cxxabi.h>

#include <exception>
#include <optional>

#include "shim/libcuda.h"

namespace klap::shim {

// True when a hook is to do more than forward: there is a libcuda, klap_jit is active, and this thread is not
// already inside a hook (libraries that klap_jit calls may come back to the driver).
bool may_act() noexcept;

// Marks the calling thread as inside a hook for the scope.
class Inside {
 public:
  Inside() noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};
bool is_inside() noexcept;

// One line for an exception that ended a hook's own work.
void report_failure(const char* entry_point, const char* what) noexcept;

// Calls the driver's own function. Defined for a member of Driver: forward<&Driver::launch_kernel>(...).
template <auto Member, class... Args>
CUresult forward(Args... args) {
  const runtime::Driver* const cuda = libcuda();
  return cuda && cuda->*Member ? (cuda->*Member)(args...) : CUDA_ERROR_NOT_INITIALIZED;
}

// Runs `work`, which returns an optional result; nothing comes back when the program's own call is to be
// made.
template <class Work>
std::optional<CUresult> attempt(const char* entry_point, const Work& work) {
  if (!may_act()) return std::nullopt;
  const Inside inside;
  try {
    return work();
  } catch (const std::exception& error) {
    report_failure(entry_point, error.what());
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being cancelled, which must not be stopped
  } catch (...) {
    report_failure(entry_point, "unknown exception");
  }
  return std::nullopt;
}

// The same for work without a result.
template <class Work>
void observe(const char* entry_point, const Work& work) {
  attempt(entry_point, [&work]() -> std::optional<CUresult> {
    work();
    return std::nullopt;
  });
}

}  // namespace klap::shim
