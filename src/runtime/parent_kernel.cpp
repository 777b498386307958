#include "runtime/parent_kernel.h"

#include "runtime/driver.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

unsigned max_block_threads(CUfunction function) {
  int threads = 0;
  const CUresult result =
      driver()->func_get_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
  return result == CUDA_SUCCESS ? static_cast<unsigned>(threads) : 0;
}

// Blocks of the consumer that fill the device: more would only wait, fewer would leave it partly idle.
unsigned full_grid(CUfunction consumer, unsigned block_threads, unsigned multiprocessors) {
  int resident = 0;
  const CUresult result = driver()->occupancy(&resident, consumer, static_cast<int>(block_threads), 0);
  return result == CUDA_SUCCESS ? static_cast<unsigned>(resident) * multiprocessors : 0;
}

}  // namespace

ParentKernel::ParentKernel(std::shared_ptr<const LoadedImage> image, const jit::Variant& variant)
    : image_(std::move(image)),
      variant_(variant),
      pool_bytes_(image_->pool_bytes.contains(variant.parent) ? image_->pool_bytes.at(variant.parent)
                                                              : kDefaultPoolBytes) {}

CUkernel ParentKernel::kernel(const std::string& kernel_name) const {
  CUkernel found = nullptr;
  if (!image_->library) return nullptr;
  return driver()->library_get_kernel(&found, image_->library, kernel_name.c_str()) == CUDA_SUCCESS ? found
                                                                                                    : nullptr;
}

CUfunction ParentKernel::function(const std::string& kernel_name) const {
  CUfunction found = nullptr;
  if (image_->library) {
    const CUkernel handle = kernel(kernel_name);
    if (!handle || driver()->kernel_get_function(&found, handle) != CUDA_SUCCESS) return nullptr;
    return found;
  }
  const CUresult result = driver()->module_get_function(&found, image_->module, kernel_name.c_str());
  return result == CUDA_SUCCESS ? found : nullptr;
}

MaybeReason ParentKernel::resolve(PreparedVariant& prepared, unsigned multiprocessors) const {
  prepared.parent = function(variant_.parent_variant);
  prepared.consumer = function(variant_.consumer);
  const CUfunction child = function(variant_.child);
  if (!prepared.parent || !prepared.consumer || !child) return &reasons::kMissingHandle;

  prepared.max_parent_threads = max_block_threads(prepared.parent);
  if (max_block_threads(child) < variant_.child_block_threads) return &reasons::kChildBlock;
  if (max_block_threads(prepared.consumer) < variant_.consumer_block_threads) {
    return &reasons::kConsumerBlock;
  }
  if (variant_.launcher == jit::Launcher::Device) return nullptr;
  prepared.consumer_grid = full_grid(prepared.consumer, variant_.consumer_block_threads, multiprocessors);
  return prepared.consumer_grid == 0 ? &reasons::kConsumerDoesNotFit : nullptr;
}

std::shared_ptr<const PreparedVariant> ParentKernel::find_prepared(uint64_t context_id) const {
  for (const auto& known : prepared_) {
    if (known->context_id == context_id) return known;
  }
  return nullptr;
}

std::shared_ptr<const PreparedVariant> ParentKernel::prepared(uint64_t context_id) const {
  const std::lock_guard lock(mutex_);
  return find_prepared(context_id);
}

std::shared_ptr<const PreparedVariant> ParentKernel::prepare(LaunchContext& launch) {
  const uint64_t context_id = launch.context().id;
  const std::lock_guard lock(mutex_);
  if (auto known = find_prepared(context_id)) return known;
  const RelaxedCapture relaxed;  // with lazy loading, looking a function up may allocate
  auto made = std::make_shared<PreparedVariant>();
  made->context_id = context_id;
  made->unusable = resolve(*made, launch.context().multiprocessors);
  std::string why = made->unusable ? made->unusable->name : "";
  if (!made->unusable && variant_.launcher == jit::Launcher::Host) {
    const CUresult result = launch_consumer(*made, variant_, launch.queue(), launch.stream(), nullptr);
    if (result != CUDA_SUCCESS) {
      made->unusable = &reasons::kConsumerDoesNotLaunch;
      why = std::string(made->unusable->name) + " (" + error_name(result) + ")";
    }
  }
  prepared_.push_back(made);
  if (made->unusable) {
    log().warn("{}: launched unchanged in this context: {}", demangle(variant_.parent), why);
  } else if (variant_.launcher == jit::Launcher::Device) {
    log().debug("{}: launches {} itself", demangle(variant_.parent), variant_.consumer);
  } else {
    log().debug("{}: consumer {} runs as {} blocks of {} threads", demangle(variant_.parent),
                variant_.consumer, made->consumer_grid, variant_.consumer_block_threads);
  }
  return made;
}

std::shared_ptr<const PreparedVariant> ParentKernel::prepare_alone(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  if (auto known = find_prepared(context_id)) return known;
  const RelaxedCapture relaxed;  // with lazy loading, looking a function up may allocate
  auto made = std::make_shared<PreparedVariant>();
  made->context_id = context_id;
  made->parent = function(variant_.parent_variant);
  if (made->parent) {
    made->max_parent_threads = max_block_threads(made->parent);
  } else {
    made->unusable = &reasons::kMissingHandle;
    log().warn("{}: launched unchanged in this context: {}", demangle(variant_.parent), made->unusable->name);
  }
  prepared_.push_back(made);
  return made;
}

void ParentKernel::warn_once(const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(what).second) return;
  }
  log().warn("{}: {}", demangle(variant_.parent), what);
}

CUresult launch_consumer(const PreparedVariant& prepared, const jit::Variant& variant, CUdeviceptr queue,
                         CUstream stream, const CUlaunchAttribute* priority) {
  void* params[] = {&queue};
  if (!priority) {
    return driver()->launch_kernel(prepared.consumer, prepared.consumer_grid, 1, 1,
                                   variant.consumer_block_threads, 1, 1, 0, stream, params, nullptr);
  }
  CUlaunchAttribute attribute = *priority;
  CUlaunchConfig config{};
  config.gridDimX = prepared.consumer_grid;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = variant.consumer_block_threads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return driver()->launch_kernel_ex(&config, prepared.consumer, params, nullptr);
}

}  // namespace klap::runtime
