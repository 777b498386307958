// The times of a parent's launches that are all the same, as one process or several measured them.
//
// A process pays once for its first launch of each form: the driver sets up its device runtime at the first
// launch of the program's own kernel, which takes milliseconds. A program that launches once in a process
// pays that every time, and another one hardly notices. So the first launches of processes are kept apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace klap::runtime {

// The last few times of something. Older ones are forgotten, because clocks and other work on the GPU change.
class Samples {
 public:
  void add(double ms) { ms_.at(count_++ % kMost) = ms; }
  // Adds those of a later process.
  void add(const Samples& later) {
    const uint64_t kept = std::min(later.count_, kMost);
    for (uint64_t i = 0; i < kept; ++i) add(later.ms_.at((later.count_ - kept + i) % kMost));
  }
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The time in the middle, of two the shorter one; 0 if there is none. One disturbed measurement does not
  // count, but that launches differ does: an executor deals out large children as they come.
  [[nodiscard]] double typical() const {
    if (empty()) return 0;
    auto sorted = ms_;
    const auto end = sorted.begin() + std::min(count_, kMost);
    std::sort(sorted.begin(), end);
    return sorted[(std::min(count_, kMost) - 1) / 2];
  }

 private:
  static constexpr uint64_t kMost = 3;
  std::array<double, kMost> ms_{};
  uint64_t count_ = 0;
};

// The first launch in a process, and later ones.
struct FormTimes {
  Samples first, later;
};

// Files hold this as it stands in memory. So a change of it makes another format of them (guard_profile.cpp).
struct GuardTimes {
  FormTimes variant, original;
  uint64_t children = 0;  // of a launch, at most
  uint64_t counted = 0;   // launches whose children were
  uint64_t runs = 0, launches = 0;
  double spent_ms = 0;  // in all launches
  double lost_ms = 0;   // of that by trials of the original
  int64_t checked = 0;  // when both forms were compared last, in seconds since the epoch; 0: never

  [[nodiscard]] double launches_a_run() const {
    return runs == 0 ? 0 : static_cast<double>(launches) / static_cast<double>(runs);
  }
  // Adds what a later process found. `replaces`: it found the earlier times to be no longer true.
  void add(const GuardTimes& later, bool replaces) {
    if (replaces) variant = original = {}, counted = 0, checked = 0;
    variant.first.add(later.variant.first), variant.later.add(later.variant.later);
    original.first.add(later.original.first), original.later.add(later.original.later);
    children = std::max(children, later.children);
    counted += later.counted;
    runs += later.runs, launches += later.launches;
    spent_ms += later.spent_ms, lost_ms += later.lost_ms;
    checked = std::max(checked, later.checked);
  }
};

}  // namespace klap::runtime
