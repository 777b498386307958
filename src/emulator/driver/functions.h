// All functions of the driver API by name.
#pragma once

namespace klap::emulator::driver {

struct ApiFunction {
  const char* symbol;  // as exported
  const char* name;    // as cuGetProcAddress is asked for it
  int since;           // CUDA version
  bool per_thread;     // a null stream is the calling thread's
  void* address;
};

extern const ApiFunction api_functions[];
extern const int api_function_count;

}  // namespace klap::emulator::driver
