#include "runtime/load/load.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/calling_context.h"
#include "runtime/driver.h"
#include "runtime/load/first_image.h"
#include "runtime/load/image_rewrite.h"
#include "runtime/load/later_load.h"
#include "runtime/load/loaded_variants.h"
#include "runtime/load/module_files.h"
#include "runtime/load/option_values.h"
#include "runtime/load/rewritten_load.h"
#include "runtime/parents/registry.h"
#include "runtime/process.h"

namespace klap::runtime {

namespace {

std::optional<CUresult> load_rewritten(const ImageSource& source, const LoadCubin& load) {
  if (!driver_is_complete()) return std::nullopt;
  first_image_loaded();
  const auto start = Clock::now();
  ModuleRecord record;
  record.load_path = source.load_path;
  const Rewrite rewrite = [&](ModuleRecord& of) { return rewrite_image(source, of); };
  const std::optional<CUresult> result =
      is_stand_in(source) ? load_or_refuse(rewrite, record, load) : attempt(rewrite, record, load);
  report_module(std::move(record), start);
  return result;
}

// Statistics are written at the end of a program that loads nothing else, too.
std::optional<std::string> read_candidate(const char* file, bool every_device) {
  if (!driver_is_complete()) return std::nullopt;
  first_image_loaded();
  return read_module_file(file, target_capability(every_device));
}

void register_image(LoadedImage image, const jit::RewrittenModule& rewritten) {
  describe(image, rewritten);
  Registry::instance().add(image);
  try_to_make_ready();
}

bool keeps_binary(const LibraryOptions& options) {
  for (unsigned i = 0; i < options.count; ++i) {
    if (options.names[i] == CU_LIBRARY_BINARY_IS_PRESERVED && options.values[i]) return true;
  }
  return false;
}

LoadCubin into_library(CUlibrary* library, const JitOptions& options, const LibraryOptions& library_options) {
  return [=](const std::shared_ptr<const jit::RewrittenModule>& rewritten) {
    OptionValues values(options);
    const CUresult result = driver()->library_load_data(library, rewritten->cubin.data(), options.names,
                                                        values.data(), options.count, library_options.names,
                                                        library_options.values, library_options.count);
    if (result != CUDA_SUCCESS) return result;
    values.keep();
    Unloading unloading([library] { driver()->library_unload(*library); });
    LoadedImage image;
    image.library = *library;
    if (keeps_binary(library_options)) {
      image.preserved_cubin = std::shared_ptr<const std::string>(rewritten, &rewritten->cubin);
    }
    register_image(std::move(image), *rewritten);
    unloading.cancel();
    return result;
  };
}

LoadCubin into_module(CUmodule* module, const JitOptions& options) {
  return [=](const std::shared_ptr<const jit::RewrittenModule>& rewritten) {
    unsigned long long context_id = 0;
    CUresult result = driver()->ctx_get_id(nullptr, &context_id);
    if (result != CUDA_SUCCESS) return result;
    const void* const cubin = rewritten->cubin.data();
    OptionValues values(options);
    result = options.count == 0
                 ? driver()->module_load_data(module, cubin)
                 : driver()->module_load_data_ex(module, cubin, options.count, options.names, values.data());
    if (result != CUDA_SUCCESS) return result;
    values.keep();
    Unloading unloading([module] { driver()->module_unload(*module); });
    LoadedImage image;
    image.module = *module;
    image.context_id = context_id;
    register_image(std::move(image), *rewritten);
    unloading.cancel();
    return result;
  };
}

ImageSource image_source(const char* load_path, const void* image, const JitOptions& options,
                         bool every_device) {
  ImageSource source;
  source.load_path = load_path;
  source.image = image;
  source.every_device = every_device;
  if (options.count != 0)
    source.compiler_options = ptxas_options({options.names, options.count}, options.values);
  return source;
}

}  // namespace

std::optional<CUresult> load_module(const char* load_path, CUmodule* module, const void* image,
                                    const JitOptions& options) {
  if (!module || !image) return std::nullopt;
  const ImageSource source = image_source(load_path, image, options, false);
  if (config().async && !is_stand_in(source))
    return load_as_it_is(source, own_module(module, image, options), into_module(module, options));
  return load_rewritten(source, into_module(module, options));
}

std::optional<CUresult> load_module_file(const char* load_path, CUmodule* module, const char* file) {
  if (!module) return std::nullopt;
  const auto bytes = read_candidate(file, false);
  if (!bytes) return std::nullopt;
  ImageSource source = image_source(load_path, bytes->c_str(), {}, false);
  source.readable_bytes = bytes->size();
  return load_rewritten(source, into_module(module, {}));
}

std::optional<CUresult> load_library(const char* load_path, CUlibrary* library, const void* image,
                                     const JitOptions& options, const LibraryOptions& library_options) {
  if (!library || !image) return std::nullopt;
  const ImageSource source = image_source(load_path, image, options, true);
  const LoadCubin load = into_library(library, options, library_options);
  if (config().async && !is_stand_in(source))
    return load_as_it_is(source, own_library(library, image, options, library_options), load);
  return load_rewritten(source, load);
}

std::optional<CUresult> load_library_file(const char* load_path, CUlibrary* library, const char* file,
                                          const JitOptions& options, const LibraryOptions& library_options) {
  if (!library) return std::nullopt;
  const auto bytes = read_candidate(file, true);
  if (!bytes) return std::nullopt;
  ImageSource source = image_source(load_path, bytes->c_str(), options, true);
  source.readable_bytes = bytes->size();
  return load_rewritten(source, into_library(library, options, library_options));
}

}  // namespace klap::runtime
