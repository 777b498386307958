// Reaching definitions and def-use chains over virtual registers.
//
// For every read of a register, they give the instructions that may have written the value. They also tell
// whether it may be the value at the function's entry: a parameter's, or none, if the register was never
// written. For every write, they give the reads that may find it.
//
// The values of a register form a graph: definitions, merges where paths join, and the entry. A definition
// may be predicated or write only a part. Then it has the value before it as a predecessor, because that
// value, or a part of it, goes on. A read points to one value; merges that join one value only are removed,
// so that following the graph costs little. Where branch targets are unknown, or liveness is, every
// definition reaches every read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/graph/flow.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

class ReachingDefinitions {
 public:
  ReachingDefinitions(const ControlFlow& flow, const VirtualRegisters& registers, const Liveness& liveness);

  [[nodiscard]] bool known() const { return known_; }

  // Where the value of a register comes from.
  struct Origins {
    std::vector<uint32_t> definitions;  // instructions, ascending
    bool entry = false;                 // or the value at the function's entry
    friend bool operator==(const Origins&, const Origins&) = default;
  };
  // The origins of what `instruction` reads in a register; none if it does not read it. In code that cannot
  // be reached the only origin is the entry: nothing is known of a value there.
  [[nodiscard]] Origins origins(uint32_t instruction, uint32_t reg) const;
  // The one instruction that wrote what `instruction` reads, if there is no other origin and it always writes
  // the whole register.
  [[nodiscard]] std::optional<uint32_t> only_definition(uint32_t instruction, uint32_t reg) const;
  // The instructions that may read what `instruction` writes to a register, ascending.
  [[nodiscard]] std::vector<uint32_t> uses(uint32_t instruction, uint32_t reg) const;

  // Definitions, merges and entries that were made, for showing that the cost is bounded.
  [[nodiscard]] size_t values() const { return values_.size(); }

 private:
  friend class ReachingBuilder;
  static constexpr uint32_t kNone = ~0u;
  struct Value {
    uint32_t instruction = kNone;  // of a definition; none for entry and merge
    bool entry = false;
    std::vector<uint32_t> from = {};  // values that go on in this one
  };
  [[nodiscard]] uint32_t access_of(uint32_t instruction, uint32_t reg) const;
  void invert();
  void list_all();

  const ControlFlow& flow_;
  const VirtualRegisters& registers_;
  bool known_ = false;
  std::vector<Value> values_;
  std::vector<uint32_t> read_, written_;                           // access -> value, or kNone
  std::vector<uint32_t> reader_start_, reader_;                    // value -> instructions that read it
  std::vector<uint32_t> onward_start_, onward_;                    // value -> values it goes on in
  std::vector<std::vector<uint32_t>> all_definitions_, all_uses_;  // by register, where nothing is known
};

// One line a read: the instruction's line, the register, its origins.
std::string print_reaching(const ControlFlow& flow, const VirtualRegisters& registers,
                           const ReachingDefinitions& reaching);

}  // namespace klap::analysis
