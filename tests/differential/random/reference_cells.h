// The reference's cells: the effect of each access on them, and whether its order is CUDA's.
#pragma once

#include <vector>

#include "random/launch_order.h"
#include "random/program.h"

namespace klap::differential::random {

class Cells {
 public:
  // If `is_checking` is false, any order will do.
  Cells(std::vector<uint32_t>& words, bool is_checking)
      : words_(words), is_checking_(is_checking), history_(words.size()) {}
  LaunchOrder& order() { return order_; }
  // Performs one thread's access to the cell at `word`, which has room. Returns its result.
  // Throws Error(Internal) if it conflicts with an earlier access that CUDA does not order.
  uint32_t access(const CellAccess& access, uint32_t word, uint32_t operand, uint32_t swapped,
                  const Event& at);

 private:
  // The facts remembered of one access to one word.
  struct Past {
    Event at;
    CellOp op = CellOp::Read;
    uint32_t bytes = 4, value = 0;
  };
  void check(uint32_t word, const Past& now);
  uint64_t read(const CellAccess& access, uint32_t word, uint32_t element) const;
  void write(const CellAccess& access, uint32_t word, uint32_t element, uint64_t value);

  std::vector<uint32_t>& words_;
  bool is_checking_;
  std::vector<std::vector<Past>> history_;
  LaunchOrder order_;
};

}  // namespace klap::differential::random
