#include "runtime/forms/child_forms.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "ptx-patterns/kernels/child_sizes.h"
#include "ptx-patterns/templates/common/queue.h"

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
  if (!begins.empty()) std::memcpy(begins.data(), copy.data() + distance, begins.size() * sizeof(uint64_t));
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

namespace {

std::vector<size_t> numbers_of(const std::vector<ChildForms::Queue>& queues) {
  std::vector<size_t> numbers;
  for (const auto& queue : queues) numbers.push_back(queue.index);
  return numbers;
}

std::vector<ChildForms::Queue> flat_queues(const jit::Variant& flat, const jit::Variant& in_blocks) {
  std::vector<ChildForms::Queue> queues;
  for (size_t i = 0; i < flat.queues.size() && queues.size() < most_queues(); ++i) {
    // A queue that runs its children in the same way in both variants has the same consumer.
    if (flat.queues[i].consumer != in_blocks.queues.at(i).consumer)
      queues.push_back({i, in_blocks.queues[i].child_block_threads});
  }
  return queues;
}

}  // namespace

ChildForms::ChildForms(const jit::Variant& flat, const jit::Variant& in_blocks)
    : counts_(Stats::instance().forms(flat.parent)),
      queues_(flat_queues(flat, in_blocks)),
      look_(numbers_of(queues_), host_page_bytes(), "sizes of children are not looked at") {}

ChildForms::Answer ChildForms::next(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  Answer answer;
  if (look_.is_under_way(context_id)) {
    const std::optional<SizesSeen> seen = collect();
    if (seen && choice_.looked(*seen)) answer.change = {choice_.takes_blocks(), seen->lanes_used()};
  }
  answer.next = choice_.next();
  ++(answer.next == Next::Blocks ? counts_.in_blocks : counts_.flat);
  return answer;
}

// Reads what a look has copied, if that is done.
std::optional<SizesSeen> ChildForms::collect() {
  const auto copies = look_.collect();
  if (!copies) return std::nullopt;
  SizesSeen all;
  for (size_t i = 0; i < queues_.size(); ++i) {
    const auto seen = sizes_in((*copies)[i].bytes, (*copies)[i].head, queues_[i].block_threads);
    if (!seen) return std::nullopt;
    all.add(*seen);
  }
  ++counts_.looks;
  counts_.threads += all.threads;
  counts_.lanes += all.lanes;
  return all;
}

}  // namespace klap::runtime
