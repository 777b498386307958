#include "runtime/forms/queue_look.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/driver.h"
#include "runtime/queues/block_pool.h"
#include "runtime/queues/host_page.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// Places that are not in use. A program may load and unload modules again and again. To map a page takes more
// than a hundred microseconds, so small places share one.
class LookPlaces {
 public:
  static LookPlaces& instance() {
    static auto* const places = new LookPlaces;  // leaked: modules may be unloaded while the process exits
    return *places;
  }

  CUresult take(uint64_t context_id, size_t size, std::optional<QueueLook::Place>& place) {
    QueueLook::Place made{.context_id = context_id, .bytes = nullptr, .size = size, .done = nullptr};
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find_if(unused_, [&](const QueueLook::Place& each) {
        return each.context_id == context_id && each.size == size;
      });
      if (found != unused_.end()) {
        place = *found;
        unused_.erase(found);
        return CUDA_SUCCESS;
      }
      if (const CUresult result = cut(made); result != CUDA_SUCCESS) return result;
    }
    made.done = new_event();
    if (made.done == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    place = made;
    return CUDA_SUCCESS;
  }
  void give_back(const QueueLook::Place& place) {
    const std::lock_guard lock(mutex_);
    if (pages_.contains(place.context_id)) unused_.push_back(place);
  }
  // Nobody reads places of a context that has ended, but some looks may still have one.
  void end_context(uint64_t context_id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(unused_, [&](const QueueLook::Place& place) { return place.context_id == context_id; });
    const auto page = pages_.find(context_id);
    if (page == pages_.end()) return;
    unmap_host_page(const_cast<unsigned char*>(page->second.bytes));
    pages_.erase(page);
  }

 private:
  // A page, of which so much is taken.
  struct Page {
    volatile unsigned char* bytes = nullptr;
    size_t taken = 0;
  };

  // The caller holds the mutex.
  CUresult cut(QueueLook::Place& place) {
    Page& page = pages_[place.context_id];
    if (page.bytes == nullptr || page.taken + place.size > host_page_bytes()) {
      HostPage mapped;
      if (const CUresult result = map_host_page(mapped); result != CUDA_SUCCESS) return result;
      page = {reinterpret_cast<volatile unsigned char*>(mapped.words), 0};
    }
    place.bytes = page.bytes + page.taken;
    page.taken += place.size;
    return CUDA_SUCCESS;
  }

  std::mutex mutex_;
  std::vector<QueueLook::Place> unused_;
  std::map<uint64_t, Page> pages_;  // by context: the last one
};

}  // namespace

void end_looks(uint64_t context_id) { LookPlaces::instance().end_context(context_id); }

QueueLook::QueueLook(std::vector<size_t> queues, size_t bytes, const char* without)
    : queues_(std::move(queues)),
      bytes_of_each_(bytes / std::max<size_t>(1, queues_.size()) / sizeof(uint64_t) * sizeof(uint64_t)),
      without_(without),
      gave_up_(bytes > host_page_bytes()) {}

// A copy that is under way still needs its place. The driver cannot be asked about another context's.
QueueLook::~QueueLook() {
  try_or_report("KLAP_TUNE", "a page is not used again", [this] {
    unsigned long long context_id = 0;
    if (!place_ || driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS ||
        context_id != place_->context_id)
      return;
    const RelaxedCapture relaxed;
    if (heads_.empty() || driver()->event_query(place_->done) == CUDA_SUCCESS)
      LookPlaces::instance().give_back(*place_);
  });
}

unsigned char* QueueLook::copy_of(size_t queue) const {
  return const_cast<unsigned char*>(place_->bytes) + queue * bytes_of_each_;
}

std::optional<std::vector<QueueLook::Copy>> QueueLook::collect() {
  const RelaxedCapture relaxed;
  const CUresult state = driver()->event_query(place_->done);
  if (state == CUDA_ERROR_NOT_READY) return std::nullopt;
  const std::vector<CUdeviceptr> heads = std::exchange(heads_, {});
  if (state != CUDA_SUCCESS) return std::nullopt;
  std::vector<Copy> copies;
  for (size_t i = 0; i < queues_.size(); ++i)
    copies.push_back({{copy_of(i), bytes_of_each_}, heads[i], &looked_at_->queues[queues_[i]]});
  return copies;
}

// The context may have been destroyed where launches only come from another one. A place of a destroyed
// context is never used again, since ids are not.
CUresult QueueLook::move_to(uint64_t context_id) {
  constexpr uint32_t kMostElsewhere = 10;
  if (place_ && place_->context_id == context_id) {
    launches_elsewhere_ = 0;
    return CUDA_SUCCESS;
  }
  if (place_ && ++launches_elsewhere_ <= kMostElsewhere) return CUDA_SUCCESS;
  if (place_ && heads_.empty()) LookPlaces::instance().give_back(*place_);
  place_.reset();
  heads_.clear();
  launches_elsewhere_ = 0;
  return LookPlaces::instance().take(context_id, queues_.size() * bytes_of_each_, place_);
}

CUresult QueueLook::enqueue(const jit::Variant& variant, const LaunchContext& launch) {
  const RelaxedCapture relaxed;
  CUresult result = move_to(launch.context().id);
  if (result != CUDA_SUCCESS || place_->context_id != launch.context().id || !heads_.empty()) return result;
  std::vector<CUdeviceptr> heads;
  for (size_t i = 0; i < queues_.size(); ++i) {
    heads.push_back(queue_of(variant, queues_[i], launch));
    const uint64_t bytes = std::min<uint64_t>(bytes_of_each_, launch.bytes_of_queue(queues_[i]));
    result = driver()->memcpy_dtoh_async(copy_of(i), heads.back(), bytes, launch.stream());
    if (result != CUDA_SUCCESS) return result;
  }
  result = driver()->event_record(place_->done, launch.stream());
  if (result != CUDA_SUCCESS) return result;
  heads_ = std::move(heads);
  looked_at_ = &variant;
  return result;
}

void QueueLook::look(std::mutex& mutex, const jit::Variant& variant, const LaunchContext& launch) noexcept {
  try_or_report("KLAP_TUNE", without_, [&] {
    const std::lock_guard lock(mutex);
    if (gave_up_) return;
    const CUresult result = enqueue(variant, launch);
    if (result == CUDA_SUCCESS) return;
    gave_up_ = true;
    log().info("{}: {} ({})", demangle(variant.parent), without_, error_name(result));
  });
}

}  // namespace klap::runtime
