#include "runtime/parents/handles.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/driver.h"
#include "runtime/parents/later_images.h"
#include "runtime/parents/registry.h"
#include "runtime/queues/launch_context.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// Threads may load code without a context. To ask for the id of none is an error, which tools that watch the
// driver report as one of the program.
std::optional<uint64_t> current_context_id() {
  unsigned long long id = 0;
  CUcontext context = nullptr;
  if (driver()->ctx_get_current(&context) != CUDA_SUCCESS || context == nullptr) return std::nullopt;
  if (driver()->ctx_get_id(nullptr, &id) != CUDA_SUCCESS) return std::nullopt;
  return id;
}

// A variant's counterpart of a handle that takes function settings: those accept a CUkernel too.
CUfunction counterpart(const Registry::Handle& handle, const ParentKernel& variant) {
  if (handle.is_kernel) return reinterpret_cast<CUfunction>(variant.variant_kernel());
  // Looking the function up gives the one of the current context, which must be the handle's own.
  if (current_context_id() != handle.context_id) return nullptr;
  return variant.variant_function();
}

// Makes a setting on all variants of a parent. `set` is given each of them.
template <typename Set>
void on_all_variants(const Registry::Handle& handle, const Set& set) {
  for (const ParentKernel* variant = handle.parent.get(); variant != nullptr;
       variant = variant->otherwise().get())
    set(*variant);
}

// The sizes of queues for one stream that launches any of these.
std::vector<uint64_t> first_queues(const std::vector<std::shared_ptr<ParentKernel>>& parents) {
  std::vector<uint64_t> queues;
  for (const auto& parent : parents) {
    const std::vector<uint64_t> own = parent->first_queues();
    if (queues.size() < own.size()) queues.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i) queues[i] = std::max(queues[i], own[i]);
  }
  return queues;
}

void report(const Registry::Handle& handle, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  log().debug("{}: a setting of the original was not made on its variant ({})",
              demangle(handle.parent->name()), error_name(result));
}

// Makes a setting on the variants of the program's function.
template <typename Set>
void on_functions(CUfunction function, const Set& set) {
  const auto handle = Registry::instance().find(function);
  if (!handle) return;
  on_all_variants(*handle, [&](const ParentKernel& parent) {
    const CUfunction variant = counterpart(*handle, parent);
    report(*handle, variant ? set(variant) : CUDA_ERROR_NOT_FOUND);
  });
}
template <typename Set>
void on_kernels(CUkernel kernel, const Set& set) {
  const auto handle = Registry::instance().find(kernel);
  if (!handle) return;
  on_all_variants(*handle, [&](const ParentKernel& parent) {
    const CUkernel variant = parent.variant_kernel();
    report(*handle, variant ? set(variant) : CUDA_ERROR_NOT_FOUND);
  });
}

}  // namespace

void make_kernels_ready() {
  if (nothing_rewritten()) return;
  const auto id = current_context_id();
  if (!id) return;
  const auto parents = Registry::instance().load_kernels(*id);
  if (parents.empty()) return;
  GuardReports guards;
  for (const auto& parent : parents) {
    if (const LaunchGuard* const guard = parent->guard())
      (guard->counts_apart() ? guards.in_host : guards.in_device) = true;
  }
  LaunchContexts::instance().make_ready(*id, first_queues(parents), guards);
}

void load_kernels_for_launch() {
  if (!Registry::instance().has_unloaded()) return;
  if (const auto id = current_context_id()) Registry::instance().load_kernels(*id);
}

bool nothing_rewritten() noexcept { return Registry::empty() && !LaterImages::any(); }

void learn_kernel(CUlibrary library, const char* name, CUkernel kernel) {
  if (nothing_rewritten()) return;
  if (LaterImages::any() && LaterImages::instance().learn_kernel(library, name, kernel)) return;
  Registry::instance().learn_kernel(library, name, kernel);
  make_kernels_ready();
}

void learn_module(CUlibrary library, CUmodule module) {
  if (nothing_rewritten()) return;
  if (LaterImages::any() && LaterImages::instance().learn_module(library, module)) return;
  if (const auto id = current_context_id()) Registry::instance().learn_module(library, module, *id);
  make_kernels_ready();
}

void learn_function(CUmodule module, const char* name, CUfunction function) {
  if (nothing_rewritten()) return;
  if (LaterImages::any() && LaterImages::instance().learn_function(module, name, function)) return;
  if (const auto id = current_context_id()) Registry::instance().learn_function(module, name, function, *id);
  make_kernels_ready();
}

void learn_function_of(CUkernel kernel, CUfunction function) {
  if (nothing_rewritten()) return;
  if (LaterImages::any() && LaterImages::instance().learn_function_of(kernel, function)) return;
  if (const auto id = current_context_id()) Registry::instance().learn_function_of(kernel, function, *id);
  make_kernels_ready();
}

void forget_library(CUlibrary library) {
  if (nothing_rewritten()) return;
  const LoadedImage later = LaterImages::any() ? LaterImages::instance().forget(library) : LoadedImage{};
  Registry::instance().remove_library(library);
  if (later.second_library) driver()->library_unload(later.second_library);
}

void forget_module(CUmodule module) {
  if (nothing_rewritten()) return;
  const LoadedImage later = LaterImages::any() ? LaterImages::instance().forget(module) : LoadedImage{};
  Registry::instance().remove_module(module);
  if (later.second_module) driver()->module_unload(later.second_module);
}

void mirror_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
  const auto set = [=](CUfunction of) { return driver()->func_set_attribute(of, attribute, value); };
  if (LaterImages::any()) LaterImages::instance().set_function(function, set);
  on_functions(function, set);
}

void mirror_cache_config(CUfunction function, CUfunc_cache cache) {
  const auto set = [=](CUfunction of) { return driver()->func_set_cache_config(of, cache); };
  if (LaterImages::any()) LaterImages::instance().set_function(function, set);
  on_functions(function, set);
}

void mirror_attribute(CUkernel kernel, CUfunction_attribute attribute, int value, CUdevice device) {
  const auto set = [=](CUkernel of) { return driver()->kernel_set_attribute(attribute, value, of, device); };
  if (LaterImages::any()) LaterImages::instance().set_kernel(kernel, set);
  on_kernels(kernel, set);
}

void mirror_cache_config(CUkernel kernel, CUfunc_cache cache, CUdevice device) {
  const auto set = [=](CUkernel of) { return driver()->kernel_set_cache_config(of, cache, device); };
  if (LaterImages::any()) LaterImages::instance().set_kernel(kernel, set);
  on_kernels(kernel, set);
}

}  // namespace klap::runtime
