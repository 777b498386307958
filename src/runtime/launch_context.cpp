#include "runtime/launch_context.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "ptx-patterns/templates/queue.h"
#include "runtime/driver.h"
#include "runtime/process.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// The first queue of a stream: most parents are small, and this much (a few hundred KB) costs nothing.
constexpr uint64_t kFirstCapacity = 4096;

unsigned multiprocessors_of_current_device() {
  CUdevice device = 0;
  int count = 0;
  const Driver& cuda = *driver();
  if (cuda.ctx_get_device(&device) != CUDA_SUCCESS ||
      cuda.device_get_attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS) {
    return 0;
  }
  return static_cast<unsigned>(count);
}

// A page that kernels of the current context can write to, as device pointer; 0 if there is none.
CUdeviceptr map_report_page() {
  void* const page = new_report_page();
  if (!page) return 0;
  const Driver& cuda = *driver();
  CUdeviceptr address = 0;
  CUresult result = cuda.mem_host_register(page, report_page_bytes(), CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result == CUDA_SUCCESS) result = cuda.mem_host_get_device_pointer(&address, page, 0);
  if (result == CUDA_SUCCESS) return address;
  log().warn("children are not counted: the report page cannot be mapped ({})", error_name(result));
  return 0;
}

// A created stream can be used while another context is current; the queue would then be allocated in the
// wrong one. Such streams are left alone.
MaybeReason wrong_context(CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return nullptr;
  CUcontext of_stream = nullptr, current = nullptr;
  const Driver& cuda = *driver();
  if (cuda.stream_get_ctx(stream, &of_stream) != CUDA_SUCCESS ||
      cuda.ctx_get_current(&current) != CUDA_SUCCESS || of_stream != current) {
    return &reasons::kStreamOfAnotherContext;
  }
  return nullptr;
}

}  // namespace

CudaContext::CudaContext(uint64_t context_id) : id(context_id) {
  const RelaxedCapture relaxed;
  multiprocessors = multiprocessors_of_current_device();
  report = map_report_page();
}

LaunchContext::LaunchContext(std::shared_ptr<CudaContext> context, CUstream stream)
    : context_(std::move(context)), stream_(stream), unusable_(wrong_context(stream)) {
  if (context_->report == 0) return;
  // Streams beyond the page's slots share them: then children may go uncounted, never unrun.
  const size_t slot = context_->next_report_slot.fetch_add(1, std::memory_order_relaxed) % report_slots();
  report_ = context_->report + slot * KLAP_REPORT_WORDS * sizeof(uint64_t);
}

MaybeReason LaunchContext::make_room(uint64_t records, uint32_t record_bytes, uint64_t pool_bytes) {
  // A queue that is large enough already does not excuse a launch from its own limit: whether it is
  // redirected must not depend on what ran before it.
  const QueueShape exact{records, QueueShape::aligned_record(record_bytes)};
  if (exact.bytes() > pool_bytes) return &reasons::kQueueOverPoolBytes;
  if (records <= shape_.capacity && exact.record_bytes <= shape_.record_bytes) return nullptr;

  // Doubling keeps the number of reallocations logarithmic, and a record size that suits all variants seen in
  // this stream spares rewriting the header when they alternate. Both are comfort: where they would cost too
  // much memory, the queue is cut to what this launch needs.
  QueueShape grown = shape_;
  grown.record_bytes = std::max(shape_.record_bytes, exact.record_bytes);
  if (records > shape_.capacity) {
    const uint64_t doubled = std::min<uint64_t>(2 * shape_.capacity, KLAP_MAX_RECORDS);
    grown.capacity = std::max({records, doubled, kFirstCapacity});
  }
  const RelaxedCapture relaxed;
  if (grown.bytes() <= pool_bytes && take_block(grown)) return write_header(grown);
  if (take_block(exact)) return write_header(exact);
  return &reasons::kNoDeviceMemory;
}

bool LaunchContext::take_block(const QueueShape& shape) {
  if (shape.bytes() <= block_.bytes) return true;
  const Block block = context_->pool.take(shape.bytes());
  if (!block.address) return false;
  if (block_.address) context_->pool.retire(block_, stream_);
  block_ = block;
  return true;
}

MaybeReason LaunchContext::write_header(const QueueShape& shape) {
  const KlapQueue header = shape.header(block_.address, report_);
  shape_ = {};
  // In the stream, so that kernels already enqueued still see the old shape. The counters are zero at this
  // point of the stream anyway, since every consumer leaves them so.
  if (driver()->memcpy_htod_async(block_.address, &header, sizeof header, stream_) != CUDA_SUCCESS) {
    return &reasons::kQueueNotWritable;
  }
  shape_ = shape;
  return nullptr;
}

// A queue of another size than this launch's own would do only if what it holds did not depend on what ran
// before; so there is one for each pair of limit and record size, rounded up where parents alternate.
MaybeReason LaunchContext::make_feed_room(uint32_t record_bytes, uint64_t pool_bytes) {
  const FeedShape wanted = FeedShape::within(pool_bytes, std::max(record_bytes, feed_shape_.record_bytes));
  if (wanted.records == 0) return &reasons::kQueueOverPoolBytes;
  if (wanted == feed_shape_) return nullptr;
  const RelaxedCapture relaxed;
  if (wanted.bytes() > feed_block_.bytes) {
    const Block block = context_->pool.take(wanted.bytes());
    if (!block.address) return &reasons::kNoDeviceMemory;
    if (feed_block_.address) context_->pool.retire(feed_block_, stream_);
    feed_block_ = block;
  }
  return write_feed(wanted);
}

MaybeReason LaunchContext::write_feed(const FeedShape& shape) {
  const KlapFeed header = shape.header(feed_block_.address, report_);
  feed_shape_ = {};
  const Driver& cuda = *driver();
  if (cuda.memset_d8_async(feed_block_.address + shape.items_offset(), 0, shape.items_bytes(), stream_) !=
          CUDA_SUCCESS ||
      cuda.memcpy_htod_async(feed_block_.address, &header, sizeof header, stream_) != CUDA_SUCCESS) {
    return &reasons::kQueueNotWritable;
  }
  feed_shape_ = shape;
  return nullptr;
}

void LaunchContext::record_use() {
  for (CUevent* const event : {&last_use_, feed_block_.address ? &feed_last_use_ : nullptr}) {
    if (event == nullptr) continue;
    if (!*event) *event = new_event();
    if (*event && driver()->event_record(*event, stream_) != CUDA_SUCCESS)
      give_up(reasons::kEventNotRecorded);
  }
}

void LaunchContext::release_in_stream() {
  if (block_.address) context_->pool.retire(block_, stream_);
  if (feed_block_.address) context_->pool.retire(feed_block_, stream_);
  block_ = feed_block_ = {};
  shape_ = {};
  feed_shape_ = {};
  for (CUevent* const event : {&last_use_, &feed_last_use_}) {
    if (*event) driver()->event_destroy(*event);
    *event = nullptr;
  }
}

void LaunchContext::release_after_last_use() {
  if (block_.address && last_use_ && !unusable_) context_->pool.retire(block_, last_use_);
  if (feed_block_.address && feed_last_use_ && !unusable_) context_->pool.retire(feed_block_, feed_last_use_);
  block_ = feed_block_ = {};
  shape_ = {};
  feed_shape_ = {};
  last_use_ = feed_last_use_ = nullptr;
}

LaunchContexts& LaunchContexts::instance() {
  static auto* const contexts = new LaunchContexts;
  return *contexts;
}

std::shared_ptr<LaunchContext> LaunchContexts::get(uint64_t context_id, uint64_t stream_id, CUstream stream) {
  const Key key(context_id, stream_id);
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second;
  auto& cuda_context = cuda_contexts_[context_id];
  if (!cuda_context) cuda_context = std::make_shared<CudaContext>(context_id);
  auto made = std::make_shared<LaunchContext>(cuda_context, stream);
  contexts_.emplace(key, made);
  count_.store(contexts_.size(), std::memory_order_relaxed);
  return made;
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

std::shared_ptr<LaunchContext> LaunchContexts::remove(uint64_t context_id, uint64_t stream_id) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(Key(context_id, stream_id));
  if (found == contexts_.end()) return nullptr;
  auto taken = found->second;
  contexts_.erase(found);
  count_.store(contexts_.size(), std::memory_order_relaxed);
  return taken;
}

}  // namespace klap::runtime
