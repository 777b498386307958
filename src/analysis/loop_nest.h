// Loops and the loops in them.
//
// A loop is a set of blocks that can all reach each other; the loops inside it are what remains of that kind
// when its entries are taken away. That needs no reducible control flow: a loop with several entries is a
// loop like any other, and those who need a single head ask for it.
//
// Two loops in each other that begin at the same block cannot be told from one with a `continue`. Such a loop
// also has parts: for each jump back to the head, the blocks from the head to that jump.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/flow.h"
#include "analysis/graph.h"

namespace klap::analysis {

// A set of blocks with the edges between them, renumbered from 0, and its strongly connected components.
struct Subgraph {
  Subgraph(const ControlFlow& flow, std::vector<uint32_t> all);
  [[nodiscard]] bool cyclic(uint32_t component) const;
  // In ascending order, as blocks of the function.
  [[nodiscard]] std::vector<uint32_t> blocks_of(uint32_t component) const;

  std::vector<uint32_t> blocks;  // ascending
  std::vector<std::vector<uint32_t>> edges;
  Components components;
  std::vector<std::vector<uint32_t>> members;
};

struct NestedLoop {
  std::vector<uint32_t> blocks;   // ascending
  std::vector<uint32_t> entries;  // blocks entered from outside
  std::optional<uint32_t> outer;  // the loop around it
  std::vector<uint32_t> parts;    // as loops of their own
  bool is_part = false;
  bool merged = false;  // a part that stands for parts too many to tell apart: any branch may leave it
  [[nodiscard]] bool contains(uint32_t block) const;
};

class LoopNest {
 public:
  explicit LoopNest(const ControlFlow& flow);
  // Outer loops before inner ones.
  [[nodiscard]] const std::vector<NestedLoop>& loops() const { return loops_; }
  [[nodiscard]] std::optional<uint32_t> innermost(uint32_t block) const { return innermost_[block]; }
  // The loops that hold a block, innermost first, parts before the loop that they are parts of.
  [[nodiscard]] std::vector<uint32_t> around(uint32_t block) const;

 private:
  void split(uint32_t loop);
  void find(const ControlFlow& flow, const std::vector<uint32_t>& blocks, std::optional<uint32_t> outer);
  std::vector<NestedLoop> loops_;
  std::vector<std::optional<uint32_t>> innermost_;
  std::vector<std::vector<uint32_t>> predecessors_;
};

}  // namespace klap::analysis
