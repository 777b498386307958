#include "runtime/forms/few_children.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ptx-patterns/templates/common/queue.h"

namespace klap::runtime {

namespace {

// These were measured, with some distance to numbers that were slower.
constexpr uint64_t kMostChildren = 1024, kMostThreads = uint64_t{1} << 15;

std::vector<size_t> all_queues(const jit::Variant& variant) {
  std::vector<size_t> numbers(variant.queues.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

// The threads of what the queue counts. Forms of one parent may count differently.
uint64_t threads_of_unit(const jit::ChildQueue& queue) {
  return queue.counted == "threads" ? 1 : std::max(1U, queue.child_block_threads);
}

struct Counted {
  uint64_t children = 0, units = 0;
  bool has_big = false;
};
Counted counted_in(std::span<const unsigned char> head) {
  KlapCounters counters{};
  std::memcpy(&counters, head.data(), std::min(head.size(), sizeof counters));
  return {counters.packed & KLAP_MAX_RECORDS, counters.packed >> KLAP_INDEX_BITS, counters.big != 0};
}

}  // namespace

FewChoice::Next FewChoice::next() {
  if (++since_look_ > until_look_) {
    since_look_ = 0;
    return Next::LookedAt;
  }
  return takes_fused() ? Next::Fused : Next::Pair;
}

bool FewChoice::looked(bool few) {
  const bool before = takes_fused();
  few_in_row_ = few ? few_in_row_ + 1 : 0;
  if (few)
    until_look_ = takes_fused() ? kLaunchesBetweenLooks : 0;
  else
    until_look_ = std::clamp(2 * until_look_, kLaunchesBetweenLooks, kMostLaunchesBetweenLooks);
  return takes_fused() != before;
}

FewChildren::FewChildren(const jit::Variant& pair)
    : look_(all_queues(pair), pair.queues.size() * sizeof(KlapCounters), "children are not counted") {}

FewChildren::Answer FewChildren::next(uint64_t context_id) {
  const std::lock_guard lock(mutex_);
  Answer answer;
  if (look_.is_under_way(context_id)) {
    if (const auto copies = look_.collect()) {
      uint64_t children = 0, threads = 0;
      bool has_big = false;
      for (const QueueLook::Copy& copy : *copies) {
        const Counted counted = counted_in(copy.bytes);
        children += counted.children;
        threads += counted.units * threads_of_unit(*copy.queue);
        has_big = has_big || counted.has_big;
      }
      if (choice_.looked(!has_big && children <= kMostChildren && threads <= kMostThreads))
        answer.to_fused = choice_.takes_fused();
    }
  }
  answer.next = choice_.next();
  answer.has_few = choice_.takes_fused();
  return answer;
}

}  // namespace klap::runtime
