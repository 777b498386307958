#include "shim/callers.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

#include "shim/libcuda.h"
#include "support/boundary.h"

namespace klap::shim {
namespace {

// The function in the object with this code, where the library may be linked into it, or in a library that
// the object is linked against: there its other calls go, which have no hooks. The program itself searches
// the global scope, where the exported hook comes first.
void* function_of_object(const void* code, const char* symbol) {
  Dl_info info{};
  link_map* object = nullptr;
  if (dladdr1(code, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 || object == nullptr ||
      *object->l_name == '\0')
    return nullptr;
  // The handle is never closed, which keeps the function in place.
  void* const handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
  return handle != nullptr ? next_dlsym()(handle, symbol) : nullptr;
}

// No library is opened while the loader's list is walked.
int note_file(dl_phdr_info* info, size_t, void* data) {
  if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
    static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
  return 0;
}

// That function of any object that is loaded, but for the hook itself.
void* function_anywhere(const char* symbol) {
  std::vector<std::string> files;
  dl_iterate_phdr(note_file, &files);
  Dl_info own{}, info{};
  dladdr(reinterpret_cast<void*>(&note_file), &own);
  for (const std::string& file : files) {
    void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    void* const found = handle != nullptr ? next_dlsym()(handle, symbol) : nullptr;
    if (found != nullptr && dladdr(found, &info) != 0 && info.dli_fbase != own.dli_fbase) return found;
  }
  return nullptr;
}

}  // namespace

void* function_for(const void* caller, const char* symbol) {
  if (void* const found = function_of_object(caller, symbol)) return found;
  if (void* const found = next_dlsym()(RTLD_NEXT, symbol)) return found;
  void* found = nullptr;
  contain(symbol, "is not found", [&] { found = function_anywhere(symbol); });
  return found;
}

}  // namespace klap::shim
