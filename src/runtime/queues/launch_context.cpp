#include "runtime/queues/launch_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/context_ends.h"
#include "runtime/driver.h"
#include "runtime/process.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

constexpr uint64_t kFirstCapacity = QueueShape::kFirstCapacity;
constexpr uint64_t kFirstGroups = QueueShape::kFirstGroups;

// Long enough for almost every kernel. A kernel that waits for this thread would never end.
constexpr std::chrono::seconds kPatience(30);

unsigned multiprocessors_of(CUdevice device) {
  int count = 0;
  const CUresult result =
      driver()->device_get_attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  return result == CUDA_SUCCESS ? static_cast<unsigned>(count) : 0;
}

// A part of a device (MIG) has its name, and fewer multiprocessors.
std::string model_of(CUdevice device, unsigned multiprocessors) {
  std::array<char, 256> name{};
  int version = 0;
  if (driver()->device_get_name(name.data(), static_cast<int>(name.size()) - 1, device) != CUDA_SUCCESS ||
      driver()->driver_get_version(&version) != CUDA_SUCCESS) {
    return "";
  }
  return fmt::format("{}, {} multiprocessors, driver {}", name.data(), multiprocessors, version);
}

// The green context in which the stream was made; null if there is none.
CUgreenCtx green_context_of(CUstream stream) {
  const Driver& cuda = *driver();
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return nullptr;
  CUgreenCtx green = nullptr;
  const bool known = cuda.stream_get_green_ctx && cuda.stream_get_green_ctx(stream, &green) == CUDA_SUCCESS;
  return known ? green : nullptr;
}

// True if that is the primary context of the stream's device. Green contexts are parts of it: they share its
// memory, and its kernels run in their streams.
bool is_of_green_stream(CUcontext context, CUstream stream) {
  const Driver& cuda = *driver();
  CUdevice of_stream = -1, of_context = -1;
  if (!cuda.stream_get_device || cuda.stream_get_device(stream, &of_stream) != CUDA_SUCCESS ||
      cuda.ctx_get_device(&of_context) != CUDA_SUCCESS || of_stream != of_context)
    return false;
  const std::optional<uint64_t> primary = id_of_primary_context(of_stream);
  return primary && primary == id_of_context(context);
}

// A created stream can be used while another context is current; the queue would then be allocated in the
// wrong one. Such streams are left alone.
MaybeReason wrong_context(CUstream stream, bool is_green) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return nullptr;
  CUcontext of_stream = nullptr, current = nullptr;
  const Driver& cuda = *driver();
  if (cuda.ctx_get_current(&current) != CUDA_SUCCESS) return &reasons::kStreamOfAnotherContext;
  if (cuda.stream_get_ctx(stream, &of_stream) == CUDA_SUCCESS && of_stream == current) return nullptr;
  return is_green && is_of_green_stream(current, stream) ? nullptr : &reasons::kStreamOfAnotherContext;
}

bool is_blocking_stream(CUstream stream) {
  const RelaxedCapture relaxed;
  unsigned flags = CU_STREAM_DEFAULT;
  if (driver()->stream_get_flags) (void)driver()->stream_get_flags(stream, &flags);
  return (flags & CU_STREAM_NON_BLOCKING) == 0;
}

}  // namespace

CudaContext::CudaContext(uint64_t context_id) : id(context_id), pool(config().total_bytes()) {
  const RelaxedCapture relaxed;
  if (driver()->ctx_get_device(&device) != CUDA_SUCCESS) return;
  multiprocessors = multiprocessors_of(device);
  if (config().guard == settings::GuardMode::On) model = model_of(device, multiprocessors);
  if (!model.empty()) Stats::instance().device_seen(model);
}

uint64_t CudaContext::give_back() {
  launch_pool.trim();
  return pool.give_back(kPatience);
}

void CudaContext::replace_lazy(const std::vector<uint64_t>& sizes) {
  pool.await_free(kPatience);
  pool.replace_lazy(sizes);
}

LaunchContext::LaunchContext(std::shared_ptr<CudaContext> context, CUstream stream, BlockOf of)
    : context_(std::move(context)),
      stream_(stream),
      of_(of),
      is_blocking_(is_blocking_stream(stream)),
      green_(green_context_of(stream)),
      unusable_(wrong_context(stream, green_ != nullptr)),
      pooled_memory_(context_->pool, stream, of),
      launch_memory_(context_->launch_pool, context_->pool, stream) {
  if (unusable_ == nullptr) report_ = context_->reports.take(stream);
}

LaunchContext::~LaunchContext() {
  if (of_ == BlockOf::Node && !context_->has_ended.load(std::memory_order_relaxed))
    try_or_report("cuGraphInstantiate", "queues are not given back", [&] { release_in_stream(); });
}

MaybeReason RecordQueue::make_room(QueueMemory& memory, CUstream stream, CUdeviceptr report,
                                   const QueueShape& exact, uint64_t pool_bytes) {
  // A queue that is large enough already does not excuse a launch from its own limit: whether it is
  // redirected must not depend on what ran before it.
  if (exact.bytes() > pool_bytes) return &reasons::kQueueOverPoolBytes;
  if (exact.capacity <= shape_.capacity && exact.record_bytes <= shape_.record_bytes &&
      exact.groups <= shape_.groups) {
    return nullptr;
  }
  const RelaxedCapture relaxed;
  if (memory.lasts()) {
    // A larger queue spares later work. If it would cost too much memory, the queue is cut to the size that
    // this launch needs.
    const QueueShape grown = grown_for(exact);
    if (grown.bytes() <= pool_bytes && !take_block(memory, grown)) return write_header(stream, report, grown);
  }
  const MaybeReason reason = take_block(memory, exact);
  return reason ? reason : write_header(stream, report, exact);
}

// Doubling keeps the number of reallocations logarithmic. A record size that suits all variants seen in this
// stream spares rewriting the header when they alternate.
QueueShape RecordQueue::grown_for(const QueueShape& exact) const {
  QueueShape grown = shape_;
  grown.record_bytes = std::max(shape_.record_bytes, exact.record_bytes);
  if (exact.capacity > shape_.capacity) {
    const uint64_t doubled = std::min<uint64_t>(2 * shape_.capacity, KLAP_MAX_RECORDS);
    grown.capacity = std::max({exact.capacity, doubled, kFirstCapacity});
  }
  if (exact.groups > shape_.groups) grown.groups = std::max({exact.groups, 2 * shape_.groups, kFirstGroups});
  return grown;
}

// Null on success.
MaybeReason RecordQueue::take_block(QueueMemory& memory, const QueueShape& shape) {
  if (shape.bytes() <= block_.bytes) return nullptr;
  MaybeReason why = nullptr;
  const Block block = memory.take(shape.bytes(), why);
  if (!block.address) return why;
  if (block_.address) memory.give_back(block_);
  block_ = block;
  return nullptr;
}

MaybeReason RecordQueue::write_header(CUstream stream, CUdeviceptr report, const QueueShape& shape) {
  const QueueShape::Heads heads = shape.heads(block_.address, report);
  shape_ = {};
  second_is_next_ = false;
  // The write goes through the stream, so that kernels already enqueued still see the old shape. No kernel
  // needs the counters at this point of the stream.
  if (driver()->memcpy_htod_async(block_.address, &heads, sizeof heads, stream) != CUDA_SUCCESS) {
    return &reasons::kQueueNotWritable;
  }
  // Records may have lain where the groups' counters are now.
  if (shape.groups != 0 && driver()->memset_d8_async(block_.address + QueueShape::groups_offset(), 0,
                                                     shape.groups_bytes(), stream) != CUDA_SUCCESS) {
    return &reasons::kQueueNotWritable;
  }
  shape_ = shape;
  return nullptr;
}

Block RecordQueue::take() {
  shape_ = {};
  return std::exchange(block_, {});
}

// A queue of another size than this launch's own would do only if its contents did not depend on earlier
// launches. So there is one for each pair of limit and record size, rounded up if parents alternate.
MaybeReason WorkQueue::make_room(QueueMemory& memory, CUstream stream, CUdeviceptr report,
                                 uint32_t record_bytes, uint64_t groups, uint64_t pool_bytes) {
  WorkQueueShape wanted = shape_within(record_bytes, groups, pool_bytes);
  if (wanted.records < std::max<uint64_t>(groups, 1)) return &reasons::kQueueOverPoolBytes;  // one for each
  had_many_groups_ = had_many_groups_ || groups > kMostLazyGroups;
  if (!had_many_groups_ && memory.is_lazy(lazy_.address != 0)) wanted = wanted.in_lazy_memory();
  const uint64_t heads = WorkQueueShape::heads_bytes(groups);
  if (wanted == shape_ && heads <= heads_.bytes) return nullptr;
  const RelaxedCapture relaxed;
  if (const MaybeReason reason = make_heads(memory, stream, heads, pool_bytes - wanted.bytes()))
    return reason;
  if (const MaybeReason reason = take_lazy_block(memory, wanted)) return reason;
  if (const MaybeReason reason = take_block(memory, wanted.ordinary_bytes())) return reason;
  if (wanted.is_lazy() && !wanted.has_front(block_.address, lazy_.address)) {
    log().debug("a queue has no records in ordinary memory: its lazy memory is too far away");
    memory.fetch_lazy(lazy_.address + wanted.records_at, WorkQueueShape::kFrontBytes);
  }
  return write_header(stream, report, wanted);
}

// Null on success. The shape becomes that of an ordinary queue if there is no lazy memory for it.
MaybeReason WorkQueue::take_lazy_block(QueueMemory& memory, WorkQueueShape& shape) {
  const LazyShape lazy = shape.is_lazy() ? shape.lazy_shape() : LazyShape{};
  if (lazy_.lazy_addresses == lazy.addresses) return nullptr;
  MaybeReason why = nullptr;
  const Block block = shape.is_lazy() ? memory.take_lazy(lazy, why) : Block{};
  if (why) return why;
  if (!block.address) shape.records_at = 0;
  if (lazy_.address) memory.give_back(lazy_);
  shape_ = {};  // the head says where it is
  lazy_ = block;
  return nullptr;
}

MaybeReason WorkQueue::take_block(QueueMemory& memory, uint64_t bytes) {
  if (bytes <= block_.bytes) return nullptr;
  MaybeReason why = nullptr;
  const Block block = memory.take(bytes, why);
  if (!block.address) return why;
  if (block_.address) memory.give_back(block_);
  block_ = block;
  return nullptr;
}

// Takes more heads than are asked for if there is room, as with other queues. All heads are empty between two
// parents.
MaybeReason WorkQueue::make_heads(QueueMemory& memory, CUstream stream, uint64_t bytes, uint64_t most_bytes) {
  if (bytes <= heads_.bytes) return nullptr;
  const uint64_t grown = std::max({bytes, 2 * heads_.bytes, WorkQueueShape::heads_bytes(kFirstGroups)});
  MaybeReason why = nullptr;
  Block block{};
  if (memory.lasts() && grown <= most_bytes) block = memory.take(grown, why);
  if (!block.address) block = memory.take(bytes, why);
  if (!block.address) return why;
  if (heads_.address) memory.give_back(heads_);
  heads_ = block;
  shape_ = {};  // the queue's own head says where they are
  return driver()->memset_d8_async(heads_.address, 0, heads_.bytes, stream) == CUDA_SUCCESS
             ? nullptr
             : &reasons::kQueueNotWritable;
}

MaybeReason WorkQueue::write_header(CUstream stream, CUdeviceptr report, const WorkQueueShape& shape) {
  const KlapWorkQueue header = shape.header(block_.address, lazy_.address, report, heads_.address);
  shape_ = {};
  const Driver& cuda = *driver();
  const bool are_items_zero =
      shape.is_lazy() || cuda.memset_d8_async(block_.address + shape.items_offset(), 0, shape.items_bytes(),
                                              stream) == CUDA_SUCCESS;
  if (!are_items_zero ||
      cuda.memcpy_htod_async(block_.address, &header, sizeof header, stream) != CUDA_SUCCESS) {
    return &reasons::kQueueNotWritable;
  }
  shape_ = shape;
  return nullptr;
}

Block WorkQueue::take() {
  shape_ = {};
  return std::exchange(block_, {});
}

Block WorkQueue::take_lazy() {
  shape_ = {};
  return std::exchange(lazy_, {});
}

Block WorkQueue::take_heads() {
  shape_ = {};
  return std::exchange(heads_, {});
}

std::vector<Block> Queues::take_blocks() {
  std::vector<Block> blocks = {work_queue.take(), work_queue.take_lazy(), work_queue.take_heads()};
  for (RecordQueue& queue : records) blocks.push_back(queue.take());
  std::erase_if(blocks, [](const Block& block) { return block.address == 0; });
  return blocks;
}

MaybeReason LaunchContext::make_chain_room(uint64_t number, uint32_t slot_bytes, uint64_t pool_bytes) {
  return rings_.make_room(pooled_memory_, stream_, report_.address, number, slot_bytes, pool_bytes);
}

ReportSlot LaunchContext::guard_report() {
  if (reports()) return report_;
  if (!guard_report_) guard_report_ = context_->reports.take_ready(stream_);
  return *guard_report_;
}

ReportSlot LaunchContext::count_report() {
  if (reports()) return report_;
  if (!count_report_) count_report_ = context_->reports.take_ready_in_host();
  return *count_report_;
}

QueueMemory& LaunchContext::begin_launch(jit::Buffer buffer) {
  end_launch();  // perhaps there was no room for a larger part of the same grid
  if (of_ == BlockOf::Node || buffer == jit::Buffer::Pool || context_->launch_pool.get() == nullptr)
    return pooled_memory_;
  current_ = &own_;
  return launch_memory_;
}

void LaunchContext::end_launch() {
  if (!has_own_queues()) return;
  // Each block is given back by itself, because there may be no memory for a list of them.
  const auto give_back = [this](const Block& block) {
    if (block.address != 0) launch_memory_.give_back(block);
  };
  give_back(own_.work_queue.take());
  give_back(own_.work_queue.take_heads());
  for (RecordQueue& queue : own_.records) give_back(queue.take());
  current_ = &kept_;
}

MaybeReason LaunchContext::make_work_queue_room(uint32_t record_bytes, uint64_t groups, uint64_t pool_bytes,
                                                jit::Buffer buffer) {
  QueueMemory& memory = begin_launch(buffer);
  return current_->work_queue.make_room(memory, stream_, report_.address, record_bytes, groups, pool_bytes);
}

MaybeReason LaunchContext::make_room(const QueueDemand& demand, uint64_t blocks, uint64_t pool_bytes) {
  QueueMemory& memory = begin_launch(demand.variant->buffer);
  std::vector<RecordQueue>& records = current_->records;
  const std::vector<jit::ChildQueue>& queues = demand.variant->queues;
  if (records.size() < queues.size()) records.resize(queues.size());
  for (size_t i = 0; i < queues.size(); ++i) {
    const QueueShape shape = demand.shape(queues[i], blocks);
    const MaybeReason reason = records[i].make_room(memory, stream_, report_.address, shape, pool_bytes);
    if (reason) return reason;
  }
  return nullptr;
}

void LaunchContext::record_use() {
  if (!last_use_) last_use_ = new_event();
  if (last_use_ && driver()->event_record(last_use_, stream_) != CUDA_SUCCESS)
    give_up(reasons::kEventNotRecorded);
}

std::vector<Block> LaunchContext::take_blocks() {
  work_queue_part_.reset();
  std::vector<Block> blocks = kept_.take_blocks();
  for (const Block& block : rings_.take()) {
    if (block.address != 0) blocks.push_back(block);
  }
  // A parent may have recorded children that no consumer has run.
  for (Block& block : blocks) block.is_spoilt = unusable_ != nullptr;
  if (const uint64_t reserved = launch_memory_.take_reserved()) blocks.push_back({0, reserved});
  return blocks;
}

void LaunchContext::release_in_stream() {
  std::vector<Block> blocks = take_blocks();
  if (!blocks.empty()) context_->pool.retire(std::move(blocks), stream_);
  if (unmarked_ != 0 && !is_idle() && context_->in_flight.mark(stream_, unmarked_)) set_unmarked(0);
  complete_unmarked();
  if (last_use_) driver()->event_destroy(last_use_);
  last_use_ = nullptr;
}

void LaunchContext::give_back_reports() {
  context_->reports.give_back(std::exchange(report_, {}));
  if (guard_report_) context_->reports.give_back(*guard_report_);
  guard_report_.reset();
}

void LaunchContext::release_after_last_use() {
  std::vector<Block> blocks = take_blocks();
  if (!blocks.empty() && last_use_ && !unusable_) context_->pool.retire(std::move(blocks), last_use_);
  last_use_ = nullptr;
  complete_unmarked();
}

void LaunchContext::forget() { complete_unmarked(); }

// Otherwise it is captured, or it is the default stream of another thread. Then an event that its thread has
// recorded there is all that can be asked about.
bool LaunchContext::is_callers(uint64_t stream_id) const {
  if (capture_state(stream_) != Capture::None) return false;
  // Only where it must be: to ask a stream for its id ends a capture that has begun meanwhile.
  if (stream_ != CU_STREAM_PER_THREAD) return true;
  unsigned long long own_id = 0;
  return driver()->stream_get_id(stream_, &own_id) == CUDA_SUCCESS && own_id == stream_id;
}

bool LaunchContext::is_idle() const {
  const RelaxedCapture relaxed;  // another stream may be captured, and to ask about one is forbidden then
  return capture_state(stream_) == Capture::None && driver()->stream_query(stream_) == CUDA_SUCCESS;
}

bool LaunchContext::may_add(uint64_t operations, bool may_wait) {
  InFlight& in_flight = context_->in_flight;
  if (operations == 0 || in_flight.has_room(operations)) return true;
  const auto has_room = [&] {
    settle();
    return in_flight.has_room(operations);
  };
  // An idle stream has nothing in front of them that waits.
  if (operations > InFlight::kMost)
    return is_idle() || (may_wait && in_flight.wait_until([this] { return is_idle(); }));
  return has_room() || (may_wait && in_flight.wait_until(has_room));
}

bool LaunchContext::set_unmarked(uint64_t operations) {
  return context_->in_flight.set_unmarked(std::exchange(unmarked_, operations), operations);
}

void LaunchContext::complete_unmarked() {
  context_->in_flight.complete(unmarked_);
  set_unmarked(0);
}

void LaunchContext::added(uint64_t operations) noexcept {
  if (operations == 0) return;
  context_->in_flight.add(operations);
  if (!set_unmarked(unmarked_ + operations)) return;
  try_or_report("cuLaunchKernel", "is marked later", [&] {
    if (context_->in_flight.mark(stream_, unmarked_)) set_unmarked(0);
  });
}

void LaunchContext::settle() {
  if (unmarked_ != 0 && is_idle()) complete_unmarked();
  context_->in_flight.settle();
}

void LaunchContext::give_back(uint64_t stream_id) {
  if (unusable_) return;
  if (!is_callers(stream_id)) {
    if (last_use_) release_after_last_use();
  } else {
    release_in_stream();
  }
}

LaunchContexts& LaunchContexts::instance() {
  static auto* const contexts = new LaunchContexts;
  return *contexts;
}

std::shared_ptr<CudaContext> LaunchContexts::cuda_context(uint64_t context_id) {
  auto& known = cuda_contexts_[context_id];
  if (!known) known = std::make_shared<CudaContext>(context_id);
  return known;
}

std::shared_ptr<CudaContext> LaunchContexts::in_context(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  return cuda_context(context_id);
}

void LaunchContexts::make_ready(uint64_t context_id, const std::vector<uint64_t>& queues,
                                const GuardReports& guards) {
  const std::shared_ptr<CudaContext> context = in_context(context_id);
  context->reports.make_ready(guards);
  context->pool.stock(queues);
}

std::shared_ptr<LaunchContext> LaunchContexts::get(uint64_t context_id, uint64_t stream_id, CUstream stream) {
  const Key key(context_id, stream_id);
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second;
  auto made = std::make_shared<LaunchContext>(cuda_context(context_id), stream);
  contexts_.emplace(key, made);
  count_.store(contexts_.size(), std::memory_order_relaxed);
  return made;
}

std::shared_ptr<LaunchContext> LaunchContexts::make_for_node(uint64_t context_id, CUstream stream) {
  const std::lock_guard lock(mutex_);
  any_nodes_.store(true, std::memory_order_relaxed);
  return std::make_shared<LaunchContext>(cuda_context(context_id), stream, BlockOf::Node);
}

bool LaunchContexts::note_graph(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  any_graphs_.store(true, std::memory_order_relaxed);
  return with_graphs_.insert(context_id).second;
}

bool LaunchContexts::has_graphs(uint64_t context_id) {
  if (!any_graphs_.load(std::memory_order_relaxed)) return false;
  const std::shared_lock lock(mutex_);
  return with_graphs_.contains(context_id);
}

std::vector<LaunchContexts::Stream> LaunchContexts::streams_of(uint64_t context_id) {
  std::vector<Stream> streams;
  const std::shared_lock lock(mutex_);
  for (const auto& [key, context] : contexts_) {
    if (key.first == context_id) streams.emplace_back(key.second, context);
  }
  return streams;
}

std::shared_ptr<CudaContext> LaunchContexts::known_context(uint64_t context_id) {
  const std::shared_lock lock(mutex_);
  const auto found = cuda_contexts_.find(context_id);
  return found == cuda_contexts_.end() ? nullptr : found->second;
}

void LaunchContexts::before_allocation(uint64_t context_id, uint64_t bytes) {
  const std::shared_ptr<CudaContext> known = known_context(context_id);
  if (!known || !known->pool.lazy().is_short_without(bytes)) return;
  log().debug("queues take all of their memory at once: the program takes {} bytes", bytes);
  known->pool.lazy().end();
  std::vector<uint64_t> sizes;
  for (const auto& [stream_id, context] : streams_of(context_id)) {
    // A stream that another thread is launching into moves with its next launch.
    const std::unique_lock lock(context->mutex, std::try_to_lock);
    if (!lock || context->lazy_bytes() == 0) continue;
    sizes.push_back(context->lazy_bytes());
    context->give_back(stream_id);
  }
  known->replace_lazy(sizes);
}

uint64_t LaunchContexts::give_back(uint64_t context_id) {
  const std::shared_ptr<CudaContext> known = known_context(context_id);
  if (!known) return 0;
  for (const auto& [stream_id, context] : streams_of(context_id)) {
    // Another thread may hold it while it waits in the driver. This thread would then wait for that thread.
    const std::unique_lock lock(context->mutex, std::try_to_lock);
    if (lock) context->give_back(stream_id);
  }
  return known->give_back();
}

std::shared_ptr<LaunchContext> LaunchContexts::remove(uint64_t context_id, uint64_t stream_id) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(Key(context_id, stream_id));
  if (found == contexts_.end()) return nullptr;
  auto taken = found->second;
  contexts_.erase(found);
  ended_.fetch_add(1, std::memory_order_relaxed);
  count_.store(contexts_.size(), std::memory_order_relaxed);
  return taken;
}

std::vector<std::shared_ptr<LaunchContext>> LaunchContexts::remove_all(const Wanted& wanted) {
  std::vector<std::shared_ptr<LaunchContext>> taken;
  const std::lock_guard lock(mutex_);
  std::erase_if(contexts_, [&](const auto& entry) {
    if (!wanted(entry.first.second, *entry.second)) return false;
    taken.push_back(entry.second);
    return true;
  });
  ended_.fetch_add(taken.size(), std::memory_order_relaxed);
  count_.store(contexts_.size(), std::memory_order_relaxed);
  return taken;
}

std::vector<std::shared_ptr<LaunchContext>> LaunchContexts::remove_stream(uint64_t stream_id) {
  return remove_all([&](uint64_t id, const LaunchContext&) { return id == stream_id; });
}

std::vector<std::shared_ptr<LaunchContext>> LaunchContexts::remove_green(CUgreenCtx green) {
  return remove_all([&](uint64_t, const LaunchContext& context) { return context.green() == green; });
}

void LaunchContexts::end_context(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  const size_t ended =
      std::erase_if(contexts_, [&](const auto& entry) { return entry.first.first == context_id; });
  if (const auto context = cuda_contexts_.find(context_id); context != cuda_contexts_.end()) {
    context->second->has_ended.store(true, std::memory_order_relaxed);
    cuda_contexts_.erase(context);
  }
  with_graphs_.erase(context_id);
  ended_.fetch_add(ended, std::memory_order_relaxed);
  count_.store(contexts_.size(), std::memory_order_relaxed);
}

void LaunchContexts::forget(CUstream stream) {
  const auto is_it = [&](uint64_t, const LaunchContext& context) { return context.stream() == stream; };
  for (const auto& context : remove_all(is_it)) {
    const std::lock_guard lock(context->mutex);
    context->forget();
  }
}

}  // namespace klap::runtime
