// Every function of the driver API exists, so that programs link. A function that the emulator has no other
// definition of says so and fails.
//
// The definitions here are weak and give way to the real ones. They are all of one type, without parameters.
// The calling conventions of this library's platforms allow that: the caller clears the arguments away. So
// cuda.h must not be included here.
#include "emulator/driver/functions.h"

#include <cstdio>

namespace {

constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

int not_supported(const char* function) {
  std::fprintf(stderr, "klap emulator: %s is not supported\n", function);
  return kNotSupported;
}

}  // namespace

#define X(symbol, name, since, per_thread)                              \
  extern "C" __attribute__((weak, visibility("default"))) int symbol(); \
  int symbol() { return not_supported(#symbol); }
#define ALIAS(symbol, name, since, per_thread)
#include "emulator/driver/functions.def"
#undef ALIAS
#undef X

namespace klap::emulator::driver {

const ApiFunction api_functions[] = {
#define X(symbol, name, since, per_thread) \
  {#symbol, #name, since, per_thread, reinterpret_cast<void*>(&(symbol))},
#define ALIAS X
#include "emulator/driver/functions.def"
#undef ALIAS
#undef X
};
const int api_function_count = sizeof api_functions / sizeof *api_functions;

}  // namespace klap::emulator::driver
