#include "shim/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/load/link_calls.h"
#include "runtime/process.h"
#include "shim/callers.h"
#include "shim/hooks.h"
#include "shim/libcuda.h"
#include "support/boundary.h"

namespace klap::shim {
namespace {

// One of the NVRTCs that the program has opened.
struct Compiler {
  std::atomic<const void*> library{nullptr};  // where it is mapped
  std::atomic<decltype(&nvrtcGetCUBIN)> get_cubin{nullptr};
  std::atomic<decltype(&nvrtcGetPTXSize)> get_ptx_size{nullptr};
  std::atomic<decltype(&nvrtcGetPTX)> get_ptx{nullptr};
};
std::array<Compiler, 4> compilers;

// NVRTC keeps the PTX of a program that it compiled to machine code. Without its NUL.
std::string ptx_of(decltype(&nvrtcGetPTXSize) get_size, decltype(&nvrtcGetPTX) get, nvrtcProgram program) {
  size_t size = 0;
  if (get_size == nullptr || get == nullptr || get_size(program, &size) != NVRTC_SUCCESS) return "";
  std::string ptx(size, '\0');
  if (get(program, ptx.data()) != NVRTC_SUCCESS) return "";
  ptx.resize(strnlen(ptx.data(), ptx.size()));
  return ptx;
}

// `ptx` asks for the PTX of the same program.
template <class Ptx>
void note(const void* cubin, const Ptx& ptx) {
  if (is_inside() || !runtime::active()) return;
  contain("nvrtcGetCUBIN", "runs unchanged", [&] { runtime::code_compiled(cubin, ptx); });
}

template <class Type>
Type* function_of(const void* caller, const char* symbol) {
  return reinterpret_cast<Type*>(function_for(caller, symbol));
}

template <size_t kCompiler>
nvrtcResult get_cubin(nvrtcProgram program, char* cubin) {
  const Compiler& compiler = compilers[kCompiler];
  const nvrtcResult result = compiler.get_cubin.load(std::memory_order_acquire)(program, cubin);
  if (result == NVRTC_SUCCESS) {
    note(cubin, [&] {
      return ptx_of(compiler.get_ptx_size.load(std::memory_order_acquire),
                    compiler.get_ptx.load(std::memory_order_acquire), program);
    });
  }
  return result;
}

constexpr std::array kHooks = []<size_t... kNumbers>(std::index_sequence<kNumbers...>) {
  return std::array{&get_cubin<kNumbers>...};
}
(std::make_index_sequence<compilers.size()>());

template <class Function>
void find(void* library, const char* symbol, std::atomic<Function>& function) {
  function.store(reinterpret_cast<Function>(next_dlsym()(library, symbol)), std::memory_order_release);
}

}  // namespace

// For programs that are linked against NVRTC.
extern "C" KLAP_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  const void* const caller = __builtin_return_address(0);
  const auto get = function_of<decltype(nvrtcGetCUBIN)>(caller, "nvrtcGetCUBIN");
  if (get == nullptr) return NVRTC_ERROR_INTERNAL_ERROR;
  const nvrtcResult result = get(program, cubin);
  if (result == NVRTC_SUCCESS) {
    note(cubin, [&] {
      return ptx_of(function_of<decltype(nvrtcGetPTXSize)>(caller, "nvrtcGetPTXSize"),
                    function_of<decltype(nvrtcGetPTX)>(caller, "nvrtcGetPTX"), program);
    });
  }
  return result;
}

void* look_up_nvrtc(void* handle, const char* symbol) {
  if (std::strcmp(symbol, "nvrtcGetCUBIN") != 0 || !runtime::active()) return nullptr;
  void* const found = next_dlsym()(handle, symbol);
  Dl_info info{};
  if (found == nullptr || found == reinterpret_cast<void*>(&nvrtcGetCUBIN)) return nullptr;
  if (dladdr(found, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  // The handle is never closed, which keeps the functions in place.
  void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  for (size_t i = 0; i < compilers.size(); ++i) {
    Compiler& compiler = compilers[i];
    const void* taken_by = nullptr;
    if (!compiler.library.compare_exchange_strong(taken_by, info.dli_fbase) && taken_by != info.dli_fbase)
      continue;
    find(library, "nvrtcGetPTXSize", compiler.get_ptx_size);
    find(library, "nvrtcGetPTX", compiler.get_ptx);
    compiler.get_cubin.store(reinterpret_cast<decltype(&nvrtcGetCUBIN)>(found), std::memory_order_release);
    return reinterpret_cast<void*>(kHooks[i]);
  }
  return nullptr;
}

}  // namespace klap::shim
