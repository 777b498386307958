// Images that are rewritten while the program runs its own kernels (KLAP_ASYNC).
//
// The program's image is loaded as it is. A thread of ours rewrites it, and loads what comes out beside it.
// That is only done where both do the same (jit/second_image.h). Until then it is written down which handles
// the program learns of its image, and what it sets on them. Then the second image gets the settings, and the
// registry gets the handles. So the next launch through one of these finds a variant that is ready.
//
// Whatever the driver could wait for happens before that, in our thread and without a lock: a kernel of the
// program may run until the program's thread goes on.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/parents/parent_kernel.h"

namespace klap::runtime {

// The program's image, of which one handle is set.
struct OwnImage {
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  uint64_t context_id = kEveryContext;  // of the module
  CUcontext context = nullptr;          // in which it was loaded, if there was one

  [[nodiscard]] const void* handle() const {
    return library ? static_cast<const void*>(library) : static_cast<const void*>(module);
  }
};

class LaterImage;

class LaterImages {
 public:
  static LaterImages& instance();
  // True while there are such images: one relaxed load.
  static bool any() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  // The program has loaded that image, which is to be rewritten.
  std::shared_ptr<LaterImage> begin(const OwnImage& own);
  // The context in which the program was last seen to use it; null if it was in none.
  CUcontext context_of(const std::shared_ptr<LaterImage>& image);
  // It stays as it is.
  void leave(const std::shared_ptr<LaterImage>& image);
  // The variants are in the second image that `loaded` names, and ready. Enters them into the registry; false
  // if the program has given its image up.
  bool change(const std::shared_ptr<LaterImage>& image, const LoadedImage& loaded);

  // The program learnt a handle. True if that has been written down, and is not to be reported again.
  bool learn_kernel(CUlibrary library, const char* name, CUkernel kernel);
  bool learn_module(CUlibrary library, CUmodule module);
  bool learn_function(CUmodule module, const char* name, CUfunction function);
  bool learn_function_of(CUkernel kernel, CUfunction function);
  // The program changed something about a function or kernel. `set` does so for another one of that kind.
  void set_function(CUfunction function, const std::function<void(CUfunction)>& set);
  void set_kernel(CUkernel kernel, const std::function<void(CUkernel)>& set);

  // The program is about to unload its image. Returns the second one, which is to be unloaded as well.
  LoadedImage forget(const void* handle);
  void end_context(uint64_t context_id);

 private:
  std::shared_ptr<LaterImage> find(const void* handle) const;
  bool keep(const void* owner, const void* handle, const std::string& name,
            const std::function<void()>& learn);
  void erase(const LaterImage* image);

  static inline std::atomic<size_t> count_{0};
  std::recursive_mutex mutex_;  // what is written down is reported while it is held
  std::unordered_map<const void*, std::shared_ptr<LaterImage>> images_;  // by all handles of the program
};

}  // namespace klap::runtime
