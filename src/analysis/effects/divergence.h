// Where threads of one block may decide differently: a coarse answer in three degrees.
//
// Questions about barriers need these degrees. A condition is proven the same in the whole block, or it
// visibly depends on the thread's own index, or neither is known. Values are followed forward from their
// sources through registers. A register with several definitions is the same for all threads only if no
// branch of the function can divide them, which is coarse but needs no control dependence.
#pragma once

#include <unordered_map>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"

namespace klap::analysis {

enum class Divergence : uint8_t { None, Unknown, ByThread };

class BlockDivergence {
 public:
  BlockDivergence(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
                  const DataFlow& data);

  [[nodiscard]] Divergence of(std::string_view reg) const;
  // The divergence of the choice that an instruction makes: its predicate, or the index of an indexed branch.
  [[nodiscard]] Divergence of_decision(uint32_t instruction) const;

 private:
  [[nodiscard]] Divergence source(const ptx::Statement& instruction) const;
  void raise(uint32_t instruction, std::vector<uint32_t>& work);
  void propagate();
  bool mark_divided();
  [[nodiscard]] bool is_joined(std::string_view reg) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  std::unordered_map<std::string_view, Divergence> of_;
  std::vector<bool> divided_;  // blocks that can run after threads have divided
};

}  // namespace klap::analysis
