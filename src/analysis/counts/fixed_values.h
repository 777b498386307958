// The values of a kernel that are the same whenever it is launched with the same parameters, grid and block:
// fixed values. All others are open.
//
// Fixed are parameters, a thread's place in the grid, constants, and what is computed from them. Memory,
// other special registers and what other threads say may differ from launch to launch. A register that is
// written under an open condition is open itself, whatever is written.
//
// A word of the parameters may be open, but for being an address of memory. Arithmetic on a pointer stays in
// the object that it points to, as in memory_effects.h, or aligns it. So such addresses are never null, and a
// comparison with null is fixed.
//
// Two more are fixed if the whole kernel allows it:
//
//  - Results of calls of the device runtime, if the kernel makes no other calls, and each of these is made as
//    often as is fixed and gets fixed values. They are launches, copies, queries of the device or of a
//    kernel, and queries of errors. The device, its attributes and a kernel's occupancy do not change. A
//    launch or copy with fixed values is refused always or never, but for a lack of room. That is what the
//    users of this file look at: they compare with a launch that had room (fixed_launches.h).
//  - Local memory, if only such calls and stores of fixed values write it.
//
// The claim for both is shown along a thread's execution. Take the first event of two equal launches that
// differs although it is called fixed: all that it depends on lies before it, and is fixed and so the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/graph/dominance.h"

namespace klap::analysis {

// Parameters whose values are open: all of them, or some of their words.
struct OpenParameters {
  static constexpr uint32_t kWordBytes = 8;
  std::set<uint32_t> parameters, words;  // by their offsets

  [[nodiscard]] bool is_open(const ptx::Parameter& parameter, uint64_t first, uint64_t bytes) const;
};

class FixedValues {
 public:
  FixedValues(const FunctionFacts& kernel, const OpenParameters& open_parameters);

  // The value of a register or a literal.
  [[nodiscard]] bool is_fixed(std::string_view operand) const {
    return !open_.contains(operand) && !kernel_.data.is_ambiguous(operand);
  }
  // True if it is fixed how often a thread runs that instruction.
  [[nodiscard]] bool is_run_as_fixed(const ptx::Statement& instruction) const;

 private:
  void find_open_registers();
  [[nodiscard]] bool decides_as_fixed(uint32_t block) const;
  [[nodiscard]] bool is_source(const ptx::Statement& s) const;
  [[nodiscard]] bool is_fixed_load(const ptx::Statement& load) const;
  [[nodiscard]] bool is_alike(std::string_view operand) const {
    return !unlike_.contains(operand) && !kernel_.data.is_ambiguous(operand);
  }
  [[nodiscard]] std::optional<uint32_t> first_byte(const ptx::Statement& load) const;
  [[nodiscard]] bool is_address_load(const ptx::Statement& load) const;
  [[nodiscard]] bool is_address_arithmetic(const ptx::Statement& s) const;
  [[nodiscard]] bool passes_alike(const ptx::Statement& store) const;
  [[nodiscard]] bool is_comparison_with_null(const ptx::Statement& s) const;
  [[nodiscard]] bool is_fixed_parameter(const ptx::Statement& load) const;
  [[nodiscard]] bool is_written_openly(const ptx::Statement& s) const;
  [[nodiscard]] bool is_repeatable(const ptx::Statement& call) const;
  [[nodiscard]] bool reads_fixed(const ptx::Statement& s) const;
  [[nodiscard]] bool has_repeatable_calls() const;
  [[nodiscard]] bool is_local_memory(const ptx::Statement& load) const;
  [[nodiscard]] bool has_fixed_local_memory() const;
  [[nodiscard]] const MemoryEffects& memory() const;

  const FunctionFacts& kernel_;
  const OpenParameters& open_parameters_;
  const Dominance dominance_;
  RegisterSet open_;
  RegisterSet unlike_;  // of these, the ones that differ by more than being other addresses of memory
  // Taken to be so, until it is found to be wrong.
  bool calls_are_fixed_ = true, local_memory_is_fixed_ = true;
  mutable std::unique_ptr<const MemoryEffects> memory_;  // made when it is first asked for
};

}  // namespace klap::analysis
