#include "runtime/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/driver.h"
#include "runtime/load/driver_linker.h"
#include "runtime/load/first_image.h"
#include "runtime/load/image_rewrite.h"
#include "runtime/parents/handles.h"
#include "runtime/parents/readback.h"
#include "runtime/parents/registry.h"
#include "runtime/process.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// Loads the cubin and enters the image into the registry; returns the driver's result.
using LoadCubin = std::function<CUresult(const std::shared_ptr<const jit::RewrittenModule>&)>;

void log_remark(const jit::SiteRemark& remark) {
  if (remark.parent.empty())  // code that cannot be read is only known to launch
    return log().info("  {}: its launches are left: {}: {}", remark.unit, remark.reason, remark.detail);
  const std::string child = remark.child.empty() ? "an unknown kernel" : demangle(remark.child);
  std::string what = fmt::format("left: {}", remark.reason);
  if (remark.rewritten && remark.granularity == "promotion") {
    what = "promoted";
  } else if (remark.rewritten) {
    what = fmt::format("aggregated at {} by the {}", remark.granularity, remark.launcher);
  }
  log().info("  {}:{}:{}: {} launches {}: {}{}{}", remark.unit, remark.line, remark.column,
             demangle(remark.parent), child, what, remark.detail.empty() ? "" : ": ", remark.detail);
  for (const std::string& note : remark.notes) log().info("    {}", note);
}

void log_module(const ModuleRecord& record) {
  const auto rewritten = std::count_if(record.remarks.begin(), record.remarks.end(),
                                       [](const jit::SiteRemark& remark) { return remark.rewritten; });
  log().info("{}: {}, {} of {} launch sites, {:.1f} ms, cache: {}", record.load_path, record.how, rewritten,
             record.remarks.size(), record.load_ms, record.cache);
  if (record.is_tuned)
    log().info("  its settings are tuned: {}", (config().cache_dir / record.tuned_file).string());
  for (const jit::SiteRemark& remark : record.remarks) log_remark(remark);
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Throws Error when the image could not be rewritten or the driver refuses what came out.
std::optional<CUresult> rewrite_and_load(const ImageSource& source, ModuleRecord& record,
                                         const LoadCubin& load) {
  const auto rewritten = rewrite_image(source, record);
  if (!rewritten) return std::nullopt;
  // This is done before the load, since nothing may fail behind it: the program would be given a second copy.
  ModuleRecord loaded = record;
  loaded.how = "rewritten";
  for (const jit::Variant& variant : rewritten->variants) loaded.variants.push_back(variant.parent);
  const auto start = std::chrono::steady_clock::now();
  const CUresult result = load(rewritten);
  loaded.driver_ms = milliseconds_since(start);
  note_machine_code_result(result);
  if (result != CUDA_SUCCESS) {
    throw Error(ErrorCode::Driver,
                fmt::format("the driver refused the rewritten image ({})", error_name(result)));
  }
  record = std::move(loaded);
  return result;
}

// A driver that turns out to take no machine code is given PTX instead.
std::optional<CUresult> rewrite_for_driver(const ImageSource& source, ModuleRecord& record,
                                           const LoadCubin& load) {
  const bool as_machine_code = takes_machine_code() && config().linker != settings::LinkerChoice::NvJitLink;
  const auto refused = [&] { return as_machine_code && !takes_machine_code(); };
  try {
    const auto result = rewrite_and_load(source, record, load);
    if (result || !refused()) return result;
  } catch (const Error& error) {
    if (!refused()) throw;
    log().info("{}: the driver takes no machine code: {}", source.load_path, error.what());
  }
  record = ModuleRecord();
  record.load_path = source.load_path;
  return rewrite_and_load(source, record, load);
}

// The reason of a failure, for the log and the statistics.
const char* reason_of(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "out of memory" : error.what();
}

// Rewrites and loads; failures end in `record.how`.
std::optional<CUresult> attempt(const ImageSource& source, ModuleRecord& record, const LoadCubin& load) {
  try {
    return rewrite_for_driver(source, record, load);
  } catch (const std::exception& error) {
    const char* const why = reason_of(error);
    report_failure(source.load_path, "loaded unchanged", why);
    try_or_report(source.load_path, "is not in the statistics",
                  [&] { record.how = std::string("failed: ") + why; });
    return std::nullopt;
  }
}

bool driver_is_complete() {
  if (!driver()->missing) return true;
  static std::once_flag once;
  std::call_once(once, [] { log().warn("this driver has no {}: nothing is rewritten", driver()->missing); });
  return false;
}

std::optional<CUresult> load_rewritten(const ImageSource& source, const LoadCubin& load) {
  if (!driver_is_complete()) return std::nullopt;
  first_image_loaded();
  const auto start = std::chrono::steady_clock::now();
  ModuleRecord record;
  record.load_path = source.load_path;
  const auto result = attempt(source, record, load);
  if (record.how.empty()) {
    Stats::instance().module_passed_through();
    return std::nullopt;
  }
  record.load_ms = milliseconds_since(start);
  try_or_report(source.load_path, "is not logged", [&] { log_module(record); });
  try_or_report(source.load_path, "is not in the statistics",
                [&] { Stats::instance().module_seen(std::move(record)); });
  return result;
}

// The bytes of a file that may hold device launches, NUL-terminated; nothing for files that cannot be read,
// which are the driver's to report.
std::optional<std::string> read_candidate(const char* file) {
  if (!file) return std::nullopt;
  try {
    return read_file(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void register_image(LoadedImage image, const jit::RewrittenModule& rewritten) {
  image.variants = rewritten.variants;
  image.key = rewritten.key;
  image.uses_sized_memory = uses_sized_memory(rewritten.cubin);
  for (const jit::Variant& variant : image.variants) {
    image.pool_bytes[variant.parent] = config().pool_bytes_for(variant.parent, variant.pool_bytes);
    for (const jit::ChildQueue& queue : variant.queues) {
      image.concurrency[variant.parent].push_back(
          config().concurrency_for(variant.parent, queue.child, queue.concurrency));
    }
    if (!config().dependent_launch_for(variant.parent)) image.no_dependent_launch.insert(variant.parent);
    if (!variant.queues.empty() &&
        asks_for_readback(config(), variant.parent, variant.queues.front().child)) {
      image.readback.insert(variant.parent);
      if (!can_read_back(variant))
        log().info(
            "{}: launched by the host without reading back: how many children there are is known only "
            "when all have run",
            demangle(variant.parent));
    }
    if (!variant.promoted) continue;
    image.chains[variant.parent] = {
        .pool = config().pool_for(variant.parent, variant.pool),
        .concurrency = config().concurrency_for(variant.parent, variant.parent, variant.concurrency)};
  }
  Registry::instance().add(image);
  // The image is loaded. Kernels that cannot be made ready here are made ready at the first launch.
  try_or_report("load", "kernels are not made ready", [] { make_kernels_ready(); });
}

bool keeps_binary(const LibraryOptions& options) {
  for (unsigned i = 0; i < options.count; ++i) {
    if (options.names[i] == CU_LIBRARY_BINARY_IS_PRESERVED && options.values[i]) return true;
  }
  return false;
}

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

// The values of the program's options, some of which the driver changes: how much of a log it has written,
// how long it took. They become the program's own if the load succeeds. Else the program's own call follows,
// which must begin with what the program said.
class OptionValues {
 public:
  explicit OptionValues(const JitOptions& options)
      : options_(options), values_(options.values, options.values + options.count) {}
  [[nodiscard]] void** data() { return values_.data(); }
  void keep() const { std::ranges::copy(values_, options_.values); }

 private:
  const JitOptions options_;
  std::vector<void*> values_;
};

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
  return load_rewritten(image_source(load_path, image, options, false), into_module(module, options));
}

std::optional<CUresult> load_module_file(const char* load_path, CUmodule* module, const char* file) {
  const auto bytes = read_candidate(file);
  if (!module || !bytes) return std::nullopt;
  ImageSource source = image_source(load_path, bytes->c_str(), {}, false);
  source.readable_bytes = bytes->size();
  return load_rewritten(source, into_module(module, {}));
}

std::optional<CUresult> load_library(const char* load_path, CUlibrary* library, const void* image,
                                     const JitOptions& options, const LibraryOptions& library_options) {
  if (!library || !image) return std::nullopt;
  return load_rewritten(image_source(load_path, image, options, true),
                        into_library(library, options, library_options));
}

std::optional<CUresult> load_library_file(const char* load_path, CUlibrary* library, const char* file,
                                          const JitOptions& options, const LibraryOptions& library_options) {
  const auto bytes = read_candidate(file);
  if (!library || !bytes) return std::nullopt;
  ImageSource source = image_source(load_path, bytes->c_str(), options, true);
  source.readable_bytes = bytes->size();
  return load_rewritten(source, into_library(library, options, library_options));
}

}  // namespace klap::runtime
