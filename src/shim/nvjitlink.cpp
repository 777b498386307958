#include "shim/nvjitlink.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "runtime/load/link_calls.h"
#include "runtime/process.h"
#include "shim/callers.h"
#include "shim/hooks.h"
#include "shim/libcuda.h"
#include "support/boundary.h"

namespace klap::shim {
namespace {

enum Function : size_t { kCreate, kDestroy, kAddData, kAddFile, kGetCubin, kFunctions };
constexpr std::array<const char*, kFunctions> kNames = {
    "nvJitLinkCreate", "nvJitLinkDestroy", "nvJitLinkAddData", "nvJitLinkAddFile", "nvJitLinkGetLinkedCubin"};

// X(number, version): those that a program may be linked against.
#define KLAP_NVJITLINK_VERSIONS(X) \
  X(0, 12_0)                       \
  X(1, 12_1)                       \
  X(2, 12_2)                       \
  X(3, 12_3)                       \
  X(4, 12_4)                       \
  X(5, 12_5)                       \
  X(6, 12_6)                       \
  X(7, 12_7)                       \
  X(8, 12_8)                       \
  X(9, 12_9)                       \
  X(10, 13_0)                      \
  X(11, 13_1)                      \
  X(12, 13_2)                      \
  X(13, 13_3)                      \
  X(14, 13_4)                      \
  X(15, 13_5)                      \
  X(16, 13_6)                      \
  X(17, 13_7)                      \
  X(18, 13_8)                      \
  X(19, 13_9)
#define X(number, version) #version,
constexpr std::array kVersions = {KLAP_NVJITLINK_VERSIONS(X)};
#undef X

// A library whose plain names were asked for. They have numbers behind those of the versions.
constexpr size_t kMostLibraries = 4;
struct Library {
  std::atomic<const void*> mapped_at{nullptr};
  std::array<std::atomic<void*>, kFunctions> functions{};
};
std::array<Library, kMostLibraries> libraries;

// Calls the function that the program called. `caller` is code that did, of a name with a version. It is
// asked for each time: objects of one process may have nvJitLinks of their own, of the same version.
template <size_t kReal, Function kFunction, class... Args>
nvJitLinkResult forward(const void* caller, Args... args) {
  void* function = nullptr;
  if constexpr (kReal < kVersions.size()) {
    std::array<char, 64> symbol{};
    std::snprintf(symbol.data(), symbol.size(), "__%s_%s", kNames[kFunction], kVersions[kReal]);
    function = function_for(caller, symbol.data());
  } else {
    function = libraries[kReal - kVersions.size()].functions[kFunction].load(std::memory_order_acquire);
  }
  if (function == nullptr) return NVJITLINK_ERROR_INTERNAL;
  return reinterpret_cast<nvJitLinkResult (*)(Args...)>(function)(args...);
}

// Runs klap_jit's part, which needs no driver: a program may load that after it has linked. The linker that
// klap_jit itself uses comes here, too.
template <class Work>
void note(const char* entry_point, const Work& work) {
  if (!is_inside() && runtime::active()) contain(entry_point, "runs unchanged", work);
}

template <size_t kReal>
nvJitLinkResult create(const void* caller, nvJitLinkHandle* link, uint32_t count,
                       const char* const* options) {
  const nvJitLinkResult result = forward<kReal, kCreate>(caller, link, count, options);
  if (result == NVJITLINK_SUCCESS)
    note(kNames[kCreate], [&] { runtime::link_created(*link, count, options); });
  return result;
}

template <size_t kReal>
nvJitLinkResult destroy(const void* caller, nvJitLinkHandle* link) {
  if (link != nullptr) note(kNames[kDestroy], [&] { runtime::link_about_to_end(*link); });
  return forward<kReal, kDestroy>(caller, link);
}

template <size_t kReal>
runtime::NvJitLinkFunctions functions_of(const void* caller) {
  return {[=](nvJitLinkHandle* link, uint32_t count, const char** options) {
            return forward<kReal, kCreate>(caller, link, count, static_cast<const char* const*>(options));
          },
          [=](nvJitLinkHandle link, nvJitLinkInputType type, const void* data, size_t bytes,
              const char* name) { return forward<kReal, kAddData>(caller, link, type, data, bytes, name); },
          [=](nvJitLinkHandle* link) { return forward<kReal, kDestroy>(caller, link); }};
}

template <size_t kReal>
nvJitLinkResult add_data(const void* caller, nvJitLinkHandle link, nvJitLinkInputType type, const void* data,
                         size_t bytes, const char* name) {
  std::optional<nvJitLinkResult> added;
  note(kNames[kAddData], [&] {
    added = runtime::add_waiting_data(kNames[kAddData], functions_of<kReal>(caller), link, type, data, bytes,
                                      name);
  });
  if (added) return *added;
  const nvJitLinkResult result = forward<kReal, kAddData>(caller, link, type, data, bytes, name);
  if (result == NVJITLINK_SUCCESS)
    note(kNames[kAddData], [&] { runtime::link_data_added(link, type, data, bytes, name); });
  return result;
}

template <size_t kReal>
nvJitLinkResult add_file(const void* caller, nvJitLinkHandle link, nvJitLinkInputType type,
                         const char* path) {
  std::optional<nvJitLinkResult> added;
  note(kNames[kAddFile], [&] {
    added = runtime::add_waiting_file(kNames[kAddFile], functions_of<kReal>(caller), link, type, path);
  });
  if (added) return *added;
  const nvJitLinkResult result = forward<kReal, kAddFile>(caller, link, type, path);
  if (result == NVJITLINK_SUCCESS)
    note(kNames[kAddFile], [&] { runtime::link_file_added(link, type, path); });
  return result;
}

template <size_t kReal>
nvJitLinkResult get_cubin(const void* caller, nvJitLinkHandle link, void* cubin) {
  const nvJitLinkResult result = forward<kReal, kGetCubin>(caller, link, cubin);
  if (result == NVJITLINK_SUCCESS) note(kNames[kGetCubin], [&] { runtime::link_completed(link, cubin); });
  return result;
}

// The hook for a plain name, whose function is known.
template <auto kBody, class... Args>
nvJitLinkResult plain(Args... args) {
  return kBody(nullptr, args...);
}
template <auto kBody, class... Args>
void* plain_hook(nvJitLinkResult (*)(const void*, Args...)) {
  return reinterpret_cast<void*>(&plain<kBody, Args...>);
}

template <size_t kReal>
void* hook(size_t function) {
  switch (function) {
    case kCreate:
      return plain_hook<&create<kReal>>(&create<kReal>);
    case kDestroy:
      return plain_hook<&destroy<kReal>>(&destroy<kReal>);
    case kAddData:
      return plain_hook<&add_data<kReal>>(&add_data<kReal>);
    case kAddFile:
      return plain_hook<&add_file<kReal>>(&add_file<kReal>);
    default:
      return plain_hook<&get_cubin<kReal>>(&get_cubin<kReal>);
  }
}
using Hooks = void* (*)(size_t function);
constexpr std::array<Hooks, kMostLibraries> kHooks = {hook<kVersions.size()>, hook<kVersions.size() + 1>,
                                                      hook<kVersions.size() + 2>, hook<kVersions.size() + 3>};

}  // namespace

void* look_up_nvjitlink(void* handle, const char* symbol) {
  size_t function = 0;
  while (function < kFunctions && std::strcmp(kNames[function], symbol) != 0) ++function;
  if (function == kFunctions || !runtime::active()) return nullptr;
  void* const found = next_dlsym()(handle, symbol);
  Dl_info info{};
  if (found == nullptr || dladdr(found, &info) == 0) return nullptr;
  for (size_t i = 0; i < kMostLibraries; ++i) {
    Library& library = libraries[i];
    const void* taken_by = nullptr;
    if (!library.mapped_at.compare_exchange_strong(taken_by, info.dli_fbase) && taken_by != info.dli_fbase)
      continue;
    library.functions[function].store(found, std::memory_order_release);
    return kHooks[i](function);
  }
  return nullptr;
}

}  // namespace klap::shim

#define X(number, version)                                                                                \
  KLAP_EXPORT nvJitLinkResult __nvJitLinkCreate_##version(nvJitLinkHandle* link, uint32_t count,          \
                                                          const char* const* options) {                   \
    return klap::shim::create<number>(__builtin_return_address(0), link, count, options);                 \
  }                                                                                                       \
  KLAP_EXPORT nvJitLinkResult __nvJitLinkDestroy_##version(nvJitLinkHandle* link) {                       \
    return klap::shim::destroy<number>(__builtin_return_address(0), link);                                \
  }                                                                                                       \
  KLAP_EXPORT nvJitLinkResult __nvJitLinkAddData_##version(                                               \
      nvJitLinkHandle link, nvJitLinkInputType type, const void* data, size_t bytes, const char* name) {  \
    return klap::shim::add_data<number>(__builtin_return_address(0), link, type, data, bytes, name);      \
  }                                                                                                       \
  KLAP_EXPORT nvJitLinkResult __nvJitLinkAddFile_##version(nvJitLinkHandle link, nvJitLinkInputType type, \
                                                           const char* path) {                            \
    return klap::shim::add_file<number>(__builtin_return_address(0), link, type, path);                   \
  }                                                                                                       \
  KLAP_EXPORT nvJitLinkResult __nvJitLinkGetLinkedCubin_##version(nvJitLinkHandle link, void* cubin) {    \
    return klap::shim::get_cubin<number>(__builtin_return_address(0), link, cubin);                       \
  }
extern "C" {
KLAP_NVJITLINK_VERSIONS(X)
}
#undef X
