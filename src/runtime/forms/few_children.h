// Chooses for each launch of a parent between its variant with a consumer and the one that is its own
// consumer (Variant::where_few), by how many children the last launches had.
//
// One kernel in place of two saves the second launch. On an H200, launches of 1,000 to 100,000 threads, one
// behind the other, took 4.5 to 8.8 microseconds in place of 7.6 to 10.7 where up to 1,000 threads launched
// children of a warp. With many children the pair is faster, by up to six times: its consumer has the
// device to itself.
//
// Both are right for every launch. A few launches are looked at, and decide about the next ones. The kernel
// that is its own consumer leaves nothing to look at, so one launch in sixteen has a consumer then.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "jit/data/variant.h"
#include "runtime/forms/queue_look.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// This class only decides.
class FewChoice {
 public:
  enum class Next : uint8_t { Pair, LookedAt, Fused };  // LookedAt: a pair, too

  // So many looks in a row must find few children.
  static constexpr uint64_t kLooks = 4;
  // A parent that is launched once or twice gains nothing.
  static constexpr uint64_t kLaunchesBeforeLooks = 2;
  static constexpr uint64_t kLaunchesBetweenLooks = 15, kMostLaunchesBetweenLooks = 1000;

  Next next();
  // Takes the result of a look. True if the form changes by that.
  bool looked(bool few);
  [[nodiscard]] bool takes_fused() const { return few_in_row_ >= kLooks; }

 private:
  uint64_t since_look_ = 0, until_look_ = kLaunchesBeforeLooks, few_in_row_ = 0;
};

class FewChildren {
 public:
  using Next = FewChoice::Next;
  // `pair` is the variant with a consumer.
  explicit FewChildren(const jit::Variant& pair);

  [[nodiscard]] uint64_t operations() const { return look_.operations(); }

  struct Answer {
    Next next = Next::Pair;
    std::optional<bool> to_fused;  // set where the form changes, from this launch on
    bool has_few = false;          // launches are Fused but for looks
  };
  // How the next launch in that context is to be made.
  Answer next(uint64_t context_id);
  // Looks at what a parent, which is in the stream, recorded: of that variant or one with the same queues.
  // The caller holds the context's mutex.
  void look(const jit::Variant& variant, const LaunchContext& launch) noexcept {
    look_.look(mutex_, variant, launch);
  }

 private:
  std::mutex mutex_;
  FewChoice choice_;
  QueueLook look_;
};

}  // namespace klap::runtime
