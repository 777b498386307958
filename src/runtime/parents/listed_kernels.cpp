#include "runtime/parents/listed_kernels.h"

#include <algorithm>
#include <vector>

#include "runtime/driver.h"
#include "runtime/parents/handles.h"
#include "support/generated_name.h"

namespace klap::runtime {
namespace {

// How the driver lists the kernels of an image, and names them.
template <class Image, class Kernel>
struct Lister {
  CUresult (*count)(unsigned*, Image);
  CUresult (*list)(Kernel*, unsigned, Image);
  CUresult (*name)(const char**, Kernel);
  void (*learn)(Image, const char*, Kernel);
};

// The program's own kernels; nothing where the driver does not say, or where there are no others.
template <class Image, class Kernel>
std::optional<std::vector<Kernel>> own_kernels(const Lister<Image, Kernel>& lister, Image image) {
  if (nothing_rewritten() || !lister.count || !lister.list || !lister.name) return std::nullopt;
  unsigned count = 0;
  if (lister.count(&count, image) != CUDA_SUCCESS) return std::nullopt;
  std::vector<Kernel> all(count), own;
  if (lister.list(all.data(), count, image) != CUDA_SUCCESS) return std::nullopt;
  for (Kernel kernel : all) {
    const char* name = nullptr;
    if (lister.name(&name, kernel) != CUDA_SUCCESS || name == nullptr) return std::nullopt;
    if (!name_made_from(name).empty()) continue;
    lister.learn(image, name, kernel);
    own.push_back(kernel);
  }
  return own.size() == all.size() ? std::nullopt : std::optional(std::move(own));
}

template <class Image, class Kernel>
std::optional<CUresult> count_own(const Lister<Image, Kernel>& lister, unsigned* count, Image image) {
  if (count == nullptr) return std::nullopt;
  const auto own = own_kernels(lister, image);
  if (!own) return std::nullopt;
  *count = static_cast<unsigned>(own->size());
  return CUDA_SUCCESS;
}

template <class Image, class Kernel>
std::optional<CUresult> list_own(const Lister<Image, Kernel>& lister, Kernel* kernels, unsigned room,
                                 Image image) {
  if (kernels == nullptr) return std::nullopt;
  const auto own = own_kernels(lister, image);
  if (!own) return std::nullopt;
  std::copy_n(own->begin(), std::min<size_t>(room, own->size()), kernels);
  return CUDA_SUCCESS;
}

Lister<CUlibrary, CUkernel> of_library() {
  const Driver& cuda = *driver();
  return {cuda.library_get_kernel_count, cuda.library_enumerate_kernels, cuda.kernel_get_name, learn_kernel};
}

Lister<CUmodule, CUfunction> of_module() {
  const Driver& cuda = *driver();
  return {cuda.module_get_function_count, cuda.module_enumerate_functions, cuda.func_get_name,
          learn_function};
}

}  // namespace

std::optional<CUresult> count_kernels(unsigned* count, CUlibrary library) {
  return count_own(of_library(), count, library);
}

std::optional<CUresult> list_kernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  return list_own(of_library(), kernels, room, library);
}

std::optional<CUresult> count_functions(unsigned* count, CUmodule module) {
  return count_own(of_module(), count, module);
}

std::optional<CUresult> list_functions(CUfunction* functions, unsigned room, CUmodule module) {
  return list_own(of_module(), functions, room, module);
}

}  // namespace klap::runtime
