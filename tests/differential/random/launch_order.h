// The accesses that CUDA orders. The reference checks every pair of accesses to one cell against this.
//
// A thread's clock counts, for every thread of its block, how far that thread had come when the two last
// synchronised. An access or a launch is an event with the clock of its thread, so any two events of a block
// can be compared. Events of different grids are compared where their ancestors were launched from one block.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "random/program.h"

namespace klap::differential::random {

using Clock = std::vector<uint32_t>;  // by thread of the block

struct Event {
  uint32_t grid = 0, block = 0, thread = 0;  // block and thread: counted through
  uint32_t time = 0;                         // of the thread's own, in its clock
  std::shared_ptr<const Clock> clock;        // null: nobody asks what came before it
};

// The clocks of a block's threads.
class BlockClocks {
 public:
  BlockClocks(uint32_t grid, uint32_t block, uint32_t threads);
  // The event of a thread now; its next step is a later event.
  Event event(uint32_t thread);
  // These threads wait for each other.
  void meet(uint32_t first, uint32_t count);
  // The steps of `from` so far come before the next step of `to`.
  void follow(uint32_t from, uint32_t to);

 private:
  uint32_t grid_, block_;
  std::vector<Clock> clocks_;
};

enum class Precedence : uint8_t {
  Ordered,    // the first one comes first
  Exclusive,  // one after the other, in any order
  None,
};

class LaunchOrder {
 public:
  LaunchOrder() : grids_(1) {}
  // A grid of the host, whose launches are all in the order of their stream, or one of the device.
  uint32_t add_root();
  uint32_t add(const Event& launch, Stream stream);
  // `first` was executed before `second` by a reference that keeps to CUDA's order.
  [[nodiscard]] Precedence compare(const Event& first, const Event& second) const;

 private:
  struct Grid {
    Event launch;
    Stream stream = Stream::Null;
    uint32_t depth = 0;
  };
  std::vector<Grid> grids_;  // the first is the host, a grid of one thread
  uint32_t host_time_ = 0;
};

}  // namespace klap::differential::random
