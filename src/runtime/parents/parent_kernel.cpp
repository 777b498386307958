#include "runtime/parents/parent_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/context_errors.h"
#include "runtime/driver.h"
#include "runtime/parents/frame_memory.h"
#include "runtime/parents/guard_profiles.h"
#include "runtime/process.h"
#include "runtime/stats.h"
#include "support/boundary.h"
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

// The most dynamic shared memory that a block of the kernel may have.
unsigned shared_limit(CUfunction function) {
  int bytes = 0;
  const CUresult result =
      driver()->func_get_attribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
  return result == CUDA_SUCCESS ? static_cast<unsigned>(bytes) : 0;
}

// Has room made for that much. False if the device does not have it.
bool allow_shared(CUfunction function, unsigned bytes) {
  if (bytes <= shared_limit(function)) return true;
  return driver()->func_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      static_cast<int>(bytes)) == CUDA_SUCCESS;
}

// Blocks of the consumer that fill the device: more would only wait, fewer would leave it partly idle.
unsigned full_grid(const PreparedVariant::Consumer& consumer, const jit::ChildQueue& queue,
                   unsigned multiprocessors) {
  int resident = 0;
  const CUresult result = driver()->occupancy(&resident, consumer.function,
                                              static_cast<int>(consumer.threads), queue.child_shared_bytes);
  return result == CUDA_SUCCESS ? static_cast<unsigned>(resident) * multiprocessors : 0;
}

void log_prepared(const jit::Variant& variant, const PreparedVariant& prepared) {
  if (variant.promoted) {
    log().debug("{}: its chain ({}) runs as {} blocks at a time", demangle(variant.parent),
                variant.promoted->mode, prepared.chain_blocks);
  }
  if (variant.is_fused()) {
    log().debug("{}: runs children in its own kernel", demangle(variant.parent));
    return;
  }
  for (size_t i = 0; i < variant.queues.size(); ++i) {
    const jit::ChildQueue& queue = variant.queues[i];
    if (variant.launcher == jit::Launcher::Device) {
      log().debug("{}: launches {} itself", demangle(variant.parent), queue.consumer);
    } else {
      log().debug("{}: consumer {} runs as {} blocks of {} threads{}", demangle(variant.parent),
                  queue.consumer, prepared.consumers[i].grid, prepared.consumers[i].threads,
                  prepared.dependent ? ", launched before the parent is complete" : "");
    }
  }
}

// The settings with which all consumers of a variant are launched.
struct ConsumerLaunch {
  CUstream stream = nullptr;
  std::span<const CUlaunchAttribute> attributes;  // of the program's launch
  bool dependent = false;
  DecidingBlock block{};  // the second parameter, of consumers that take it
};

uint64_t threads_of(const jit::FollowingBlock& kernel, const DecidingBlock& block) {
  uint64_t threads = 1;
  for (size_t axis = 0; axis < block.size(); ++axis)
    threads *= kernel.block.at(axis) == 0 ? block.at(axis) : kernel.block.at(axis);
  return threads;
}

uint64_t in_full_warps(uint64_t threads) {
  constexpr uint64_t kWarp = 32;
  return (threads + kWarp - 1) / kWarp * kWarp;
}

// Threads of the consumer's blocks, which are full warps; 0 if the kernels cannot all run in one block.
unsigned threads_for(const std::vector<jit::FollowingBlock>& kernels, const DecidingBlock& block) {
  uint64_t most = 0;
  for (const jit::FollowingBlock& kernel : kernels) most = std::max(most, threads_of(kernel, block));
  most = in_full_warps(most);
  const bool runs_all = std::ranges::all_of(kernels, [&](const jit::FollowingBlock& kernel) {
    const uint64_t threads = threads_of(kernel, block);
    return !(kernel.fills && threads != most) && !(kernel.full_warps && threads != in_full_warps(threads));
  });
  return runs_all ? static_cast<unsigned>(most) : 0;
}

// Threads of the consumer's blocks if its kernels' blocks are bounded; full warps.
unsigned threads_for(const std::vector<jit::ThreadBound>& bounds, const DecidingBlock& block, unsigned most) {
  uint64_t threads = 1;
  for (const jit::ThreadBound& bound : bounds) {
    uint64_t own = 1;
    for (size_t axis = 0; axis < block.size(); ++axis)
      own *= std::max(bound.block.at(axis), bound.or_parents.at(axis) ? block.at(axis) : 0);
    threads = std::max(threads, std::min<uint64_t>(own, bound.threads));
  }
  return std::min(static_cast<unsigned>(in_full_warps(threads)), most);
}

CUresult launch_consumer(const PreparedVariant::Consumer& consumer, const jit::ChildQueue& described,
                         CUdeviceptr queue, const ConsumerLaunch& how) {
  const unsigned block_threads = consumer.threads;
  DecidingBlock block = how.block;
  void* params[] = {&queue, block.data()};  // a kernel reads as many as it has
  std::array<CUlaunchAttribute, kMostConsumerAttributes + 1> attributes{};
  std::ranges::copy(how.attributes, attributes.begin());
  auto count = static_cast<unsigned>(how.attributes.size());
  if (how.dependent) {
    attributes.at(count).id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes.at(count++).value.programmaticStreamSerializationAllowed = 1;
  }
  if (count == 0) {
    return driver()->launch_kernel(consumer.function, consumer.grid, 1, 1, block_threads, 1, 1,
                                   described.child_shared_bytes, how.stream, params, nullptr);
  }
  CUlaunchConfig config{};
  config.gridDimX = consumer.grid;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = block_threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = described.child_shared_bytes;
  config.hStream = how.stream;
  config.attrs = attributes.data();
  config.numAttrs = count;
  return driver()->launch_kernel_ex(&config, consumer.function, params, nullptr);
}

// Each pointer once, and each distance from it.
std::vector<ParentKernel::Place> places_of(const jit::Variant& variant) {
  std::set<ParentKernel::Place> places;
  for (const auto& pair : variant.apart) {
    for (const jit::HostMemory* const memory : {&pair.first, &pair.second}) {
      if (!memory->variable.empty()) continue;
      places.insert({memory->offset, {}});
      for (const jit::Distance& distance : memory->distances) places.insert({memory->offset, distance});
    }
  }
  return {places.begin(), places.end()};
}

// How the parent's launches are replaced, for the statistics.
std::string engine_of(const jit::Variant& variant) {
  if (variant.promoted) return "chain " + variant.promoted->mode;
  const bool has_work_queue = !variant.queues.empty() && variant.queues.front().is_work_queue;
  if (variant.is_fused()) return "aggregation in the parent's kernel";
  const std::string engine = !has_work_queue             ? "aggregation"
                             : variant.kept_records != 0 ? "executor"
                                                         : "work queue";
  return fmt::format("{} at {} by the {}", engine, to_string(variant.granularity),
                     to_string(variant.launcher));
}

// A name in the tables of machine code has NULs on both sides. A search for the first of these would stop at
// every NUL of the code: that took most of the time of a load.
bool has_name(std::string_view cubin, std::string_view name) {
  for (size_t at = cubin.find(name); at != std::string_view::npos; at = cubin.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (at != 0 && cubin[at - 1] == '\0' && end < cubin.size() && cubin[end] == '\0') return true;
  }
  return false;
}

}  // namespace

// The names of functions stand in a table of strings. cudaMalloc() of the device runtime calls malloc().
bool uses_sized_memory(std::string_view cubin) {
  constexpr std::array kNames = {"malloc", "__cuda_syscall_aligned_malloc", "vprintf"};
  return std::ranges::any_of(kNames, [cubin](const char* name) { return has_name(cubin, name); });
}

ParentKernel::ParentKernel(std::shared_ptr<const LoadedImage> image, const jit::Variant& variant,
                           std::shared_ptr<ParentKernel> otherwise)
    : image_(std::move(image)),
      variant_(variant),
      otherwise_(std::move(otherwise)),
      pool_bytes_(image_->pool_bytes.contains(variant.parent) ? image_->pool_bytes.at(variant.parent)
                                                              : kDefaultPoolBytes),
      chain_(variant.promoted ? ChainRings::number_of(variant) : 0),
      range_name_(config().profiler_ranges
                      ? fmt::format("{}: {}", demangle(variant.parent), engine_of(variant))
                      : ""),
      places_apart_(places_of(variant)),
      redirections_(variant.is_fused() ? Stats::instance().fused_launches(variant.parent)
                                       : Stats::instance().redirections(variant.parent)),
      in_order_(Stats::instance().ordered_launches(variant.parent)),
      guard_(make_guard()),
      forms_(otherwise_ != nullptr && otherwise_->variant().in_blocks
                 ? std::make_unique<ChildForms>(variant, otherwise_->variant())
                 : nullptr),
      few_children_(fused() != nullptr && fused()->variant().where_few
                        ? std::make_unique<FewChildren>(variant)
                        : nullptr) {
  Stats::instance().engine_seen(variant.parent, engine_of(variant));
}

// Settings that change no code but times are part of the name by which profiles know the module. Without
// CUDA's device runtime the original cannot make its launches.
std::unique_ptr<LaunchGuard> ParentKernel::make_guard() const {
  const settings::GuardMode mode = config().guard;
  const bool is_guarded =
      mode != settings::GuardMode::Off && mode != settings::GuardMode::Original && config().device_runtime;
  if (!variant_.fixed_launches || !is_guarded) return nullptr;
  if (image_->key.empty() || !GuardProfiles::instance().are_kept())
    return std::make_unique<LaunchGuard>(variant_);
  std::string module = fmt::format("{}\n{} bytes a queue, {} in all, dependent {}, read back {}\n",
                                   image_->key, pool_bytes_, config().total_bytes(),
                                   !image_->no_dependent_launch.contains(variant_.parent) && !config().timing,
                                   image_->readback.contains(variant_.parent));
  for (size_t i = 0; i < variant_.queues.size(); ++i)
    module += fmt::format("1/{} of the device\n", concurrency(i));
  return std::make_unique<LaunchGuard>(variant_, std::move(module));
}

ParentKernel* ParentKernel::fused() const {
  for (ParentKernel* other = otherwise_.get(); other != nullptr && other->variant().is_another_form();
       other = other->otherwise().get()) {
    if (other->variant().is_fused()) return other;
  }
  return nullptr;
}

CUkernel ParentKernel::kernel(const std::string& kernel_name) const {
  CUkernel found = nullptr;
  if (!image_->code_library()) return nullptr;
  return driver()->library_get_kernel(&found, image_->code_library(), kernel_name.c_str()) == CUDA_SUCCESS
             ? found
             : nullptr;
}

CUfunction ParentKernel::function(const std::string& kernel_name) const {
  CUfunction found = nullptr;
  if (image_->code_library()) {
    const CUkernel handle = kernel(kernel_name);
    if (!handle || driver()->kernel_get_function(&found, handle) != CUDA_SUCCESS) return nullptr;
    return found;
  }
  const CUresult result = driver()->module_get_function(&found, image_->code_module(), kernel_name.c_str());
  return result == CUDA_SUCCESS ? found : nullptr;
}

std::pair<CUdeviceptr, size_t> ParentKernel::variable(const std::string& variable_name) const {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult result =
      image_->code_library()
          ? driver()->library_get_global(&address, &bytes, image_->code_library(), variable_name.c_str())
          : driver()->module_get_global(&address, &bytes, image_->code_module(), variable_name.c_str());
  return result == CUDA_SUCCESS ? std::pair(address, bytes) : std::pair(CUdeviceptr{0}, size_t{0});
}

bool ParentKernel::load_kernels(uint64_t context_id) {
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_in_.insert(context_id).second) return false;
  }
  if (!image_->uses_sized_memory) load_all_kernels();
  return true;
}

void ParentKernel::load_kernels_for_launch() {
  unsigned long long context_id = 0;
  if (!image_->uses_sized_memory || driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS) return;
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_for_launch_in_.insert(context_id).second) return;
  }
  if (variant_.stops) {
    if (const std::string heap = widen_heap(context_id); !heap.empty()) info_once("heap", heap);
  }
  load_all_kernels();
}

void ParentKernel::load_all_kernels() const {
  // The original is loaded, too: the program's first launch may run the variant, and a later one the
  // original.
  std::set<std::string> names = {variant_.parent, variant_.parent_variant};
  for (const jit::ChildQueue& queue : variant_.queues) {
    if (!variant_.is_fused()) names.insert(queue.consumer);
    names.insert(queue.child);
    for (const jit::ChildKernel& other : queue.others) names.insert(other.name);
    for (const jit::FollowingBlock& following : queue.following) names.insert(following.kernel);
  }
  const RelaxedCapture relaxed;
  for (const std::string& kernel_name : names) {
    const CUfunction found = function(kernel_name);
    if (!found) continue;  // prepare() says so where it matters
    // Asking for an attribute loads the function too.
    if (!driver()->func_load || driver()->func_load(found) != CUDA_SUCCESS) (void)max_block_threads(found);
  }
}

std::vector<uint64_t> ParentKernel::first_queues() const {
  std::vector<uint64_t> sizes;
  if (variant_.promoted || variant_.buffer != jit::Buffer::Pool) return sizes;
  for (const jit::ChildQueue& queue : variant_.queues) {
    if (!queue.is_work_queue)
      sizes.push_back(QueueShape::first(queue.record_bytes, variant_.group_blocks != 0).bytes());
  }
  return sizes;
}

MaybeReason ParentKernel::resolve(PreparedVariant& prepared, unsigned multiprocessors) const {
  prepared.parent = function(variant_.parent_variant);
  if (!prepared.parent) return &reasons::kMissingHandle;
  prepared.max_parent_threads = max_block_threads(prepared.parent);
  if (variant_.promoted) return resolve_chain(prepared, multiprocessors);
  for (const jit::ChildQueue& queue : variant_.queues) {
    if (const MaybeReason reason = resolve_consumer(prepared, queue, multiprocessors)) return reason;
  }
  return nullptr;
}

// Blocks of a chain take links in turn, and the block whose link is next always runs. So any number is right.
// More blocks than are resident would only wait for links that are done by the time they start.
MaybeReason ParentKernel::resolve_chain(PreparedVariant& prepared, unsigned multiprocessors) const {
  // If nothing overlaps, a few blocks hide the time that each needs to get ready for its next link.
  constexpr unsigned kBlocksWithoutOverlap = 8;
  // If blocks launch each other, each begins a launch's time, some microseconds, behind the one before. More
  // blocks would run side by side only with links that take longer than most.
  constexpr unsigned kLaunchedBlocks = 64;
  const jit::PromotedChain& chain = *variant_.promoted;
  const uint32_t threads = chain.block[0] * chain.block[1] * chain.block[2];
  if (prepared.max_parent_threads < threads) return &reasons::kParentBlock;
  int resident = 0;
  const CUresult result =
      driver()->occupancy(&resident, prepared.parent, static_cast<int>(threads), chain.shared_bytes);
  const unsigned fitting = result == CUDA_SUCCESS ? static_cast<unsigned>(resident) * multiprocessors : 0;
  if (fitting == 0) return &reasons::kChainDoesNotFit;
  const auto asked = image_->chains.find(variant_.parent);
  const LoadedImage::ChainBlocks blocks =
      asked == image_->chains.end() ? LoadedImage::ChainBlocks() : asked->second;
  const unsigned most = chain.launches()     ? kLaunchedBlocks
                        : chain.mode == "PA" ? kBlocksWithoutOverlap
                                             : fitting;
  const unsigned enough = std::min(most, fitting);
  prepared.chain_blocks = blocks.pool != 0 ? blocks.pool : std::max(1u, enough / blocks.concurrency);
  return nullptr;
}

MaybeReason ParentKernel::resolve_consumer(PreparedVariant& prepared, const jit::ChildQueue& queue,
                                           unsigned multiprocessors) const {
  PreparedVariant::Consumer& consumer = prepared.consumers.emplace_back();
  const CUfunction child = function(queue.child);
  if (!child) return &reasons::kMissingHandle;
  if (max_block_threads(child) < queue.child_block_threads) return &reasons::kChildBlock;
  if (variant_.is_fused()) return add_shared_limits(prepared, queue);
  consumer.function = function(queue.consumer);
  if (!consumer.function) return &reasons::kMissingHandle;
  consumer.threads = queue.consumer_block_threads;
  for (const jit::ChildKernel& other : queue.others) {
    const CUfunction found = function(other.name);
    if (!found) return &reasons::kMissingHandle;
    if (max_block_threads(found) < other.block_threads) return &reasons::kChildBlock;
  }
  if (const MaybeReason reason = resolve_following(prepared, queue)) return reason;
  if (!queue.bounds.empty())
    consumer.threads = threads_for(queue.bounds, prepared.block, queue.consumer_block_threads);
  if (max_block_threads(consumer.function) < consumer.threads) return &reasons::kConsumerBlock;
  if (const MaybeReason reason = add_shared_limits(prepared, queue)) return reason;
  // Without a worklist the parent launches exactly the blocks of the children.
  if (variant_.launcher == jit::Launcher::Device && !queue.is_work_queue) return nullptr;
  if (!allow_shared(consumer.function, queue.child_shared_bytes)) return &reasons::kConsumerDoesNotFit;
  consumer.grid = full_grid(consumer, queue, multiprocessors);
  if (consumer.grid == 0) return &reasons::kConsumerDoesNotFit;
  if (variant_.launcher == jit::Launcher::Device) return nullptr;
  consumer.grid = std::max(1u, consumer.grid / concurrency(prepared.consumers.size() - 1));
  return nullptr;
}

MaybeReason ParentKernel::add_shared_limits(PreparedVariant& prepared, const jit::ChildQueue& queue) const {
  for (const jit::SharedLimit& limit : queue.shared_limits) {
    const CUfunction found = function(limit.kernel);
    if (!found) return &reasons::kMissingHandle;
    prepared.shared_limits.push_back({found, limit.bytes, limit.is_limit});
  }
  return nullptr;
}

// Resolves the consumer's threads if its kernels' blocks are like the parent's.
MaybeReason ParentKernel::resolve_following(PreparedVariant& prepared, const jit::ChildQueue& queue) const {
  if (queue.following.empty()) return nullptr;
  for (const jit::FollowingBlock& kernel : queue.following) {
    const CUfunction found = function(kernel.kernel);
    if (!found) return &reasons::kMissingHandle;
    if (max_block_threads(found) < threads_of(kernel, prepared.block)) return &reasons::kChildBlock;
  }
  PreparedVariant::Consumer& consumer = prepared.consumers.back();
  consumer.threads = threads_for(queue.following, prepared.block);
  return consumer.threads == 0 ? &reasons::kNotTheConsumersBlock : nullptr;
}

unsigned ParentKernel::concurrency(size_t queue) const {
  const auto found = image_->concurrency.find(variant_.parent);
  return found == image_->concurrency.end() ? 1 : found->second[queue];
}

std::shared_ptr<const PreparedVariant> ParentKernel::find_prepared(uint64_t context_id,
                                                                   const DecidingBlock& block) const {
  for (const auto& known : prepared_) {
    if (known->context_id == context_id && known->block == block) return known;
  }
  return nullptr;
}

void ParentKernel::end_context(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(prepared_, [&](const auto& known) { return known->context_id == context_id; });
  loaded_in_.erase(context_id);
  loaded_for_launch_in_.erase(context_id);
}

DecidingBlock ParentKernel::deciding(const unsigned (&block)[3]) const {
  const auto depends_on_it = [](const jit::ChildQueue& queue) {
    return !queue.following.empty() || !queue.bounds.empty();
  };
  if (std::ranges::none_of(variant_.queues, depends_on_it)) return {};
  return {block[0], block[1], block[2]};
}

std::shared_ptr<const PreparedVariant> ParentKernel::prepared(uint64_t context_id,
                                                              const DecidingBlock& block) const {
  const std::lock_guard lock(mutex_);
  return find_prepared(context_id, block);
}

std::shared_ptr<const PreparedVariant> ParentKernel::prepare(LaunchContext& launch,
                                                             const DecidingBlock& block) {
  const uint64_t context_id = launch.context().id;
  const std::lock_guard lock(mutex_);
  if (auto known = find_prepared(context_id, block)) return known;
  const RelaxedCapture relaxed;  // with lazy loading, looking a function up may allocate
  auto made = std::make_shared<PreparedVariant>();
  made->context_id = context_id;
  made->block = block;
  made->unusable = resolve(*made, launch.context().multiprocessors);
  std::string why =
      made->unusable ? fmt::format("{} ({})", made->unusable->name, made->unusable->meaning) : "";
  if (!made->unusable && variant_.launcher == jit::Launcher::Host && !variant_.is_fused()) {
    const CUresult result = launch_consumers(*made, variant_, launch, {});
    if (result != CUDA_SUCCESS) {
      made->unusable = is_of_context(result) ? &reasons::kContextFailed : &reasons::kConsumerDoesNotLaunch;
      why = fmt::format("{} ({})", made->unusable->name, error_name(result));
    } else if (may_be_dependent()) {
      try_dependent(*made, launch);
    }
  }
  if (!made->unusable && variant_.stops) count_frames(*this, launch);
  prepared_.push_back(made);
  if (made->unusable == &reasons::kContextFailed) {
    log().info("{}: launched unchanged in this context: {}", demangle(variant_.parent), why);
  } else if (made->unusable) {
    log().warn("{}: launched unchanged in this context{}: {}", demangle(variant_.parent),
               block == DecidingBlock{} ? "" : fmt::format(", in blocks of {}", fmt::join(block, "x")), why);
  } else {
    log_prepared(variant_, *made);
  }
  return made;
}

std::shared_ptr<const PreparedVariant> ParentKernel::prepare_alone(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  if (auto known = find_prepared(context_id, {})) return known;
  const RelaxedCapture relaxed;  // with lazy loading, looking a function up may allocate
  auto made = std::make_shared<PreparedVariant>();
  made->context_id = context_id;
  made->parent = function(variant_.parent_variant);
  if (made->parent) {
    made->max_parent_threads = max_block_threads(made->parent);
    for (const jit::SharedLimit& limit : variant_.shared_limits)
      made->shared_limits.push_back({function(limit.kernel), limit.bytes, limit.is_limit});
  } else {
    made->unusable = &reasons::kMissingHandle;
    log().warn("{}: launched unchanged in this context: {}", demangle(variant_.parent), made->unusable->name);
  }
  prepared_.push_back(made);
  return made;
}

// The program may change its kernels' attributes between launches, so the driver is asked each time.
MaybeReason ParentKernel::check_block(const PreparedVariant& prepared, uint64_t threads,
                                      unsigned shared_bytes) const {
  if (threads > prepared.max_parent_threads) return &reasons::kParentBlock;
  for (const PreparedVariant::SharedLimit& limit : prepared.shared_limits) {
    const unsigned allowed = shared_limit(limit.kernel);
    if (allowed < limit.bytes || (limit.is_limit && allowed != limit.bytes)) return &reasons::kSharedLimit;
  }
  if (!variant_.parent_waits) return nullptr;
  const CUfunction original = function(variant_.parent);
  if (!original) return &reasons::kMissingHandle;
  int before = 0, now = 0;
  const auto block = static_cast<int>(threads);
  const bool known = driver()->occupancy(&before, original, block, shared_bytes) == CUDA_SUCCESS &&
                     driver()->occupancy(&now, prepared.parent, block, shared_bytes) == CUDA_SUCCESS;
  return known && now >= before ? nullptr : &reasons::kFewerBlocksResident;
}

bool ParentKernel::reads_back() const {
  return image_->readback.contains(variant_.parent) && can_read_back(variant_);
}

// Timed launches are never dependent: an event stands between parent and consumer, and the two parts that it
// separates would overlap.
bool ParentKernel::may_be_dependent() const {
  return variant_.consumers_await && !image_->no_dependent_launch.contains(variant_.parent) &&
         !reads_back() && !config().timing;
}

// Launches the consumers once more on the empty queues, behind the consumers that have just been launched
// there. They must not depend on work that the program has put into the stream before.
void ParentKernel::try_dependent(PreparedVariant& prepared, const LaunchContext& launch) const {
  const ConsumerLaunch how{launch.stream(), {}, true, prepared.block};
  for (size_t i = 0; i < variant_.queues.size(); ++i) {
    const CUresult result =
        launch_consumer(prepared.consumers[i], variant_.queues[i], queue_of(variant_, i, launch), how);
    if (result == CUDA_SUCCESS) continue;
    log().info("{}: its consumers are launched without programmatic dependent launch, which is refused ({})",
               demangle(variant_.parent), error_name(result));
    return;
  }
  prepared.dependent = true;
}

bool ParentKernel::is_new(const std::string& what) {
  const std::lock_guard lock(mutex_);
  return said_.insert(what).second;
}

void ParentKernel::warn_once(const std::string& what) {
  if (is_new(what)) log().warn("{}: {}", demangle(variant_.parent), what);
}

void ParentKernel::info_once(const std::string& about, const std::string& what) {
  const auto level = is_new(about) ? spdlog::level::info : spdlog::level::debug;
  if (log().should_log(level)) log().log(level, "{}: {}", demangle(variant_.parent), what);
}

bool can_read_back(const jit::Variant& variant) {
  return variant.launcher == jit::Launcher::Host && variant.granularity == jit::Granularity::Grid &&
         !variant.queues.empty() && !variant.queues.front().is_work_queue;
}

CUresult launch_consumers(const PreparedVariant& prepared, const jit::Variant& variant, LaunchContext& launch,
                          std::span<const CUlaunchAttribute> attributes) {
  ConsumerLaunch how{launch.stream(), attributes, prepared.dependent, prepared.block};
  for (size_t i = 0; i < variant.queues.size(); ++i) {
    if (variant.is_fused()) launch.take_turns(i);
    if (prepared.consumers[i].grid == 0) continue;
    const CUdeviceptr queue = queue_of(variant, i, launch);
    CUresult result = launch_consumer(prepared.consumers[i], variant.queues[i], queue, how);
    if (result != CUDA_SUCCESS && how.dependent) {
      // The driver accepted it before, but there are records to be run now.
      try_or_report("cuLaunchKernelEx", "not logged", [&] {
        log().info("{}: its consumer is launched without programmatic dependent launch ({})",
                   demangle(variant.parent), error_name(result));
      });
      how.dependent = false;
      result = launch_consumer(prepared.consumers[i], variant.queues[i], queue, how);
    }
    // A launch that fails in passing, for lack of memory for example, must not cost the parent its children.
    if (result != CUDA_SUCCESS)
      result = launch_consumer(prepared.consumers[i], variant.queues[i], queue, how);
    if (result != CUDA_SUCCESS) return result;
    if (variant.queues[i].double_buffered) launch.take_turns(i);
  }
  return CUDA_SUCCESS;
}

}  // namespace klap::runtime
