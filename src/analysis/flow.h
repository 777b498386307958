// Control flow of one function: its instructions in text order, basic blocks, and who can follow whom.
//
// Scopes are flattened, but labels are resolved by scope as PTX does it: a label declared in a nested scope
// is visible there only, and inline assembly makes use of that.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

struct FlatInstruction {
  const ptx::Statement* statement = nullptr;
  const ptx::Statement* scope = nullptr;  // innermost enclosing block
  uint32_t block = 0;                     // basic block
};

struct BasicBlock {
  uint32_t first = 0, last = 0;  // instructions, half open
  std::vector<uint32_t> successors;
};

class ControlFlow {
 public:
  // Throws Error(Parse) for a branch to a label that is not visible there.
  ControlFlow(const ptx::Module& module, const ptx::Function& function);

  [[nodiscard]] const std::vector<FlatInstruction>& instructions() const { return instructions_; }
  [[nodiscard]] const std::vector<BasicBlock>& blocks() const { return blocks_; }
  // Index of an instruction's statement, or npos.
  static constexpr uint32_t npos = ~0u;
  [[nodiscard]] uint32_t index_of(const ptx::Statement* statement) const;

  // True if instruction `to` can run after instruction `from` (through at least one step). A path from an
  // instruction to itself means a loop.
  [[nodiscard]] bool can_follow(uint32_t from, uint32_t to) const;
  [[nodiscard]] bool in_loop(uint32_t instruction) const { return can_follow(instruction, instruction); }
  // True if a label lies directly before the instruction, so that control may enter there from elsewhere.
  [[nodiscard]] bool is_labelled(uint32_t instruction) const { return labelled_[instruction]; }
  // A branch whose targets are not in the text (brx without a target list): every path is then possible.
  [[nodiscard]] bool has_unknown_branch() const { return unknown_branch_; }

 private:
  struct Label {
    std::string_view name;
    const ptx::Statement* scope;
    uint32_t instruction;
  };
  struct TargetList {
    std::string_view name;
    std::vector<std::string_view> labels;
  };

  void flatten(const ptx::Statement& block);
  void find_blocks();
  void connect();
  void close();
  [[nodiscard]] bool ends_block(const ptx::Statement& statement) const;
  [[nodiscard]] bool never_falls_through(const ptx::Statement& statement) const;
  [[nodiscard]] std::vector<uint32_t> targets(const FlatInstruction& branch) const;
  [[nodiscard]] uint32_t resolve(std::string_view label, const FlatInstruction& branch) const;

  const ptx::Module& module_;
  std::vector<FlatInstruction> instructions_;
  std::vector<BasicBlock> blocks_;
  std::vector<bool> labelled_;
  std::vector<Label> labels_;
  std::vector<TargetList> target_lists_;
  std::vector<std::pair<const ptx::Statement*, const ptx::Statement*>> parents_;  // scope, enclosing scope
  std::vector<std::vector<bool>> reaches_;  // block to block, through at least one edge
  bool unknown_branch_ = false;
};

}  // namespace klap::analysis
