// The shared memory of a block whose code is run thread by thread (block_sum.h).
//
// One order of the threads is run, and it must stand for all. So an access is refused if another thread's
// access to the same place is kept apart by no barrier, unless both read. Nothing is known of memory that no
// thread has written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// A value of a thread: an integer expression, or a sum of threads' sums, or half of the bits of one, or one
// of which only is known how it was computed (opaque_values.h). With none of these it is not known, and
// nothing may depend on it.
struct HeldValue {
  enum class Part : uint8_t { Whole, Low, High };
  Expr number;
  std::optional<size_t> sum;  // into the table of sums
  Part part = Part::Whole;
  std::optional<size_t> opaque{};
};

// An access by a thread, with the barriers that it has passed.
struct Touch {
  uint32_t thread = 0, warp = 0, block_barriers = 0, warp_barriers = 0;
};

using SharedPlace = std::pair<std::string, int64_t>;  // a variable and an offset in it

class SharedCells {
 public:
  // Both return why the access is refused; nothing if it is made.
  std::optional<std::string> store(const SharedPlace& place, uint32_t bytes, const Touch& touch,
                                   HeldValue value);
  std::optional<std::string> load(const SharedPlace& place, uint32_t bytes, const Touch& touch,
                                  HeldValue& value);

 private:
  struct Cell {
    uint32_t bytes = 0;
    HeldValue value;
    Touch writer;
    std::vector<Touch> readers;
  };
  [[nodiscard]] bool lies_over_another(const SharedPlace& place, uint32_t bytes) const;

  std::map<SharedPlace, Cell> cells_;
};

}  // namespace klap::analysis
