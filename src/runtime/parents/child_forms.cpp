#include "runtime/parents/child_forms.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "ptx-patterns/kernels/child_sizes.h"
#include "ptx-patterns/templates/common/queue.h"
#include "runtime/driver.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/queues/block_pool.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// Each queue's copy has room for its heads and some hundred children. A parent may have more flat queues than
// a page has room for. Then the first ones stand for all.
constexpr size_t kLeastBytes = 1024;
size_t most_queues() { return host_page_bytes() / kLeastBytes; }

// Places that are not in use. A program may load and unload modules again and again.
class LookPlaces {
 public:
  static LookPlaces& instance() {
    static auto* const places = new LookPlaces;  // leaked: modules may be unloaded while the process exits
    return *places;
  }

  CUresult take(uint64_t context_id, std::optional<LookPlace>& place) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find(unused_, context_id, &LookPlace::context_id);
      if (found != unused_.end()) {
        place = *found;
        unused_.erase(found);
        return CUDA_SUCCESS;
      }
    }
    LookPlace made{.context_id = context_id, .page = {}, .done = nullptr};
    const CUresult result = map_host_page(made.page);
    if (result != CUDA_SUCCESS) return result;
    made.done = new_event();
    if (made.done == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    place = made;
    return CUDA_SUCCESS;
  }
  void give_back(const LookPlace& place) {
    const std::lock_guard lock(mutex_);
    unused_.push_back(place);
  }

 private:
  std::mutex mutex_;
  std::vector<LookPlace> unused_;
};

}  // namespace

// Big children are not counted. What they have does not matter, since they fill their blocks.
std::optional<SizesSeen> sizes_in(std::span<const unsigned char> copy, CUdeviceptr head,
                                  uint32_t block_threads) {
  KlapQueue queue{};
  if (copy.size() < sizeof queue) return std::nullopt;
  std::memcpy(&queue, copy.data(), sizeof queue);
  const uint64_t children = queue.packed & KLAP_MAX_RECORDS, threads = queue.packed >> KLAP_INDEX_BITS;
  const uint64_t big = uint64_t{queue.big} << KLAP_SIZE_BITS;
  const uint64_t distance = std::bit_cast<uint64_t>(queue.prefix) - head;
  if (distance % sizeof(uint64_t) != 0 || distance >= copy.size()) return std::nullopt;
  std::vector<uint64_t> begins(std::min<uint64_t>((copy.size() - distance) / sizeof(uint64_t), children));
  std::memcpy(begins.data(), copy.data() + distance, begins.size() * sizeof(uint64_t));
  if (begins.size() == children) begins.push_back(threads);
  uint64_t idle = 0, looked_at = 0;
  for (size_t i = 0; i + 1 < begins.size(); ++i, ++looked_at) {
    if (begins[i + 1] < begins[i]) return std::nullopt;
    const uint64_t in_last = (begins[i + 1] - begins[i]) % block_threads;
    if (in_last != 0) idle += block_threads - in_last;
  }
  const double mean = looked_at == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(looked_at);
  return SizesSeen{threads + big,
                   threads + big + static_cast<uint64_t>(mean * static_cast<double>(children))};
}

ChildForms::ChildForms(const jit::Variant& flat, const jit::Variant& in_blocks)
    : counts_(Stats::instance().forms(flat.parent)) {
  for (size_t i = 0; i < flat.queues.size() && queues_.size() < most_queues(); ++i) {
    // A queue that runs its children in the same way in both variants has the same consumer.
    if (flat.queues[i].consumer != in_blocks.queues.at(i).consumer)
      queues_.push_back({i, in_blocks.queues[i].child_block_threads});
  }
}

// A copy that is under way still needs its place. The driver cannot be asked about another context's.
ChildForms::~ChildForms() {
  try_or_report("KLAP_TUNE", "a page is not used again", [this] {
    unsigned long long context_id = 0;
    if (!place_ || driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS ||
        context_id != place_->context_id)
      return;
    const RelaxedCapture relaxed;
    if (looked_at_.empty() || driver()->event_query(place_->done) == CUDA_SUCCESS)
      LookPlaces::instance().give_back(*place_);
  });
}

size_t ChildForms::bytes_of_each() const {
  return host_page_bytes() / queues_.size() / sizeof(uint64_t) * sizeof(uint64_t);
}

unsigned char* ChildForms::copy_of(size_t queue) const {
  auto* const bytes = reinterpret_cast<volatile unsigned char*>(place_->page.words);
  return const_cast<unsigned char*>(bytes) + queue * bytes_of_each();
}

ChildForms::Answer ChildForms::next(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  Answer answer;
  if (!looked_at_.empty() && place_->context_id == context_id) {
    const std::optional<SizesSeen> seen = collect();
    if (seen && choice_.looked(*seen)) answer.change = {choice_.takes_blocks(), seen->lanes_used()};
  }
  answer.next = choice_.next();
  ++(answer.next == Next::Blocks ? counts_.in_blocks : counts_.flat);
  return answer;
}

// Reads what a look has copied, if that is done.
std::optional<SizesSeen> ChildForms::collect() {
  const RelaxedCapture relaxed;
  const CUresult state = driver()->event_query(place_->done);
  if (state == CUDA_ERROR_NOT_READY) return std::nullopt;
  const std::vector<CUdeviceptr> heads = std::exchange(looked_at_, {});
  if (state != CUDA_SUCCESS) return std::nullopt;
  SizesSeen all;
  for (size_t i = 0; i < queues_.size(); ++i) {
    const auto seen = sizes_in({copy_of(i), bytes_of_each()}, heads[i], queues_[i].block_threads);
    if (!seen) return std::nullopt;
    all.add(*seen);
  }
  ++counts_.looks;
  counts_.threads += all.threads;
  counts_.lanes += all.lanes;
  return all;
}

// Looks are made in one context at a time. It may have been destroyed where launches only come from another
// one. A place of a destroyed context is never used again, since ids are not.
CUresult ChildForms::move_to(uint64_t context_id) {
  constexpr uint32_t kMostElsewhere = 10;
  if (place_ && place_->context_id == context_id) {
    launches_elsewhere_ = 0;
    return CUDA_SUCCESS;
  }
  if (place_ && ++launches_elsewhere_ <= kMostElsewhere) return CUDA_SUCCESS;
  place_.reset();
  looked_at_.clear();
  launches_elsewhere_ = 0;
  return LookPlaces::instance().take(context_id, place_);
}

CUresult ChildForms::enqueue_look(const jit::Variant& flat, const LaunchContext& launch) {
  CUresult result = move_to(launch.context().id);
  if (result != CUDA_SUCCESS || place_->context_id != launch.context().id || !looked_at_.empty())
    return result;
  std::vector<CUdeviceptr> heads;
  for (size_t i = 0; i < queues_.size(); ++i) {
    heads.push_back(queue_of(flat, queues_[i].index, launch));
    // The begins of all children lie in the queue, however small it is.
    const uint64_t bytes = std::min<uint64_t>(bytes_of_each(), launch.bytes_of_queue(queues_[i].index));
    result = driver()->memcpy_dtoh_async(copy_of(i), heads.back(), bytes, launch.stream());
    if (result != CUDA_SUCCESS) return result;
  }
  result = driver()->event_record(place_->done, launch.stream());
  if (result == CUDA_SUCCESS) looked_at_ = std::move(heads);
  return result;
}

void ChildForms::look(const jit::Variant& flat, const LaunchContext& launch) noexcept {
  try_or_report("KLAP_TUNE", "sizes of children are not looked at", [&] {
    const std::lock_guard lock(mutex_);
    if (gave_up_) return;
    const RelaxedCapture relaxed;
    const CUresult result = enqueue_look(flat, launch);
    if (result == CUDA_SUCCESS) return;
    gave_up_ = true;
    log().info("{}: sizes of children are not looked at ({})", demangle(flat.parent), error_name(result));
  });
}

}  // namespace klap::runtime
