// Launch contexts: the record queues of a stream, found by ids that CUDA never gives out twice.
//
// A parent's variant and its consumers share queues. The next parent in the same stream may use them again as
// soon as all are enqueued, because the stream runs them one after another. Two streams must not share one.
// The key is (context id, stream id) and not the handles. Handles are recycled, and an entry found by a
// recycled handle would point into memory of a context that no longer exists. Entries of destroyed contexts
// are simply never found again.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit/data/request.h"
#include "jit/data/variant.h"
#include "runtime/launch_reasons.h"
#include "runtime/queues/block_pool.h"
#include "runtime/queues/chain_ring.h"
#include "runtime/queues/in_flight.h"
#include "runtime/queues/queue_demand.h"
#include "runtime/queues/queue_memory.h"
#include "runtime/queues/queue_shape.h"
#include "runtime/queues/report_slots.h"
#include "runtime/queues/work_queue_shape.h"

namespace klap::runtime {

// The largest queue that is allocated where pool_bytes does not say otherwise.
inline constexpr uint64_t kDefaultPoolBytes = uint64_t{1} << 30;

// The memory pools that the launch contexts of one CUDA context share.
struct CudaContext {
  explicit CudaContext(uint64_t context_id);
  const uint64_t id;
  CUdevice device = 0;
  unsigned multiprocessors = 0;
  // The kind of device and the driver, on which it depends how long kernels take; empty if they do not say.
  std::string model;
  ReportSlots reports;
  BlockPool pool;
  LaunchPool launch_pool;
  InFlight in_flight;
  // Its memory and streams are gone, and the driver must not be asked about them.
  std::atomic<bool> has_ended{false};

  // Returns the memory that no stream has to the driver, and says how many bytes these are.
  uint64_t give_back();
  // Has ordinary memory for queues of these sizes, which have given up their lazy memory.
  void replace_lazy(const std::vector<uint64_t>& sizes);
};

// One record queue in device memory. Parents that are launched into a stream share its queues.
class RecordQueue {
 public:
  // Makes the queue as large as `exact` in every respect. Null on success, otherwise the reason why this
  // launch must run the original. One reason is that the queue would need more than `pool_bytes`.
  MaybeReason make_room(QueueMemory& memory, CUstream stream, CUdeviceptr report, const QueueShape& exact,
                        uint64_t pool_bytes);
  // The address of the head that is the next parent's.
  [[nodiscard]] CUdeviceptr head() const { return block_.address + (second_is_next_ ? KLAP_HEAD_BYTES : 0); }
  // How much of the queue's memory lies from that head on.
  [[nodiscard]] uint64_t bytes_from_head() const { return block_.address + block_.bytes - head(); }
  // Called when a consumer is enqueued. It leaves its own head as it is and empties the other one, which is
  // the next parent's.
  void take_turns() { second_is_next_ = !second_is_next_; }
  // The memory, which the queue no longer has.
  Block take();

 private:
  [[nodiscard]] QueueShape grown_for(const QueueShape& exact) const;
  MaybeReason take_block(QueueMemory& memory, const QueueShape& shape);
  MaybeReason write_header(CUstream stream, CUdeviceptr report, const QueueShape& shape);

  QueueShape shape_;
  Block block_;  // heads, prefix array, records
  bool second_is_next_ = false;
};

// The queue of consumers with a worklist, and of consumers of loop launches. It has one size, however large
// the parent's grid. Only the heads differ, one for each of so many groups of the parent's blocks.
class WorkQueue {
 public:
  MaybeReason make_room(QueueMemory& memory, CUstream stream, CUdeviceptr report, uint32_t record_bytes,
                        uint64_t groups, uint64_t pool_bytes);
  // The shape that it then has. It may use another kind of memory.
  [[nodiscard]] WorkQueueShape shape_within(uint32_t record_bytes, uint64_t groups,
                                            uint64_t pool_bytes) const {
    return WorkQueueShape::within(pool_bytes, std::max(record_bytes, shape_.record_bytes), groups);
  }
  [[nodiscard]] CUdeviceptr address() const { return block_.address; }
  [[nodiscard]] uint64_t records() const { return shape_.records; }
  // The bytes that it needs in ordinary memory if it may not have lazy memory any more, 0 if it has none.
  [[nodiscard]] uint64_t lazy_bytes() const {
    return lazy_.address != 0 ? lazy_.bytes + WorkQueueShape::kFrontBytes : 0;
  }
  Block take();
  Block take_lazy();
  Block take_heads();

 private:
  // Each group of blocks has a part of the queue, so many of them use pages everywhere.
  static constexpr uint64_t kMostLazyGroups = 16;
  MaybeReason take_lazy_block(QueueMemory& memory, WorkQueueShape& shape);
  MaybeReason take_block(QueueMemory& memory, uint64_t bytes);
  MaybeReason make_heads(QueueMemory& memory, CUstream stream, uint64_t bytes, uint64_t most_bytes);
  MaybeReason write_header(CUstream stream, CUdeviceptr report, const WorkQueueShape& shape);

  WorkQueueShape shape_;
  Block block_;  // head, items, records; head and front where there is lazy memory
  Block lazy_;   // items and the other records (work_queue_shape.h)
  Block heads_;  // of groups
  bool had_many_groups_ = false;
};

// The queues that a launch can need.
struct Queues {
  std::vector<RecordQueue> records;  // one for each launch site
  WorkQueue work_queue;
  // All their memory, which they no longer have.
  std::vector<Block> take_blocks();
};

class LaunchContext {
 public:
  // Queues of a stream move as its launches need it. Those of a node in a graph stay where they are.
  LaunchContext(std::shared_ptr<CudaContext> context, CUstream stream, BlockOf of = BlockOf::Stream);
  // The memory of a stream's goes when the stream does, that of a node's goes now.
  ~LaunchContext();
  LaunchContext(const LaunchContext&) = delete;
  LaunchContext& operator=(const LaunchContext&) = delete;

  // Held while a parent's variant and its consumer are enqueued, so that no other host thread's pair comes
  // between them.
  std::mutex mutex;

  // The rest requires `mutex`.

  // Provides a queue for each of the variant's, with room for so many blocks of the parent, as
  // RecordQueue::make_room() does. They stay until end_launch().
  MaybeReason make_room(const QueueDemand& demand, uint64_t blocks, uint64_t pool_bytes);
  [[nodiscard]] CUdeviceptr queue(size_t index) const { return current_->records[index].head(); }
  [[nodiscard]] uint64_t bytes_of_queue(size_t index) const {
    return current_->records[index].bytes_from_head();
  }
  // Called when the queue's consumer is enqueued behind the parent; it empties the queue's other head.
  void take_turns(size_t index) { current_->records[index].take_turns(); }
  // Provides the queue of consumers with a worklist; `groups` launch apart, 0 if none do.
  MaybeReason make_work_queue_room(uint32_t record_bytes, uint64_t groups, uint64_t pool_bytes,
                                   jit::Buffer buffer);
  [[nodiscard]] CUdeviceptr work_queue() const { return current_->work_queue.address(); }
  // The shape that it would have.
  [[nodiscard]] WorkQueueShape work_queue_shape(uint32_t record_bytes, uint64_t groups,
                                                uint64_t pool_bytes) const {
    return current_->work_queue.shape_within(record_bytes, groups, pool_bytes);
  }
  // How much of pool_bytes it has, nothing if that is not known.
  struct Part {
    uint64_t of = 0, bytes = 0;
  };
  [[nodiscard]] std::optional<Part> work_queue_part() const { return work_queue_part_; }
  void set_work_queue_part(Part part) { work_queue_part_ = part; }
  // The bytes of memory that its queues may still take.
  [[nodiscard]] uint64_t memory_left() { return context_->pool.left(of_); }
  // True if more is about to become free.
  [[nodiscard]] bool awaits_memory() { return context_->pool.has_retired(); }
  // The number of launches that it has room for.
  [[nodiscard]] uint64_t work_queue_records() const { return current_->work_queue.records(); }
  // True if the queues are this launch's alone.
  [[nodiscard]] bool has_own_queues() const { return current_ == &own_; }
  // Called when all kernels that use the queues for this launch are enqueued.
  void end_launch();

  // Provides the rings of a promoted chain (ChainRings).
  MaybeReason make_chain_room(uint64_t number, uint32_t slot_bytes, uint64_t pool_bytes);
  [[nodiscard]] CUdeviceptr chain(uint64_t number) const { return rings_.address(number); }
  // Called when the chain's launch is enqueued, which makes the other ring ready.
  void chain_takes_turns(uint64_t number) { rings_.take_turns(number); }

  // The reason why nothing is redirected in this stream any more; null while all is well.
  [[nodiscard]] MaybeReason unusable() const { return unusable_; }
  void give_up(const LaunchReason& reason) { unusable_ = &reason; }

  // False for a stream that does not wait for the legacy stream, nor that one for it.
  [[nodiscard]] bool is_blocking() const { return is_blocking_; }
  // True if so many operations more than the program asked for may be enqueued. They must not block this
  // thread where it natively is not blocked (in_flight.h). The call may wait a moment for that, if
  // `may_wait`.
  bool may_add(uint64_t operations, bool may_wait = true);
  // Called when they are enqueued. Nothing is thrown, since the program's own launch must not follow.
  void added(uint64_t operations) noexcept;

  // Remembers that the work now in the stream uses the queues. Needed only for streams that end without a
  // call to cuStreamDestroy, which are the per-thread streams.
  void record_use();
  // The memory goes back to the pool once the work enqueued so far has completed.
  void release_in_stream();
  // All that was enqueued has completed, and nothing more is. Its report slots are used again.
  void give_back_reports();
  // Releases the memory after the last record_use() alone. It makes no CUDA call, so it may run while a
  // thread ends.
  void release_after_last_use();
  // The stream ends, and nothing can be asked or recorded there.
  void forget();
  // Gives the memory back while the stream, which has that id, may go on to be used. Memory that cannot be
  // told to be free later stays.
  void give_back(uint64_t stream_id);

  // True if all kernels of the stream report how many children they ran.
  [[nodiscard]] bool reports() const { return report_.address != 0; }
  // The slot by which children of launches that are measured are counted. There may be none.
  ReportSlot guard_report();
  // Launches that are only counted have a slot of their own, or none.
  ReportSlot count_report();

  // The bytes that its queue needs in ordinary memory in place of lazy memory, 0 if it has none.
  [[nodiscard]] uint64_t lazy_bytes() const { return kept_.work_queue.lazy_bytes(); }

  [[nodiscard]] const CudaContext& context() const { return *context_; }
  [[nodiscard]] InFlight& in_flight() { return context_->in_flight; }
  [[nodiscard]] CUstream stream() const { return stream_; }
  // The green context in which the stream was made; null if there is none.
  [[nodiscard]] CUgreenCtx green() const { return green_; }

 private:
  QueueMemory& begin_launch(jit::Buffer buffer);
  [[nodiscard]] bool is_callers(uint64_t stream_id) const;
  [[nodiscard]] bool is_idle() const;
  // Finds out what is done of the work in this stream, which the caller launches into, and of marked work.
  void settle();
  bool set_unmarked(uint64_t operations);
  // There is nothing in the stream, or nobody will ask.
  void complete_unmarked();
  std::vector<Block> take_blocks();

  const std::shared_ptr<CudaContext> context_;
  const CUstream stream_;
  const BlockOf of_;
  bool is_blocking_;
  const CUgreenCtx green_;
  MaybeReason unusable_ = nullptr;
  ReportSlot report_;  // of the stream (templates/common/report.h), none if not asked for
  std::optional<ReportSlot> guard_report_, count_report_;  // that guarded launches report to in its place
  PooledMemory pooled_memory_;
  LaunchMemory launch_memory_;
  Queues kept_;               // for one launch after another, in pooled memory
  Queues own_;                // of the launch that is being enqueued, where it has its own
  Queues* current_ = &kept_;  // that it uses
  std::optional<Part> work_queue_part_;
  ChainRings rings_;
  CUevent last_use_ = nullptr;
  uint64_t unmarked_ = 0;  // operations in flight, and so not known to be done
};

// The queue of that number, which the variant and its consumer use.
inline CUdeviceptr queue_of(const jit::Variant& variant, size_t index, const LaunchContext& context) {
  return variant.queues[index].is_work_queue ? context.work_queue() : context.queue(index);
}

class LaunchContexts {
 public:
  static LaunchContexts& instance();

  // The memory that the streams of the current CUDA context share, made on first use.
  std::shared_ptr<CudaContext> in_context(uint64_t context_id);
  // The launch context of `stream` in the current CUDA context, made on first use.
  std::shared_ptr<LaunchContext> get(uint64_t context_id, uint64_t stream_id, CUstream stream);
  // One that is the caller's alone. What is written into its queues goes through `stream`.
  std::shared_ptr<LaunchContext> make_for_node(uint64_t context_id, CUstream stream);
  // Takes it out, null if there is none.
  std::shared_ptr<LaunchContext> remove(uint64_t context_id, uint64_t stream_id);
  // Takes out those of the stream, which may have been used while one context or another was current.
  std::vector<std::shared_ptr<LaunchContext>> remove_stream(uint64_t stream_id);
  // Takes out those of all streams of a green context.
  std::vector<std::shared_ptr<LaunchContext>> remove_green(CUgreenCtx green);
  // Takes out those of a stream that ends while it is captured. Their memory stays allocated.
  void forget(CUstream stream);
  // Takes out all of a CUDA context that has ended, with which their memory went.
  void end_context(uint64_t context_id);
  // Called before the first launch in the current CUDA context. It takes memory for queues of these sizes,
  // which launches would otherwise take, while the program may have kernels that wait for the host. `guards`:
  // what guards of launches need (parents/launch_guard.h).
  void make_ready(uint64_t context_id, const std::vector<uint64_t>& queues, const GuardReports& guards);
  // Takes the memory of all streams of the CUDA context, which is current, and returns it to the driver. The
  // result is the number of bytes. Streams that another thread is launching into keep theirs.
  uint64_t give_back(uint64_t context_id);
  // Called before the program takes so much device memory in the current CUDA context. If kernels could then
  // be short of pages for their queues, the queues move to ordinary memory. This waits for kernels that use
  // them.
  void before_allocation(uint64_t context_id, uint64_t bytes);
  // Remembers for good that parents were captured into a graph in this CUDA context. True the first time.
  bool note_graph(uint64_t context_id);
  [[nodiscard]] bool has_graphs(uint64_t context_id);
  [[nodiscard]] bool empty() const { return size() == 0; }
  // True if there may be queues of streams, or of nodes in graphs.
  [[nodiscard]] bool has_queues() const { return !empty() || any_nodes_.load(std::memory_order_relaxed); }
  // The number of streams of all CUDA contexts.
  [[nodiscard]] size_t size() const { return count_.load(std::memory_order_relaxed); }
  // The number of those that ended. Their handles may be given out again.
  [[nodiscard]] uint64_t streams_ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct Hash {
    size_t operator()(const Key& key) const { return key.first * 0x9E3779B97F4A7C15u ^ key.second; }
  };

  using Stream = std::pair<uint64_t, std::shared_ptr<LaunchContext>>;  // with its id
  using Wanted = std::function<bool(uint64_t stream_id, const LaunchContext&)>;
  std::vector<std::shared_ptr<LaunchContext>> remove_all(const Wanted& wanted);
  std::vector<Stream> streams_of(uint64_t context_id);
  std::shared_ptr<CudaContext> cuda_context(uint64_t context_id);   // the caller holds the mutex
  std::shared_ptr<CudaContext> known_context(uint64_t context_id);  // null if there is none

  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> any_graphs_{false}, any_nodes_{false};
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<LaunchContext>, Hash> contexts_;
  std::map<uint64_t, std::shared_ptr<CudaContext>> cuda_contexts_;
  std::set<uint64_t> with_graphs_;
};

}  // namespace klap::runtime
