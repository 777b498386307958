#include "runtime/parents/later_images.h"

#include <utility>

#include "runtime/driver.h"
#include "runtime/parents/handles.h"
#include "runtime/parents/registry.h"

namespace klap::runtime {

namespace {

// The current context, and its id; none if there is none.
struct Current {
  CUcontext context = nullptr;
  uint64_t id = 0;
};
Current current() {
  Current now;
  unsigned long long id = 0;
  if (driver()->ctx_get_current(&now.context) != CUDA_SUCCESS || now.context == nullptr) return {};
  if (driver()->ctx_get_id(nullptr, &id) != CUDA_SUCCESS) return {};
  now.id = id;
  return now;
}

struct Event {
  const void* handle = nullptr;
  Current in;
  std::function<void()> learn;
};

struct FunctionSetting {
  Current in;
  std::string name;
  std::function<void(CUfunction)> set;
};

struct KernelSetting {
  std::string name;
  std::function<void(CUkernel)> set;
};

}  // namespace

class LaterImage {
 public:
  explicit LaterImage(const OwnImage& of) : own(of) {}
  const OwnImage own;

  // The rest requires the mutex of LaterImages.
  bool is_given_up = false, is_changed = false;
  LoadedImage loaded;  // once it is changed
  std::unordered_map<const void*, std::string> names;
  std::vector<Event> events;
  std::vector<FunctionSetting> function_settings;
  std::vector<KernelSetting> kernel_settings;

  // The kernels of the second image that have the settings of one of the program's.
  [[nodiscard]] std::vector<std::string> kernels_like(const std::string& name) const {
    std::vector<std::string> like = {name};
    for (const jit::Variant& variant : loaded.variants) {
      if (variant.parent == name) like.push_back(variant.parent_variant);
    }
    return like;
  }
  void apply(const KernelSetting& setting) const {
    for (const std::string& name : kernels_like(setting.name)) {
      if (const CUkernel kernel = kernel_of(name)) setting.set(kernel);
    }
  }
  void apply(const FunctionSetting& setting) const {
    for (const std::string& name : kernels_like(setting.name)) {
      if (const CUfunction function = function_of(name)) setting.set(function);
    }
  }

 private:
  [[nodiscard]] CUkernel kernel_of(const std::string& name) const {
    CUkernel kernel = nullptr;
    const bool is_found =
        loaded.second_library &&
        driver()->library_get_kernel(&kernel, loaded.second_library, name.c_str()) == CUDA_SUCCESS;
    return is_found ? kernel : nullptr;
  }
  [[nodiscard]] CUfunction function_of(const std::string& name) const {
    CUfunction function = nullptr;
    const CUkernel kernel = kernel_of(name);
    const CUresult result = loaded.second_module
                                ? driver()->module_get_function(&function, loaded.second_module, name.c_str())
                            : kernel ? driver()->kernel_get_function(&function, kernel)
                                     : CUDA_ERROR_NOT_FOUND;
    return result == CUDA_SUCCESS ? function : nullptr;
  }
};

LaterImages& LaterImages::instance() {
  static auto* const images = new LaterImages;
  return *images;
}

std::shared_ptr<LaterImage> LaterImages::find(const void* handle) const {
  const auto found = images_.find(handle);
  return found == images_.end() ? nullptr : found->second;
}

void LaterImages::erase(const LaterImage* image) {
  std::erase_if(images_, [image](const auto& entry) { return entry.second.get() == image; });
  count_.store(images_.size(), std::memory_order_relaxed);
}

std::shared_ptr<LaterImage> LaterImages::begin(const OwnImage& own) {
  auto image = std::make_shared<LaterImage>(own);
  const std::lock_guard lock(mutex_);
  images_[own.handle()] = image;
  count_.store(images_.size(), std::memory_order_relaxed);
  return image;
}

CUcontext LaterImages::context_of(const std::shared_ptr<LaterImage>& image) {
  const std::lock_guard lock(mutex_);
  for (auto event = image->events.rbegin(); event != image->events.rend(); ++event) {
    if (event->in.context != nullptr) return event->in.context;
  }
  return image->own.context;
}

void LaterImages::leave(const std::shared_ptr<LaterImage>& image) {
  const std::lock_guard lock(mutex_);
  image->is_given_up = true;
  erase(image.get());
}

bool LaterImages::change(const std::shared_ptr<LaterImage>& image, const LoadedImage& loaded) {
  const std::lock_guard lock(mutex_);
  if (image->is_given_up) return false;
  image->loaded = loaded;
  CUcontext before = nullptr;
  driver()->ctx_get_current(&before);
  const auto enter = [](const Current& in) { return driver()->ctx_set_current(in.context) == CUDA_SUCCESS; };
  for (const KernelSetting& setting : image->kernel_settings) image->apply(setting);
  for (const FunctionSetting& setting : image->function_settings) {
    if (enter(setting.in)) image->apply(setting);
  }
  Registry::instance().add(loaded);
  image->is_changed = true;
  for (const Event& event : std::exchange(image->events, {})) {
    if (enter(event.in)) event.learn();
  }
  driver()->ctx_set_current(before);
  return true;
}

// Handles of an image that has changed are the registry's. Their names are kept for what is set on them.
bool LaterImages::keep(const void* owner, const void* handle, const std::string& name,
                       const std::function<void()>& learn) {
  const std::shared_ptr<LaterImage> image = find(owner);
  if (const auto known = find(handle); known && known != image) {  // the driver has given it out again
    images_.erase(handle);
    std::erase_if(known->events, [handle](const Event& event) { return event.handle == handle; });
  }
  if (!image) return false;
  images_[handle] = image;
  image->names[handle] = name;
  if (image->is_changed) return false;
  image->events.push_back({handle, current(), learn});
  return true;
}

bool LaterImages::learn_kernel(CUlibrary library, const char* name, CUkernel kernel) {
  const std::lock_guard lock(mutex_);
  const std::string of = name;
  return keep(library, kernel, of, [=] { runtime::learn_kernel(library, of.c_str(), kernel); });
}

bool LaterImages::learn_module(CUlibrary library, CUmodule module) {
  const std::lock_guard lock(mutex_);
  return keep(library, module, "", [=] { runtime::learn_module(library, module); });
}

bool LaterImages::learn_function(CUmodule module, const char* name, CUfunction function) {
  const std::lock_guard lock(mutex_);
  const std::string of = name;
  return keep(module, function, of, [=] { runtime::learn_function(module, of.c_str(), function); });
}

bool LaterImages::learn_function_of(CUkernel kernel, CUfunction function) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<LaterImage> image = find(kernel);
  const std::string name = image ? image->names[kernel] : "";
  return keep(kernel, function, name, [=] { runtime::learn_function_of(kernel, function); });
}

void LaterImages::set_function(CUfunction function, const std::function<void(CUfunction)>& set) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<LaterImage> image = find(function);
  if (!image) return;
  const FunctionSetting setting{current(), image->names[function], set};
  if (image->is_changed)
    image->apply(setting);
  else
    image->function_settings.push_back(setting);
}

void LaterImages::set_kernel(CUkernel kernel, const std::function<void(CUkernel)>& set) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<LaterImage> image = find(kernel);
  if (!image) return;
  const KernelSetting setting{image->names[kernel], set};
  if (image->is_changed)
    image->apply(setting);
  else
    image->kernel_settings.push_back(setting);
}

LoadedImage LaterImages::forget(const void* handle) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<LaterImage> image = find(handle);
  if (!image || image->own.handle() != handle) return {};
  image->is_given_up = true;
  erase(image.get());
  return image->loaded;
}

void LaterImages::end_context(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<LaterImage>> ended;
  for (const auto& [handle, image] : images_) {
    if (image->own.context_id == context_id) ended.push_back(image);
    std::erase_if(image->events, [&](const Event& event) { return event.in.id == context_id; });
    std::erase_if(image->function_settings,
                  [&](const FunctionSetting& setting) { return setting.in.id == context_id; });
  }
  for (const auto& image : ended) {
    image->is_given_up = true;
    erase(image.get());
  }
}

}  // namespace klap::runtime
