// A rewritten image that the driver has loaded, as the registry gets it.
#pragma once

#include "jit/module.h"
#include "runtime/parents/parent_kernel.h"

namespace klap::runtime {

// Adds the variants, with the settings that hold for them.
void describe(LoadedImage& image, const jit::RewrittenModule& rewritten);

// The image is loaded and registered. Kernels that cannot be made ready here are made ready at the first
// launch.
void try_to_make_ready();

// Unloads an image whose handle the program will never know, unless it is cancelled.
template <class Unload>
class Unloading {
 public:
  explicit Unloading(const Unload& unload) : unload_(unload) {}
  ~Unloading() {
    if (!is_cancelled_) unload_();
  }
  Unloading(const Unloading&) = delete;
  Unloading& operator=(const Unloading&) = delete;
  void cancel() { is_cancelled_ = true; }

 private:
  const Unload unload_;
  bool is_cancelled_ = false;
};

}  // namespace klap::runtime
