// The state of a block that is run thread by thread (block_sum.h): what its registers hold, and what operands
// and addresses mean there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/expressions/expression.h"
#include "analysis/ranges/block_effects.h"
#include "analysis/ranges/block_sum.h"
#include "analysis/ranges/integer_code.h"
#include "analysis/ranges/shared_cells.h"
#include "analysis/values/values.h"

namespace klap::analysis {

constexpr uint32_t kWarpLanes = 32;

// Ends the run with a reason.
struct Refused {
  std::string why;
};

// Sums of threads by one operation. For each sum of the loop and each thread it has how often that takes
// part: 0, 1 or more often (2).
struct SumOf {
  std::string operation;
  std::vector<uint8_t> times;
};

struct BlockThread {
  enum class State : uint8_t { Runs, AtShuffle, AtWarpBarrier, AtBlockBarrier, Done };
  uint32_t next = 0;  // instruction
  State state = State::Runs;
  std::vector<HeldValue> registers;
};

// In all functions `t` is the thread, and `i` its instruction.
class BlockState {
 protected:
  // With `effects` operands may name the module's variables, too.
  BlockState(const Values& values, const EndRun& run, BlockEffects* effects);

  [[nodiscard]] const ptx::Statement& at(uint32_t i) const;
  [[nodiscard]] Refused refused(uint32_t i, const std::string& why) const;
  [[nodiscard]] static uint32_t bits_of(const std::string& type);
  // The type by which an instruction computes, and that of its first source where `cvt` has two.
  [[nodiscard]] std::string type_of(const ptx::Statement& s) const;

  // The value of an operand of so many bits; the run ends if the operand itself is not known.
  HeldValue read(uint32_t t, uint32_t i, const std::string& word, uint32_t bits);
  HeldValue read(uint32_t t, uint32_t i, size_t operand, uint32_t bits);
  // An operand as a number, which may be unknown, and as a constant, which must not be.
  Expr number(uint32_t t, uint32_t i, size_t operand, uint32_t bits);
  uint64_t constant(uint32_t t, uint32_t i, size_t operand);
  OperandNumber numbers(uint32_t t, uint32_t i);

  // Gives a value to a register, to the only result, and an unknown one to all results.
  void write(uint32_t t, uint32_t i, const std::string& word, HeldValue value);
  void write(uint32_t t, uint32_t i, HeldValue value);
  void write_unknown(uint32_t t, uint32_t i);

  // The base and the offset of `[base+offset]`.
  std::pair<HeldValue, int64_t> address_parts(uint32_t t, uint32_t i, size_t operand);
  Expr address(uint32_t t, uint32_t i, size_t operand);
  SharedPlace shared_place(uint32_t t, uint32_t i, size_t operand);
  // True if the modifiers are a space, a type, and nothing else of note.
  [[nodiscard]] bool is_plain_access(const ptx::Statement& s, std::string_view space) const;
  // The sums of the loop that take part; nothing if one does without all threads'.
  [[nodiscard]] std::optional<std::vector<size_t>> complete_sums(std::string_view operation,
                                                                 const std::vector<uint8_t>& times) const;

  const Values& v_;
  const ptx::Module& m_;
  const ControlFlow& flow_;
  const EndRun run_;
  BlockEffects* effects_;                                         // null where the block only adds
  std::set<std::string, std::less<>> ambiguous_;                  // names that several shared variables have
  const std::map<std::string, uint32_t, std::less<>> variables_;  // shared ones, with their bytes
  std::vector<BlockThread> threads_;
  std::vector<SumOf> sums_;

 private:
  // True for a variable of the module that effects may be about.
  [[nodiscard]] bool is_variable(const std::string& word) const;
  // True for a value that only another thread may use.
  [[nodiscard]] bool is_of_another(uint32_t t, const HeldValue& value) const;
  static std::optional<uint64_t> literal_of(std::string_view text);
  // The block is the only one, and has one row.
  [[nodiscard]] std::optional<uint64_t> special_register(uint32_t t, const std::string& name) const;
  // The shared variables of a known size that the kernel may name, with their bytes.
  [[nodiscard]] std::map<std::string, uint32_t, std::less<>> shared_variables();
};

}  // namespace klap::analysis
