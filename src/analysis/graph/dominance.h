// Dominators, post-dominators and control dependence of one function's blocks.
//
// Block a dominates b if every path from the entry to b passes a; a post-dominates b if every path from b out
// of the function passes a. All ways out are joined in one virtual exit, whose number is the count of blocks.
// Block b is controlled by block c if the way that control takes at c's end decides whether b runs next. That
// is so if b post-dominates one of c's successors but not c itself (Ferrante, Ottenstein and Warren).
//
// Two things to know when drawing conclusions:
// - Code that cannot reach an exit (an endless loop) would have no post-dominators. One block of each such
//   loop is therefore taken to have a way out. Otherwise code after a branch would count as certain to run
//   although the branch's other side can be stuck for ever. Such a block can be a controller although it has
//   no condition of its own; what controls it then matters.
// - A loop that has an exit is taken to end, and a call is taken to return.
// If the function has a branch with unknown targets, nothing is known: no block dominates another and every
// block is controlled by every branch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/graph/flow.h"
#include "analysis/graph/graph.h"

namespace klap::analysis {

class Dominance {
 public:
  static constexpr uint32_t kNone = DominatorTree::kNone;
  explicit Dominance(const ControlFlow& flow);

  // False: the dominators are not known, see above.
  [[nodiscard]] bool known() const { return known_; }
  // False: control dependence is not known (the above, or a relation too large to hold), and controllers() is
  // every branch.
  [[nodiscard]] bool control_known() const { return control_known_; }

  [[nodiscard]] uint32_t exit() const { return exit_; }
  // Unreachable blocks dominate and are dominated by themselves only.
  [[nodiscard]] bool dominates(uint32_t a, uint32_t b) const {
    return a == b || (known_ && forward_.dominates(a, b));
  }
  [[nodiscard]] bool post_dominates(uint32_t a, uint32_t b) const {
    return a == b || (known_ && backward_.dominates(a, b));
  }
  // kNone for the entry, for unreachable blocks and where it is not known.
  [[nodiscard]] uint32_t immediate_dominator(uint32_t block) const {
    return known_ ? forward_.parent(block) : kNone;
  }
  // May be exit(); kNone where it is not known.
  [[nodiscard]] uint32_t immediate_post_dominator(uint32_t block) const {
    return known_ ? backward_.parent(block) : kNone;
  }
  // Reachable blocks, every dominator before what it dominates.
  [[nodiscard]] const std::vector<uint32_t>& dominator_order() const { return forward_.order(); }
  // True if control cannot get from the block out of the function.
  [[nodiscard]] bool is_endless(uint32_t block) const { return endless_[block]; }

  // The blocks whose last instruction decides whether `block` runs, in ascending order; a block in a loop is
  // often its own. Direct dependence only: the controllers may have controllers.
  [[nodiscard]] std::span<const uint32_t> controllers(uint32_t block) const;
  // The blocks that `block`'s last instruction decides upon, in no special order.
  [[nodiscard]] std::span<const uint32_t> controlled(uint32_t block) const;
  // Returns the controllers of a block, their controllers and so on. Controllers that have no choice are left
  // out.
  [[nodiscard]] std::vector<uint32_t> deciding_branches(uint32_t block) const;

 private:
  // A relation from blocks to blocks. The members of one block are stored side by side.
  struct Relation {
    std::vector<uint32_t> start, members;
    [[nodiscard]] std::span<const uint32_t> of(uint32_t block) const {
      return {members.data() + start[block], members.data() + start[block + 1]};
    }
  };

  void build_backward();
  void find_endless();
  void find_control();
  bool append_controlled(uint32_t block);
  void invert_control();
  [[nodiscard]] bool has_choice(uint32_t block) const;

  const ControlFlow& flow_;
  bool known_ = false, control_known_ = false;
  uint32_t exit_ = 0;
  DominatorTree forward_, backward_;
  std::vector<bool> endless_, stuck_;                     // stuck: taken to have a way out
  std::vector<std::vector<uint32_t>> ways_on_, ways_in_;  // edges including those to the virtual exit
  std::vector<uint32_t> branches_, all_blocks_;           // answers where nothing is known
  std::vector<uint32_t> marked_by_;                       // scratch of append_controlled
  Relation controlled_, controllers_;
};

// One line a block.
std::string print_dominance(const ControlFlow& flow, const Dominance& dominance);

}  // namespace klap::analysis
