// The loops of one function.
//
// A natural loop has one header, which dominates the whole loop: it is entered there only. Its body is
// everything that reaches a back edge to the header without passing the header. Loops with one header are one
// loop; two loops are nested or apart. A cycle that can be entered at several blocks (hand-written branches,
// some optimisers) is not natural; it is reported as an irreducible region, and nothing that rests on headers
// holds there. Unreachable blocks are in no loop. With a branch of unknown targets nothing is known: known()
// is false and every block may be in a loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/dominance.h"
#include "analysis/flow.h"

namespace klap::analysis {

struct Loop {
  static constexpr uint32_t kNone = ~0u;
  uint32_t header = 0;
  uint32_t parent = kNone;             // the loop around it
  uint32_t depth = 1;                  // 1: in no other loop
  std::vector<uint32_t> latches = {};  // blocks with an edge back to the header, ascending
  std::vector<uint32_t> blocks = {};   // with those of inner loops, ascending
  // The ways out: from a block of the loop to one outside, or to Dominance::exit() for the end of the
  // function.
  struct Exit {
    uint32_t from, to;
    friend bool operator==(const Exit&, const Exit&) = default;
  };
  std::vector<Exit> exits = {};  // none: it never ends
};

struct IrreducibleRegion {
  std::vector<uint32_t> blocks;   // ascending
  std::vector<uint32_t> entries;  // blocks of it that control enters from outside
};

class Loops {
 public:
  Loops(const ControlFlow& flow, const Dominance& dominance);

  [[nodiscard]] bool known() const { return known_; }
  // An inner loop comes after those around it.
  [[nodiscard]] const std::vector<Loop>& all() const { return loops_; }
  [[nodiscard]] const std::vector<IrreducibleRegion>& irreducible() const { return irreducible_; }

  // The innermost natural loop of a block, as an index into all(); Loop::kNone for none.
  [[nodiscard]] uint32_t innermost(uint32_t block) const { return innermost_[block]; }
  // How many natural loops are around the block. In an irreducible region there is at least one cycle more.
  [[nodiscard]] uint32_t depth(uint32_t block) const {
    return innermost_[block] == Loop::kNone ? 0 : loops_[innermost_[block]].depth;
  }
  [[nodiscard]] bool contains(uint32_t loop, uint32_t block) const;
  // True if the block lies on a cycle that is no natural loop, and also where nothing is known.
  [[nodiscard]] bool is_irreducible(uint32_t block) const { return !known_ || in_irreducible_[block]; }

 private:
  void find_natural(const Dominance& dominance);
  void grow(uint32_t loop);
  void list_blocks();
  void find_irreducible(const Dominance& dominance);

  const ControlFlow& flow_;
  bool known_ = false;
  std::vector<Loop> loops_;
  std::vector<IrreducibleRegion> irreducible_;
  std::vector<uint32_t> innermost_;
  std::vector<bool> in_irreducible_;
};

std::string print_loops(const ControlFlow& flow, const Loops& loops);

}  // namespace klap::analysis
