// Control flow of one function: its instructions in text order, basic blocks, and who can follow whom.
//
// Scopes are flattened, but labels are resolved by scope as PTX does it: a label declared in a nested scope
// is visible there only, and inline assembly makes use of that.
//
// A thread exits the function by `ret`, `exit` or `trap`, by a call of a function declared .noreturn, and by
// running off the closing brace. Any of these may be predicated; the block then also has the next block as a
// successor. The effect of a called function on the thread (it may exit there) is not part of this graph.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/graph/graph.h"
#include "ptx/tree.h"

namespace klap::analysis {

struct FlatInstruction {
  const ptx::Statement* statement = nullptr;
  const ptx::Statement* scope = nullptr;  // innermost enclosing block
  uint32_t block = 0;                     // basic block
};

// How a block's last instruction passes control on.
enum class BlockEnd : uint8_t { FallsThrough, Branch, IndexedBranch, Return, Exit, Trap, NoReturnCall };
const char* to_string(BlockEnd end);

struct BasicBlock {
  uint32_t first = 0, last = 0;           // instructions, half open
  std::vector<uint32_t> successors = {};  // without repetition; targets of jumps first, then the next block
  std::vector<uint32_t> predecessors = {};
  BlockEnd end = BlockEnd::FallsThrough;
  bool conditional = false;     // the last instruction is predicated, so control may also fall through
  bool exits_function = false;  // control may exit the function at the end of this block
  bool falls_off = false;       // ... because there is no further instruction
  bool reachable = false;       // there is a path from the entry
};

class ControlFlow {
 public:
  // Throws Error(Parse) for a branch to a label that is not visible there.
  ControlFlow(const ptx::Module& module, const ptx::Function& function);

  [[nodiscard]] const ptx::Module& module() const { return module_; }
  [[nodiscard]] const ptx::Function& function() const { return function_; }
  [[nodiscard]] const std::vector<FlatInstruction>& instructions() const { return instructions_; }
  // Block 0 is the entry; there is none if the function has no instruction.
  [[nodiscard]] const std::vector<BasicBlock>& blocks() const { return blocks_; }
  // Index of an instruction's statement, or npos.
  static constexpr uint32_t npos = ~0u;
  [[nodiscard]] uint32_t index_of(const ptx::Statement* statement) const;

  // True if instruction `to` can run after instruction `from` (through at least one step). A path from an
  // instruction to itself means a loop. Constant time for two instructions of one loop or block, else a
  // search of what lies between them.
  [[nodiscard]] bool can_follow(uint32_t from, uint32_t to) const;
  [[nodiscard]] bool in_loop(uint32_t instruction) const { return can_follow(instruction, instruction); }
  // True if a label lies directly before the instruction, so that control may enter there from elsewhere.
  [[nodiscard]] bool is_labelled(uint32_t instruction) const { return labelled_[instruction]; }
  // A branch whose targets are not in the text (brx without a target list): every path is then possible, and
  // `successors` says nothing about that block.
  [[nodiscard]] bool has_unknown_branch() const { return unknown_branch_; }

  // Blocks on a common cycle are in one component. An edge out of one leads to a smaller number.
  [[nodiscard]] const Components& components() const { return components_; }
  // True if control can come back to the block (by the edges that are known).
  [[nodiscard]] bool in_cycle(uint32_t block) const { return cyclic_[components_.of[block]]; }

  // The scope that encloses `scope`; null for the function's body.
  [[nodiscard]] const ptx::Statement* enclosing(const ptx::Statement* scope) const;

 private:
  using ScopedName = std::pair<const ptx::Statement*, std::string_view>;

  void flatten(const ptx::Statement& block);
  void find_blocks();
  void connect();
  void connect(uint32_t block);
  void mark_reachable();
  void find_cycles();
  [[nodiscard]] BlockEnd end_of(const FlatInstruction& instruction) const;
  [[nodiscard]] bool is_noreturn_call(const FlatInstruction& call) const;
  [[nodiscard]] std::vector<uint32_t> targets(const FlatInstruction& branch) const;
  [[nodiscard]] uint32_t resolve(uint32_t label_token, const ptx::Statement* scope) const;
  // The .branchtargets or .callprototype directive of a name that is visible in `scope`, or null.
  [[nodiscard]] std::pair<const ptx::Statement*, const ptx::Statement*> table(
      std::string_view name, const ptx::Statement* scope) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  std::vector<FlatInstruction> instructions_;
  std::vector<BasicBlock> blocks_;
  std::vector<bool> labelled_;
  std::map<ScopedName, uint32_t> labels_;                                     // the instruction that follows
  std::map<ScopedName, const ptx::Statement*> tables_;                        // labelled directives
  std::unordered_map<const ptx::Statement*, const ptx::Statement*> parents_;  // scope, enclosing scope
  std::set<std::string_view> noreturn_;                                       // functions
  Components components_;
  std::vector<bool> cyclic_;  // by component
  bool unknown_branch_ = false;
};

// One line a block: its lines, what it ends with, where control goes from there and comes from.
std::string print_flow(const ControlFlow& flow);
// Prints the same graph in the language of Graphviz, with the instructions in the boxes.
std::string print_flow_dot(const ControlFlow& flow);

}  // namespace klap::analysis
