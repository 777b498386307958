#include "runtime/parents/registry.h"

#include <mutex>
#include <utility>

namespace klap::runtime {

Registry& Registry::instance() {
  static auto* const registry = new Registry;
  return *registry;
}

void Registry::add(const LoadedImage& loaded) {
  auto image = std::make_shared<Image>();
  image->context_id = loaded.context_id;
  image->owner = loaded.library ? static_cast<const void*>(loaded.library) : loaded.module;
  const auto shared = std::make_shared<const LoadedImage>(loaded);
  // The first variant of a parent is preferred; each knows the one behind it.
  for (auto variant = loaded.variants.rbegin(); variant != loaded.variants.rend(); ++variant) {
    auto& parent = image->parents[variant->parent];
    parent = std::make_shared<ParentKernel>(shared, *variant, parent);
  }
  const std::unique_lock lock(mutex_);
  images_[image->owner] = std::move(image);
  images_count_.store(images_.size(), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
}

std::vector<std::shared_ptr<ParentKernel>> Registry::parents_for(uint64_t context_id) const {
  std::vector<std::shared_ptr<ParentKernel>> parents;
  const std::shared_lock lock(mutex_);
  for (const auto& [handle, image] : images_) {
    // A library's module in a context belongs to the library.
    if (handle != image->owner) continue;
    if (image->context_id != kEveryContext && image->context_id != context_id) continue;
    for (const auto& [name, first] : image->parents) {
      for (auto parent = first; parent; parent = parent->otherwise()) parents.push_back(parent);
    }
  }
  return parents;
}

std::vector<std::shared_ptr<ParentKernel>> Registry::load_kernels(uint64_t context_id) {
  const uint64_t generation = generation_.load(std::memory_order_acquire);
  static thread_local std::pair<uint64_t, uint64_t> last{kEveryContext, 0};
  const std::pair now(context_id, generation);
  if (last == now) return {};
  const std::lock_guard lock(loading_mutex_);
  std::vector<std::shared_ptr<ParentKernel>> parents;
  if (uint64_t& loaded = loaded_generation_[context_id]; loaded < generation) {
    parents = parents_for(context_id);
    std::erase_if(parents, [&](const auto& parent) { return !parent->load_kernels(context_id); });
    loaded = generation;
  }
  if (generation > loaded_anywhere_.load(std::memory_order_relaxed))
    loaded_anywhere_.store(generation, std::memory_order_relaxed);
  last = now;
  return parents;
}

void Registry::remove_library(CUlibrary library) { remove(library); }
void Registry::remove_module(CUmodule module) { remove(module); }

void Registry::remove(const void* owner) {
  const std::lock_guard loading(loading_mutex_);
  const std::unique_lock lock(mutex_);
  std::erase_if(images_, [owner](const auto& entry) { return entry.second->owner == owner; });
  std::erase_if(handles_, [owner](const auto& entry) { return entry.second.owner == owner; });
  images_count_.store(images_.size(), std::memory_order_relaxed);
}

void Registry::end_context(uint64_t context_id) {
  const std::lock_guard loading(loading_mutex_);
  const std::unique_lock lock(mutex_);
  std::erase_if(handles_, [&](const auto& entry) { return entry.second.handle.context_id == context_id; });
  std::erase_if(images_, [&](const auto& entry) { return entry.second->context_id == context_id; });
  images_count_.store(images_.size(), std::memory_order_relaxed);
  loaded_generation_.erase(context_id);
  for (const auto& [handle, image] : images_) {
    for (const auto& [name, first] : image->parents) {
      for (auto parent = first; parent; parent = parent->otherwise()) parent->end_context(context_id);
    }
  }
}

const Registry::Image* Registry::find_image(const void* library_or_module, uint64_t context_id) const {
  const auto found = images_.find(library_or_module);
  if (found == images_.end()) return nullptr;
  const Image& image = *found->second;
  // The driver has given out the module handle of a destroyed context again.
  if (image.context_id != kEveryContext && image.context_id != context_id) return nullptr;
  return &image;
}

void Registry::learn(const Image* image, std::string_view name, const void* handle, bool is_kernel,
                     uint64_t context_id) {
  const auto parent = image ? image->parents.find(name) : decltype(image->parents.begin()){};
  if (!image || parent == image->parents.end()) {
    handles_.erase(handle);  // recycled from an image that went away together with its context
    return;
  }
  handles_[handle] = {{parent->second, is_kernel, context_id}, image->owner};
}

void Registry::learn_kernel(CUlibrary library, std::string_view name, CUkernel kernel) {
  const std::unique_lock lock(mutex_);
  learn(find_image(library, kEveryContext), name, kernel, true, kEveryContext);
}

void Registry::learn_module(CUlibrary library, CUmodule module, uint64_t context_id) {
  const std::unique_lock lock(mutex_);
  images_.erase(module);
  if (const auto found = images_.find(library); found != images_.end()) {
    auto image = std::make_shared<Image>(*found->second);
    image->context_id = context_id;
    images_[module] = std::move(image);
  }
  images_count_.store(images_.size(), std::memory_order_relaxed);
}

void Registry::learn_function(CUmodule module, std::string_view name, CUfunction function,
                              uint64_t context_id) {
  const std::unique_lock lock(mutex_);
  learn(find_image(module, context_id), name, function, false, context_id);
}

void Registry::learn_function_of(CUkernel kernel, CUfunction function, uint64_t context_id) {
  const std::unique_lock lock(mutex_);
  const auto known = handles_.find(kernel);
  if (known == handles_.end() || !known->second.handle.is_kernel) {
    handles_.erase(function);
    return;
  }
  const Entry entry{{known->second.handle.parent, false, context_id}, known->second.owner};
  handles_[function] = entry;
}

std::optional<Registry::Handle> Registry::find(const void* handle) const {
  const std::shared_lock lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return std::nullopt;
  return found->second.handle;
}

}  // namespace klap::runtime
