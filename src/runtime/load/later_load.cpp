#include "runtime/load/later_load.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "jit/second_image.h"
#include "runtime/driver.h"
#include "runtime/load/first_image.h"
#include "runtime/load/loaded_variants.h"
#include "runtime/load/option_values.h"
#include "runtime/process.h"
#include "runtime/queues/block_pool.h"
#include "support/boundary.h"
#include "support/log.h"
#include "support/own_thread.h"

namespace klap::runtime {

namespace {

// Has the driver load all that launches of its variants need.
void load_kernels_of(const LoadedImage& image) {
  const Driver& cuda = *driver();
  const auto load = [&](const std::string& name) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    if (image.second_module)
      (void)cuda.module_get_function(&function, image.second_module, name.c_str());
    else if (cuda.library_get_kernel(&kernel, image.second_library, name.c_str()) == CUDA_SUCCESS)
      (void)cuda.kernel_get_function(&function, kernel);
  };
  for (const jit::Variant& variant : image.variants) {
    load(variant.parent);
    load(variant.parent_variant);
    for (const jit::ChildQueue& queue : variant.queues) {
      load(queue.child);
      load(queue.consumer);
    }
  }
}

// The image beside the program's own, to which it changes unless the program has unloaded that.
LoadCubin into_second_image(const std::shared_ptr<LaterImage>& later, const OwnImage& own, bool& is_changed) {
  return [=, &is_changed](const std::shared_ptr<const jit::RewrittenModule>& rewritten) {
    LoadedImage image;
    image.library = own.library;
    image.module = own.module;
    image.context_id = own.context_id;
    const void* const cubin = rewritten->cubin.data();
    const CUcontext context = LaterImages::instance().context_of(later);
    if (context != nullptr) driver()->ctx_set_current(context);
    const CUresult result = own.library ? driver()->library_load_data(&image.second_library, cubin, nullptr,
                                                                      nullptr, 0, nullptr, nullptr, 0)
                                        : driver()->module_load_data(&image.second_module, cubin);
    if (result != CUDA_SUCCESS) return result;
    Unloading unloading([&image] {
      if (image.second_library) driver()->library_unload(image.second_library);
      if (image.second_module) driver()->module_unload(image.second_module);
    });
    describe(image, *rewritten);
    load_kernels_of(image);
    is_changed = LaterImages::instance().change(later, image);
    if (!is_changed) return result;
    unloading.cancel();
    try_to_make_ready();
    return result;
  };
}

// Nothing if the program's kernels and rewritten ones may take turns.
std::optional<std::string> obstacle_to_change(const TakenProgram& taken) {
  const auto memory = config().setting_for("aggregate_malloc", "", "");
  if (memory && memory->text != "off") return "memory of the device's heap goes back where it came from";
  return jit::obstacle_to_second_image(taken.program);
}

// The cache is filled for the next start if nothing can change.
void rewrite_later(const std::shared_ptr<LaterImage>& later, const OwnImage& own, const TakenProgram& taken,
                   ModuleRecord& record) {
  const auto obstacle = obstacle_to_change(taken);
  if (obstacle) {
    LaterImages::instance().leave(later);
    if (rewrite_program(taken, record)) record.how = "rewritten for the next start: " + *obstacle;
    return;
  }
  const RelaxedCapture relaxed;  // the program's threads may be capturing
  bool is_changed = false;
  const auto rewrite = [&](ModuleRecord& of) { return rewrite_program(taken, of); };
  if (!rewrite_and_load(rewrite, record, into_second_image(later, own, is_changed)))
    LaterImages::instance().leave(later);
  else if (!is_changed)
    record.how = "not rewritten: the program has unloaded it before";
}

// The rest, in our own thread.
void finish_later(const std::shared_ptr<LaterImage>& later, const OwnImage& own, const TakenProgram& taken,
                  ModuleRecord record, Clock::time_point start) {
  // The program needs the other processors itself.
  static auto& one_at_a_time = *new std::mutex;
  try {
    const std::lock_guard lock(one_at_a_time);
    stop_if_process_ends();
    rewrite_later(later, own, taken, record);
  } catch (const std::exception& error) {
    LaterImages::instance().leave(later);
    record.how = std::string("failed: ") + reason_of(error);
    if (!process_ends()) report_failure(record.load_path.c_str(), "goes on unchanged", reason_of(error));
  }
  if (process_ends() && record.how != "rewritten") record.how = "not rewritten: the process ended before";
  report_module(std::move(record), start);
}

// Has the image rewritten, which the program has loaded as it is.
void begin_to_rewrite(TakenProgram taken, const OwnImage& own, ModuleRecord record, Clock::time_point start) {
  const auto later = LaterImages::instance().begin(own);
  log().info("{}: its own kernels run until they are rewritten", record.load_path);
  const auto shared = std::make_shared<const TakenProgram>(std::move(taken));
  try {
    start_in_own_thread([=] { finish_later(later, own, *shared, record, start); });
  } catch (const std::exception& error) {
    LaterImages::instance().leave(later);
    report_failure(record.load_path.c_str(), "goes on unchanged", reason_of(error));
  }
}

}  // namespace

LoadOwn own_library(CUlibrary* library, const void* image, const JitOptions& options,
                    const LibraryOptions& library_options) {
  return [=](OwnImage& own) {
    OptionValues values(options);
    const CUresult result =
        driver()->library_load_data(library, image, options.names, values.data(), options.count,
                                    library_options.names, library_options.values, library_options.count);
    if (result != CUDA_SUCCESS) return result;
    values.keep();
    own.library = *library;
    return result;
  };
}

LoadOwn own_module(CUmodule* module, const void* image, const JitOptions& options) {
  return [=](OwnImage& own) {
    unsigned long long context_id = 0;
    OptionValues values(options);
    CUresult result = driver()->ctx_get_id(nullptr, &context_id);
    if (result == CUDA_SUCCESS)
      result = options.count == 0 ? driver()->module_load_data(module, image)
                                  : driver()->module_load_data_ex(module, image, options.count, options.names,
                                                                  values.data());
    if (result != CUDA_SUCCESS) return result;
    values.keep();
    own.module = *module;
    own.context_id = context_id;
    return result;
  };
}

std::optional<CUresult> load_as_it_is(const ImageSource& source, const LoadOwn& load_own,
                                      const LoadCubin& load) {
  if (!driver_is_complete()) return std::nullopt;
  first_image_loaded();
  const auto start = Clock::now();
  ModuleRecord record;
  record.load_path = source.load_path;
  std::optional<TakenProgram> taken;
  bool is_cached = false;
  const auto from_cache = [&](ModuleRecord& of) -> std::shared_ptr<const jit::RewrittenModule> {
    if (!taken) taken = take_program(source, of);
    auto found = taken ? rewrite_program(*taken, of, true) : nullptr;
    is_cached = found != nullptr;
    return found && !found->cubin.empty() ? found : nullptr;
  };
  auto result = attempt(from_cache, record, load);
  const bool is_failed = record.how.starts_with("failed");
  if (!result && taken && !is_cached && !is_failed) {
    OwnImage own;
    if (driver()->ctx_get_current(&own.context) != CUDA_SUCCESS) own.context = nullptr;
    const CUresult loaded = load_own(own);
    if (loaded == CUDA_SUCCESS) {
      begin_to_rewrite(std::move(*taken), own, std::move(record), start);
      return loaded;
    }
    // The driver takes no PTX that launches. Then the program has no kernels to begin with.
    result = attempt([&](ModuleRecord& of) { return rewrite_program(*taken, of); }, record, load);
  }
  report_module(std::move(record), start);
  return result;
}

}  // namespace klap::runtime
