// The registry tells which handles of the program mean a rewritten parent.
//
// The program learns handles through a handful of driver calls, and the shim reports each. The table is asked
// at every launch of the process. A program without rewritten kernels pays one relaxed load for that, others
// a shared lock and a hash look-up. Handles are addresses that the driver recycles. So a handle from a
// context is only valid together with that context's id. Unloading an image takes all its handles out before
// the driver can give them out again.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/parents/parent_kernel.h"

namespace klap::runtime {

class Registry {
 public:
  struct Handle {
    std::shared_ptr<ParentKernel> parent;
    bool is_kernel = false;               // a CUkernel
    uint64_t context_id = kEveryContext;  // of a CUfunction
  };

  static Registry& instance();

  // Asks for no memory, unlike instance().
  [[nodiscard]] static bool empty() noexcept { return images_count_.load(std::memory_order_relaxed) == 0; }

  void add(const LoadedImage& image);
  void remove_library(CUlibrary library);
  void remove_module(CUmodule module);
  // Takes out modules and functions of a CUDA context that has ended, and what parents have prepared there.
  void end_context(uint64_t context_id);

  // The program learnt a handle. Each is called for every such call of the program while the table is not
  // empty. If there is no memory for a new entry, no entry of an earlier owner of the handle is left either.
  void learn_kernel(CUlibrary library, std::string_view name, CUkernel kernel);
  void learn_module(CUlibrary library, CUmodule module, uint64_t context_id);
  void learn_function(CUmodule module, std::string_view name, CUfunction function, uint64_t context_id);
  void learn_function_of(CUkernel kernel, CUfunction function, uint64_t context_id);

  [[nodiscard]] std::optional<Handle> find(const void* handle) const;

  // Loads the kernels of all rewritten parents that may run in the current context and have not been loaded
  // there (ParentKernel::load_kernels()). Returns these parents.
  std::vector<std::shared_ptr<ParentKernel>> load_kernels(uint64_t context_id);
  // True while some image has not been loaded in any context.
  [[nodiscard]] bool has_unloaded() const {
    return generation_.load(std::memory_order_relaxed) != loaded_anywhere_.load(std::memory_order_relaxed);
  }

 private:
  // The rewritten parents of one image by name.
  struct Image {
    std::map<std::string, std::shared_ptr<ParentKernel>, std::less<>> parents;
    uint64_t context_id = kEveryContext;  // of a module
    const void* owner = nullptr;
  };
  struct Entry {
    Handle handle;
    const void* owner = nullptr;  // the library or module whose unloading ends the handle
  };

  void remove(const void* owner);
  std::vector<std::shared_ptr<ParentKernel>> parents_for(uint64_t context_id) const;
  void learn(const Image* image, std::string_view name, const void* handle, bool is_kernel,
             uint64_t context_id);
  [[nodiscard]] const Image* find_image(const void* library_or_module, uint64_t context_id) const;

  mutable std::shared_mutex mutex_;
  static inline std::atomic<size_t> images_count_{0};  // of the one instance
  std::atomic<uint64_t> generation_{0};                // how many images have been added
  // Held while kernels are loaded, so that no image is unloaded meanwhile. Never taken while `mutex_` is
  // held.
  std::mutex loading_mutex_;
  std::map<uint64_t, uint64_t> loaded_generation_;                        // by context
  std::atomic<uint64_t> loaded_anywhere_{0};                              // the latest of these
  std::unordered_map<const void*, std::shared_ptr<const Image>> images_;  // by CUlibrary and CUmodule
  std::unordered_map<const void*, Entry> handles_;
};

}  // namespace klap::runtime
