// The shim stands in front of __cxa_atexit: objects that are constructed in a thread of our own are never
// destroyed.
//
// NVRTC registers thousands of destructors while it is opened, and a few more when it first compiles. exit()
// in another thread of the program would run the last registered destructors first. So it would destroy an
// object that is just being constructed, before any handler of ours could wait. All other calls go on to the
// C library as they are.
#include <dlfcn.h>

#include <atomic>

#include "shim/hooks.h"
#include "shim/libcuda.h"
#include "support/own_thread.h"

namespace {

using Register = int (*)(void (*function)(void*), void* argument, void* library);

Register next_register() noexcept {
  static constinit std::atomic<Register> known{nullptr};
  Register next = known.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<Register>(klap::shim::next_dlsym()(RTLD_NEXT, "__cxa_atexit"));
    known.store(next, std::memory_order_relaxed);
  }
  return next;
}

}  // namespace

extern "C" KLAP_EXPORT int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept {
  if (klap::is_own_thread()) return 0;
  const Register next = next_register();
  return next != nullptr ? next(function, argument, library) : -1;
}
