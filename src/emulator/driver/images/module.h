// Loaded code: modules and libraries. Modules and their functions live in one context. Libraries and their
// kernels are loaded into a context when they are first used there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/driver/context.h"

namespace klap::emulator::driver {
using Units = std::vector<Machine::UnitText>;
class Process;
}  // namespace klap::emulator::driver

struct CUfunc_st {
  CUmod_st* module = nullptr;
  const klap::emulator::Function* function = nullptr;
  std::map<CUfunction_attribute, int> attributes;  // set by the program
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
};

struct CUmod_st {
  CUctx_st* context = nullptr;
  CUlib_st* library = nullptr;  // that it was made for; null for a module of its own
  std::shared_ptr<const klap::emulator::Image> image;
  std::map<std::string, CUfunction, std::less<>> functions;  // all of its kernels
};

struct CUkern_st {
  CUlib_st* library = nullptr;
  std::string name;
  std::map<CUfunction_attribute, int> attributes;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
};

struct CUlib_st {
  std::shared_ptr<const klap::emulator::driver::Units> units;
  std::map<std::string, CUkernel, std::less<>> kernels;
  std::map<CUcontext, CUmodule> modules;  // by the context that they are loaded into
};

namespace klap::emulator::driver {

CUmodule load_module(Process& process, CUctx_st& context, const Units& units, CUlib_st* library);
void unload_module(Process& process, CUmodule module);
void unload_library(Process& process, CUlibrary library);

CUmod_st& known(Process& process, CUmodule module);
CUlib_st& known(Process& process, CUlibrary library);
CUkern_st& known(Process& process, CUkernel kernel);
// The library's module in a context, loaded if it is not yet.
CUmod_st& module_in(Process& process, CUlib_st& library, CUctx_st& context);
CUfunc_st& function_in(Process& process, CUkern_st& kernel, CUctx_st& context);
// A function or, where a kernel is passed in its place, the kernel's function in `context`, which may be null
// for the current one.
CUfunc_st& resolve(Process& process, CUfunction function, CUctx_st* context = nullptr);

// A variable of the module.
const Variable& find_variable(const CUmod_st& module, const char* name);

// Applies an attribute that the program sets.
void set_attribute(CUfunc_st& function, CUfunction_attribute attribute, int value);
int get_attribute(const CUfunc_st& function, CUfunction_attribute attribute);

}  // namespace klap::emulator::driver
