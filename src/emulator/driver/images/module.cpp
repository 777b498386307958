#include "emulator/driver/images/module.h"

#include <algorithm>
#include <utility>

#include "emulator/driver/process.h"

namespace klap::emulator::driver {
namespace {

constexpr int kThreads = 1024, kRegisters = 65536;

// Registers are an estimate and limit nothing: a compiler would have spilt (residency.cpp).
int most_threads(const Function& function) {
  int64_t threads = kThreads;
  const auto bound = [&](const std::array<uint32_t, 3>& limit) {
    if (limit[0] == 0) return;
    int64_t product = 1;
    for (const uint32_t d : limit) product *= d == 0 ? 1 : d;
    threads = std::min(threads, product);
  };
  bound(function.limits.maximum);
  bound(function.limits.required);
  return static_cast<int>(threads);
}

// The registers of a thread, so few that a block of most_threads() can have them, as a program may count on.
int registers(const Function& function) {
  const int most = kRegisters / std::max(most_threads(function), 1);
  return std::min(static_cast<int>(function.register_estimate), most);
}

int constant_bytes(const Image& image) {
  uint64_t bytes = 0;
  for (const Variable& variable : image.variables) bytes += variable.is_const ? variable.bytes : 0;
  return static_cast<int>(bytes);
}

// Attributes set on the library's kernel hold in each context.
void inherit(CUfunc_st& function, const CUkern_st& kernel) {
  function.cache_config = kernel.cache_config;
  for (const auto& [attribute, value] : kernel.attributes) set_attribute(function, attribute, value);
}

}  // namespace

CUmodule load_module(Process& process, CUctx_st& context, const Units& units, CUlib_st* library) {
  context.require_alive();
  auto image = context.machine->load(units);
  CUmodule const module = process.modules.make();
  module->context = &context;
  module->library = library;
  module->image = std::move(image);
  for (const auto& [name, index] : module->image->kernels) {
    CUfunction const function = process.functions.make();
    function->module = module;
    function->function = module->image->functions[index].get();
    module->functions.emplace(name, function);
    if (library == nullptr) continue;
    const auto kernel = library->kernels.find(name);
    if (kernel != library->kernels.end()) inherit(*function, *kernel->second);
  }
  return module;
}

void unload_module(Process& process, CUmodule module) {
  module->context->machine->unload(module->image);
  for (const auto& [name, function] : module->functions) process.functions.destroy(function);
  process.modules.destroy(module);
}

void unload_library(Process& process, CUlibrary library) {
  for (const auto& [context, module] : library->modules) unload_module(process, module);
  for (const auto& [name, kernel] : library->kernels) process.kernels.destroy(kernel);
  process.libraries.destroy(library);
}

CUmod_st& known(Process& process, CUmodule module) {
  require(process.modules.knows(module), CUDA_ERROR_INVALID_HANDLE);
  return *module;
}

CUlib_st& known(Process& process, CUlibrary library) {
  require(process.libraries.knows(library), CUDA_ERROR_INVALID_HANDLE);
  return *library;
}

CUkern_st& known(Process& process, CUkernel kernel) {
  require(process.kernels.knows(kernel), CUDA_ERROR_INVALID_HANDLE);
  return *kernel;
}

CUmod_st& module_in(Process& process, CUlib_st& library, CUctx_st& context) {
  CUmodule& module = library.modules[&context];
  if (module == nullptr) {
    try {
      module = load_module(process, context, *library.units, &library);
    } catch (...) {
      library.modules.erase(&context);
      throw;
    }
  }
  return *module;
}

CUfunc_st& function_in(Process& process, CUkern_st& kernel, CUctx_st& context) {
  const CUmod_st& module = module_in(process, *kernel.library, context);
  const auto found = module.functions.find(kernel.name);
  require(found != module.functions.end(), CUDA_ERROR_NOT_FOUND);
  return *found->second;
}

CUfunc_st& resolve(Process& process, CUfunction function, CUctx_st* context) {
  if (process.functions.knows(function)) return *function;
  auto* const kernel = reinterpret_cast<CUkernel>(function);
  require(process.kernels.knows(kernel), CUDA_ERROR_INVALID_HANDLE);
  return function_in(process, *kernel, context != nullptr ? *context : current(process));
}

const Variable& find_variable(const CUmod_st& module, const char* name) {
  require(name != nullptr);
  const auto& variables = module.image->variables;
  const auto found = std::ranges::find_if(
      variables, [&](const Variable& variable) { return variable.visible && variable.name == name; });
  require(found != variables.end(), CUDA_ERROR_NOT_FOUND);
  return *found;
}

void set_attribute(CUfunc_st& function, CUfunction_attribute attribute, int value) {
  Machine& machine = *function.module->context->machine;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const uint64_t most = the_process().settings.machine.executor.device.shared_per_block_optin;
      require(value >= 0 && static_cast<uint64_t>(value) + function.function->shared_bytes <= most);
      machine.set_dynamic_shared_limit(*function.function, static_cast<uint32_t>(value));
      break;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      require(value <= 1, CUDA_ERROR_NOT_SUPPORTED);
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      break;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  function.attributes[attribute] = value;
}

int get_attribute(const CUfunc_st& function, CUfunction_attribute attribute) {
  if (const auto set = function.attributes.find(attribute); set != function.attributes.end()) {
    return set->second;
  }
  const Function& code = *function.function;
  const Machine& machine = *function.module->context->machine;
  const auto capability = static_cast<int>(the_process().settings.machine.executor.device.compute_capability);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return most_threads(code);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(code.shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return constant_bytes(*function.module->image);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(code.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return registers(code);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return capability;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(machine.dynamic_shared_limit(code));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return -1;
    default:
      require(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
      return 0;
  }
}

}  // namespace klap::emulator::driver
