// The loops of one function and the loops in them.
//
// A loop is a set of blocks that can all reach each other; the loops in it are what remains of that kind when
// control may not come back to where it is entered. Two loops are nested or apart.
//
// Nearly all loops are natural: control enters them at one block only, the header, which dominates the whole
// loop. Their body is everything that reaches a back edge to the header without passing the header, and loops
// with one header are one loop. A loop that can be entered at several blocks (hand-written branches, some
// optimisers) is not natural, and nothing that rests on headers holds there; only the back edges of its
// entries, from blocks that the entry dominates, are kept when its inner loops are looked for. All natural
// loops are found therefore, also those that begin where an irreducible one is entered.
//
// Blocks that nothing leads to never run and are in no loop. With a branch of unknown targets nothing is
// known: known() is false and every block may be in a loop.
//
// Two loops in each other that begin at the same block cannot be told from one with a `continue`. Analyses
// that must tell them apart use the parts of such a loop. There is one part for each jump back to the header:
// the blocks from the header to that jump.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/graph/flow.h"
#include "analysis/graph/graph.h"

namespace klap::analysis {

struct Loop {
  static constexpr uint32_t kNone = ~0u;
  uint32_t parent = kNone;             // the loop around it; of a part, the loop that it is part of
  uint32_t depth = 1;                  // 1: in no other loop
  std::vector<uint32_t> blocks = {};   // with those of inner loops, ascending
  std::vector<uint32_t> entries = {};  // blocks that control enters from outside, ascending
  std::vector<uint32_t> latches = {};  // of a natural loop: blocks with an edge back to the header, ascending
  // The ways out: from a block of the loop to one outside, or to Dominance::exit() for the end of the
  // function.
  struct Exit {
    uint32_t from, to;
    friend bool operator==(const Exit&, const Exit&) = default;
  };
  std::vector<Exit> exits = {};  // none: it never ends
  bool merged = false;  // a part that stands for parts too many to tell apart: any branch may leave it

  [[nodiscard]] bool is_natural() const { return entries.size() == 1; }
  [[nodiscard]] uint32_t header() const { return entries[0]; }  // of a natural loop
  [[nodiscard]] bool contains(uint32_t block) const;
};

class Loops {
 public:
  explicit Loops(const ControlFlow& flow);

  [[nodiscard]] bool known() const { return !flow_.has_unknown_branch(); }
  // An inner loop comes after those around it. The others are in text order.
  [[nodiscard]] const std::vector<Loop>& all() const { return loops_; }

  // The innermost loop of a block, as an index into all(); Loop::kNone for none.
  [[nodiscard]] uint32_t innermost(uint32_t block) const { return innermost_[block]; }
  // How many loops are around the block.
  [[nodiscard]] uint32_t depth(uint32_t block) const {
    return innermost_[block] == Loop::kNone ? 0 : loops_[innermost_[block]].depth;
  }
  [[nodiscard]] bool contains(uint32_t loop, uint32_t block) const;
  // True if the block lies in a loop that is not natural, and also where nothing is known.
  [[nodiscard]] bool is_irreducible(uint32_t block) const;

 private:
  friend class LoopFinder;
  const ControlFlow& flow_;
  std::vector<Loop> loops_;
  std::vector<uint32_t> innermost_;
};

// Loops together with their parts.
class LoopParts {
 public:
  explicit LoopParts(const ControlFlow& flow);

  [[nodiscard]] const Loops& loops() const { return loops_; }
  // All loops as in loops(), then the parts, as loops of their own.
  [[nodiscard]] const std::vector<Loop>& all() const { return all_; }
  // The loops and parts that hold a block, innermost first. Parts come before the loop that they belong to.
  [[nodiscard]] std::vector<uint32_t> around(uint32_t block) const;

 private:
  void split(const ControlFlow& flow, uint32_t loop);
  Loops loops_;
  std::vector<Loop> all_;
  std::vector<std::vector<uint32_t>> parts_;  // by loop
};

std::string print_loops(const ControlFlow& flow, const Loops& loops);

}  // namespace klap::analysis
