// Modules: loading code into the current context.
#include <cstring>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/images/images.h"
#include "emulator/driver/images/jit_options.h"
#include "emulator/driver/images/module.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "support/error.h"
#include "support/file.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

void load(Process& process, CUmodule* module, const Units& units, const JitOptions& options) {
  CUctx_st& context = working(process);
  forbid_unsafe_call(process);
  try {
    refuse_waits(process, units);
    *module = load_module(process, context, units, nullptr);
  } catch (const klap::Error& error) {
    options.write_error(error.what());
    throw;
  }
}

}  // namespace

KLAP_DRIVER_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* names,
                                   void** values) {
  return call("cuModuleLoadData", [&](Process& process) {
    require(module != nullptr && image != nullptr);
    load(process, module, read_image(image, capability(process)), JitOptions(count, names, values));
  });
}

KLAP_DRIVER_API cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

KLAP_DRIVER_API cuModuleLoadFatBinary(CUmodule* module, const void* fatbin) {
  return cuModuleLoadDataEx(module, fatbin, 0, nullptr, nullptr);
}

KLAP_DRIVER_API cuModuleLoad(CUmodule* module, const char* file) {
  return call("cuModuleLoad", [&](Process& process) {
    require(module != nullptr && file != nullptr);
    working(process);
    load(process, module, read_file_image(klap::read_file(file), file, capability(process)), {});
  });
}

KLAP_DRIVER_API cuModuleUnload(CUmodule module) {
  return call("cuModuleUnload", [&](Process& process) {
    require(known(process, module).library == nullptr, CUDA_ERROR_NOT_PERMITTED);
    forbid_unsafe_call(process);
    unload_module(process, module);
  });
}

// All code is decoded when it is loaded.
KLAP_DRIVER_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return call("cuModuleGetLoadingMode", [&](Process&) {
    require(mode != nullptr);
    *mode = CU_MODULE_EAGER_LOADING;
  });
}

KLAP_DRIVER_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call("cuModuleGetFunction", [&](Process& process) {
    require(function != nullptr && name != nullptr);
    const auto& functions = known(process, module).functions;
    const auto found = functions.find(name);
    require(found != functions.end(), CUDA_ERROR_NOT_FOUND);
    *function = found->second;
  });
}

KLAP_DRIVER_API cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return call("cuModuleGetFunctionCount", [&](Process& process) {
    require(count != nullptr);
    *count = static_cast<unsigned>(known(process, module).functions.size());
  });
}

KLAP_DRIVER_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule module) {
  return call("cuModuleEnumerateFunctions", [&](Process& process) {
    require(functions != nullptr || room == 0);
    unsigned n = 0;
    for (const auto& [name, function] : known(process, module).functions) {
      if (n < room) functions[n++] = function;
    }
  });
}

KLAP_DRIVER_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return call("cuModuleGetGlobal", [&](Process& process) {
    const Variable& variable = find_variable(known(process, module), name);
    if (address != nullptr) *address = variable.address;
    if (bytes != nullptr) *bytes = variable.bytes;
  });
}
