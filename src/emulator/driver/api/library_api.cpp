// Libraries: code that is loaded without a context and appears in each context that uses it.
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/images/images.h"
#include "emulator/driver/images/jit_options.h"
#include "emulator/driver/images/module.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "ptx/tree.h"
#include "support/error.h"
#include "support/file.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

// The names alone are wanted here; linking is for the context.
std::vector<std::string> kernel_names(const Units& units) {
  std::vector<std::string> names;
  for (const Machine::UnitText& unit : units) {
    const klap::ptx::Module module = klap::ptx::parse(unit.ptx, unit.name);
    for (const klap::ptx::Function& function : module.functions) {
      // Kernels that a unit keeps to itself count, too: a static kernel is launched by the host that its unit
      // was built with.
      const bool is_kernel = function.kind == klap::ptx::FunctionKind::Entry && function.is_definition;
      if (is_kernel) names.push_back(function.name);
    }
  }
  return names;
}

void load(Process& process, CUlibrary* library, Units units, const JitOptions& options) {
  forbid_unsafe_call(process);
  std::vector<std::string> names;
  try {
    refuse_waits(process, units);
    names = kernel_names(units);
  } catch (const klap::Error& error) {
    options.write_error(error.what());
    throw;
  }
  *library = process.libraries.make();
  CUlib_st& made = **library;
  made.units = std::make_shared<const Units>(std::move(units));
  for (const std::string& name : names) {
    CUkernel const kernel = process.kernels.make();
    kernel->library = *library;
    kernel->name = name;
    if (!made.kernels.emplace(name, kernel).second) process.kernels.destroy(kernel);
  }
}

// In every context where the kernel is loaded.
template <typename Visit>
void for_each_function(const CUkern_st& kernel, CUdevice device, Visit visit) {
  for (const auto& [context, module] : kernel.library->modules) {
    const auto found = module->functions.find(kernel.name);
    if (context->device == device && found != module->functions.end()) visit(*found->second);
  }
}

}  // namespace

KLAP_DRIVER_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* names, void** values,
                                  unsigned count, CUlibraryOption*, void**, unsigned) {
  return call("cuLibraryLoadData", [&](Process& process) {
    require(library != nullptr && code != nullptr);
    load(process, library, read_image(code, capability(process)), JitOptions(count, names, values));
  });
}

KLAP_DRIVER_API cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* names,
                                      void** values, unsigned count, CUlibraryOption*, void**, unsigned) {
  return call("cuLibraryLoadFromFile", [&](Process& process) {
    require(library != nullptr && file != nullptr);
    load(process, library, read_file_image(klap::read_file(file), file, capability(process)),
         JitOptions(count, names, values));
  });
}

KLAP_DRIVER_API cuLibraryUnload(CUlibrary library) {
  return call("cuLibraryUnload", [&](Process& process) {
    known(process, library);
    forbid_unsafe_call(process);
    unload_library(process, library);
  });
}

KLAP_DRIVER_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return call("cuLibraryGetKernel", [&](Process& process) {
    require(kernel != nullptr && name != nullptr);
    const auto& kernels = known(process, library).kernels;
    const auto found = kernels.find(name);
    require(found != kernels.end(), CUDA_ERROR_NOT_FOUND);
    *kernel = found->second;
  });
}

KLAP_DRIVER_API cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return call("cuLibraryGetKernelCount", [&](Process& process) {
    require(count != nullptr);
    *count = static_cast<unsigned>(known(process, library).kernels.size());
  });
}

KLAP_DRIVER_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  return call("cuLibraryEnumerateKernels", [&](Process& process) {
    require(kernels != nullptr || room == 0);
    unsigned n = 0;
    for (const auto& [name, kernel] : known(process, library).kernels) {
      if (n < room) kernels[n++] = kernel;
    }
  });
}

KLAP_DRIVER_API cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return call("cuLibraryGetModule", [&](Process& process) {
    require(module != nullptr);
    *module = &module_in(process, known(process, library), current(process));
  });
}

KLAP_DRIVER_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return call("cuLibraryGetGlobal", [&](Process& process) {
    const Variable& variable =
        find_variable(module_in(process, known(process, library), current(process)), name);
    require(!variable.is_managed, CUDA_ERROR_NOT_FOUND);
    if (address != nullptr) *address = variable.address;
    if (bytes != nullptr) *bytes = variable.bytes;
  });
}

KLAP_DRIVER_API cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                    const char* name) {
  return call("cuLibraryGetManaged", [&](Process& process) {
    const Variable& variable =
        find_variable(module_in(process, known(process, library), current(process)), name);
    require(variable.is_managed, CUDA_ERROR_NOT_FOUND);
    if (address != nullptr) *address = variable.address;
    if (bytes != nullptr) *bytes = variable.bytes;
  });
}

KLAP_DRIVER_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return call("cuKernelGetFunction", [&](Process& process) {
    require(function != nullptr);
    *function = &function_in(process, known(process, kernel), current(process));
  });
}

KLAP_DRIVER_API cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return call("cuKernelGetLibrary", [&](Process& process) {
    require(library != nullptr);
    *library = known(process, kernel).library;
  });
}

KLAP_DRIVER_API cuKernelGetName(const char** name, CUkernel kernel) {
  return call("cuKernelGetName", [&](Process& process) {
    require(name != nullptr);
    *name = known(process, kernel).name.c_str();
  });
}

KLAP_DRIVER_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                     CUdevice device) {
  return call("cuKernelGetAttribute", [&](Process& process) {
    require(value != nullptr);
    require_device(process, device);
    const CUkern_st& asked = known(process, kernel);
    const auto set = asked.attributes.find(attribute);
    *value = set != asked.attributes.end()
                 ? set->second
                 : get_attribute(function_in(process, *kernel, current(process)), attribute);
  });
}

KLAP_DRIVER_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                     CUdevice device) {
  return call("cuKernelSetAttribute", [&](Process& process) {
    require_device(process, device);
    CUkern_st& changed = known(process, kernel);
    for_each_function(changed, device,
                      [&](CUfunc_st& function) { set_attribute(function, attribute, value); });
    changed.attributes[attribute] = value;
  });
}

KLAP_DRIVER_API cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  return call("cuKernelSetCacheConfig", [&](Process& process) {
    require_device(process, device);
    CUkern_st& changed = known(process, kernel);
    changed.cache_config = config;
    for_each_function(changed, device, [&](CUfunc_st& function) { function.cache_config = config; });
  });
}

KLAP_DRIVER_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return call("cuKernelGetParamInfo", [&](Process& process) {
    const CUfunc_st& function = function_in(process, known(process, kernel), current(process));
    require(offset != nullptr && index < function.function->parameter_offsets.size());
    *offset = function.function->parameter_offsets[index];
    if (bytes != nullptr) *bytes = function.function->parameter_sizes[index];
  });
}
