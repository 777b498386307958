#include "runtime/parents/child_forms.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx-patterns/kernels/child_sizes.h"
#include "ptx-patterns/templates/common/queue.h"
#include "runtime/driver.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/queues/block_pool.h"
#include "support/boundary.h"

namespace klap::runtime {

namespace {

// Each queue's copy has room for its heads and some hundred children. A parent may have more flat queues than
// a page has room for. Then the first ones stand for all.
constexpr size_t kLeastBytes = 1024;
size_t most_queues() { return host_page_bytes() / kLeastBytes; }

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

size_t ChildForms::bytes_of_each() const {
  return host_page_bytes() / queues_.size() / sizeof(uint64_t) * sizeof(uint64_t);
}

ChildForms::Answer ChildForms::next(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  Answer answer;
  if (context_id == context_id_) {
    const std::optional<SizesSeen> seen = collect();
    if (seen && choice_.looked(*seen)) answer.change = {choice_.takes_blocks(), seen->lanes_used()};
  }
  answer.next = choice_.next();
  ++(answer.next == Next::Blocks ? counts_.in_blocks : counts_.flat);
  return answer;
}

// Reads what a look has copied, if that is done.
std::optional<SizesSeen> ChildForms::collect() {
  if (!pending_) return std::nullopt;
  const RelaxedCapture relaxed;
  const CUresult state = driver()->event_query(done_);
  if (state == CUDA_ERROR_NOT_READY) return std::nullopt;
  const Copies copies = std::move(*pending_);
  pending_.reset();
  if (state != CUDA_SUCCESS) return std::nullopt;
  SizesSeen all;
  for (size_t i = 0; i < queues_.size(); ++i) {
    const auto* const bytes =
        const_cast<const unsigned char*>(reinterpret_cast<const volatile unsigned char*>(page_.words));
    const auto seen =
        sizes_in({bytes + i * bytes_of_each(), bytes_of_each()}, copies.heads[i], queues_[i].block_threads);
    if (!seen) return std::nullopt;
    all.add(*seen);
  }
  ++counts_.looks;
  counts_.threads += all.threads;
  counts_.lanes += all.lanes;
  return all;
}

// Looks are made in one context at a time: the page and the event belong to it. It may have been destroyed
// where launches only come from another one.
bool ChildForms::is_made_in(uint64_t context_id) {
  constexpr uint32_t kMostElsewhere = 10;
  if (done_ != nullptr && context_id == context_id_) {
    launches_elsewhere_ = 0;
    return true;
  }
  if (done_ != nullptr && ++launches_elsewhere_ <= kMostElsewhere) return false;
  pending_.reset();
  launches_elsewhere_ = 0;
  context_id_ = context_id;
  page_ = {};
  done_ = map_host_page(page_) == CUDA_SUCCESS ? new_event() : nullptr;
  return done_ != nullptr;
}

void ChildForms::look(const jit::Variant& flat, const LaunchContext& launch) noexcept {
  try_or_report("KLAP_TUNE", "sizes of children are not looked at", [&] {
    const std::lock_guard lock(mutex_);
    if (gave_up_ || pending_) return;
    const RelaxedCapture relaxed;
    gave_up_ = true;  // unless all of it succeeds
    if (!is_made_in(launch.context().id)) {
      gave_up_ = done_ == nullptr;
      return;
    }
    Copies copies;
    auto* const bytes = const_cast<unsigned char*>(reinterpret_cast<volatile unsigned char*>(page_.words));
    for (size_t i = 0; i < queues_.size(); ++i) {
      copies.heads.push_back(queue_of(flat, queues_[i].index, launch));
      if (driver()->memcpy_dtoh_async(bytes + i * bytes_of_each(), copies.heads.back(), bytes_of_each(),
                                      launch.stream()) != CUDA_SUCCESS)
        return;
    }
    if (driver()->event_record(done_, launch.stream()) != CUDA_SUCCESS) return;
    pending_ = std::move(copies);
    gave_up_ = false;
  });
}

}  // namespace klap::runtime
