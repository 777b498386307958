// The choice between two variants of a parent: its children run thread by thread (flat), or in their blocks.
//
// Both are right for every launch. Which one is faster depends on how large children are
// (jit/data/form_model.h). So the sizes of the children of some launches are looked at, and decide about the
// next ones. Only flat queues tell sizes. So where children run in blocks, a launch is flat now and then, to
// be looked at.
//
// This class only decides. child_forms.h looks.
#pragma once

#include <cstdint>

namespace klap::runtime {

// The children of a launch, as far as they were looked at.
struct SizesSeen {
  uint64_t threads = 0;  // that they have
  uint64_t lanes = 0;    // that their blocks have
  void add(const SizesSeen& other) {
    threads += other.threads;
    lanes += other.lanes;
  }
  [[nodiscard]] double lanes_used() const {
    return lanes == 0 ? 0 : static_cast<double>(threads) / static_cast<double>(lanes);
  }
};

class FormChoice {
 public:
  enum class Next : uint8_t { Flat, LookedAt, Blocks };  // LookedAt: flat, too

  // A launch is looked at after so many, or later where children have few threads together: then neither form
  // gains anything, and a look takes as long as they do.
  static constexpr uint64_t kLaunchesBetweenLooks = 9, kMostLaunchesBetweenLooks = 79;
  static constexpr uint64_t kFewLanes = uint64_t{1} << 17;

  // Counts a launch, and says how it is to be made. If it is to be looked at, that may fail.
  Next next();
  // Takes the sizes that a look has found. True if the form changes by that.
  bool looked(const SizesSeen& seen);

  [[nodiscard]] bool takes_blocks() const { return takes_blocks_; }

 private:
  uint64_t since_look_ = kLaunchesBetweenLooks, until_look_ = kLaunchesBetweenLooks;
  bool takes_blocks_ = false;
};

}  // namespace klap::runtime
