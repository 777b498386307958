// Uniformity says which values are the same for all threads of a grid, a block or a warp, and which
// instructions all of them reach.
//
// A value is uniform in a group if all its threads that execute the instruction in one iteration of the loops
// around it get the same. Two things make values differ, data and control. Data: an instruction's result
// differs if its operands do. Control: if several definitions reach a reading, threads may have come by
// different ways. So the branches that choose between the definitions count. With them counts the number of
// iterations that a thread stayed in a loop which it has left since.
//
// The analysis begins by assuming that everything is uniform and withdraws that until nothing changes, so
// values that go round in a loop are judged together. A value that is not known is Thread.
//
// Memory: a load at a uniform address is uniform if nothing in the grid writes such memory. That is so for
// constant memory, `.nc` loads (whose user promises it), and global memory in kernels that write none. Other
// grids that write it at the same time would race with these loads, to which PTX gives no meaning. A client
// that asks about warps only may assume more (Given).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/effects/ending_calls.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/loops.h"
#include "analysis/graph/reaching.h"
#include "analysis/graph/registers.h"
#include "analysis/values/symbolic.h"

namespace klap::analysis {

// The largest group within which there is no difference. Values are in the order of safety.
enum class Uniform : uint8_t { Grid, Block, Warp, Thread };
const char* to_string(Uniform uniform);  // "grid", ...
char letter(Uniform uniform);            // 'g', 'b', 'w', 't'

// Facts that the function's code does not show, for questions about warps.
struct Given {
  bool full_rows = false;  // blocks are so many threads wide that every 32 of a row are a warp
  bool no_races = false;   // no data race on what a load reads that warp_invariant_load.h is about
};

class Uniformity {
 public:
  // All of one function; all must live as long as this.
  Uniformity(const ControlFlow& flow, const Dominance& dominance, const Loops& loops,
             const VirtualRegisters& registers, const ReachingDefinitions& reaching, const Symbolic& symbolic,
             const Given& given = {});

  // The uniformity of the values that an instruction writes to its registers.
  [[nodiscard]] Uniform written(uint32_t instruction) const { return written_[instruction]; }
  // The uniformity of the value that it finds in a register.
  [[nodiscard]] Uniform read(uint32_t instruction, uint32_t reg) const;
  // The uniformity of an operand's text: a register or a literal.
  [[nodiscard]] Uniform operand(uint32_t instruction, std::string_view text) const;

  // Whether the threads of a group that are at the end of a block go on alike.
  [[nodiscard]] Uniform decision(uint32_t block) const { return decision_[block]; }
  // The group whose threads either all execute an instruction, equally often, or do not execute it at all.
  // Thread means that a part of a warp may run it, Warp a part of a block, Block a part of the grid. In a
  // called function, only the threads that enter it count.
  [[nodiscard]] Uniform reached(uint32_t instruction) const;

 private:
  // Where the value that an instruction reads in a register comes from.
  struct Source {
    std::vector<uint32_t> definitions;
    bool unknown = false;         // a parameter, or too many definitions to look at
    bool same_iteration = false;  // one definition, which ran in this iteration of all its loops
    std::vector<uint32_t>
        choices;  // blocks whose decisions choose between definitions, or between iterations
  };

  [[nodiscard]] const ptx::Statement& at(uint32_t index) const {
    return *flow_.instructions()[index].statement;
  }
  [[nodiscard]] uint32_t block_of(uint32_t index) const { return flow_.instructions()[index].block; }

  void find_sources();
  [[nodiscard]] Source source(uint32_t index, uint32_t reg) const;
  [[nodiscard]] bool in_same_iteration(uint32_t definition, uint32_t reading) const;
  [[nodiscard]] std::vector<uint32_t> choices(const std::vector<uint32_t>& definitions,
                                              uint32_t reading) const;
  [[nodiscard]] bool is_behind(uint32_t branch, const std::vector<uint32_t>& blocks) const;
  [[nodiscard]] Uniform of_source(const Source& source) const;

  void find_writers();

  bool update();
  [[nodiscard]] Uniform decide(uint32_t block) const;
  [[nodiscard]] Uniform reads(uint32_t index) const;
  [[nodiscard]] Uniform names(uint32_t index) const;
  [[nodiscard]] Uniform name(std::string_view text) const;
  [[nodiscard]] Uniform compute(uint32_t index) const;
  [[nodiscard]] Uniform arithmetic(uint32_t index) const;
  [[nodiscard]] Uniform between_warps(uint32_t index) const;
  [[nodiscard]] bool splits_row(uint32_t index, size_t place, size_t bound, std::string_view type) const;
  [[nodiscard]] Uniform load(uint32_t index) const;
  [[nodiscard]] Uniform warp_operation(uint32_t index) const;
  [[nodiscard]] Uniform block_reduction(uint32_t index) const;
  [[nodiscard]] Uniform carry(uint32_t index) const;
  [[nodiscard]] Uniform evaluated(const Expr& value) const;
  [[nodiscard]] Uniform of_leaf(const ExprNode& leaf) const;
  [[nodiscard]] bool is_operand(uint32_t index, std::string_view text) const;
  [[nodiscard]] std::string operand_text(uint32_t index, size_t operand) const;
  [[nodiscard]] bool runs_together(uint32_t index, Uniform group,
                                   std::initializer_list<size_t> operands) const;

  const ptx::Module& m_;
  const ControlFlow& flow_;
  const Dominance& dominance_;
  const Loops& loops_;
  const VirtualRegisters& registers_;
  const ReachingDefinitions& reaching_;
  const Symbolic& symbolic_;
  const Given given_;
  LocalNames local_names_;
  std::vector<bool> alike_;        // loads by which a warp cannot see different values
  std::vector<Source> sources_;    // by access
  std::vector<uint32_t> writers_;  // by register: how many instructions write it
  std::vector<Uniform> written_, decision_, control_;
  const EndingCalls ending_calls_;
  bool writes_global_ = false;
};

// The function's text with two letters in front of every instruction. They tell how uniform the result is
// ("-" if it writes no register), and which threads reach it.
std::string print_uniformity(const ControlFlow& flow, const VirtualRegisters& registers,
                             const Uniformity& uniformity);

}  // namespace klap::analysis
