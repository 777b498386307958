// The footprint of a kernel: every access to memory that other kernels can see, in the kernel and in what it
// calls.
//
// The accesses of two children decide whether their launches may overlap. So nothing may be missing here: an
// access that is not understood appears with an unknown address and an unknown root. Local and shared memory,
// parameters and the argument buffers of launches are left out, since no other grid sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/expressions/expression.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"

namespace klap::analysis {

// The sources that an address is computed from, besides parameters, constants and the thread's place.
struct AddressSources {
  // Something else takes part: shared or local memory, other lanes, calls, registers that share a name.
  bool unknown = false;
  std::set<uint32_t> loads;    // instructions that load from global memory, addresses of loads included
  std::set<uint32_t> atomics;  // instructions whose result takes part
  // Loads of the kernel's parameters. Where only the address of a load is computed from one, it is not among
  // them.
  std::set<uint32_t> parameters;
};

struct MemoryAccess {
  enum class Kind : uint8_t { Read, Write, Atomic };
  Kind kind = Kind::Read;
  uint32_t instruction = 0;         // in the kernel's flow; that of the call for what a callee does
  std::string place;                // "st.global.u32 (line 12:2)"
  std::set<MemoryRoot> roots;       // in terms of the kernel
  uint32_t bytes = 0;               // 0: not known
  std::string operation;            // of an atomic: "add.u32"; empty where it is not known
  bool returns = false;             // of an atomic: its result may be used
  bool is_strong = false;           // an atomic, or volatile or with an order of memory
  std::optional<uint32_t> address;  // operand that has it; none for what a callee does
  std::optional<uint32_t> value;    // operand that is stored or added

  [[nodiscard]] bool reads_only() const { return kind == Kind::Read; }
  // A program may look at strong changes while the kernel runs, by strong accesses. All others would race.
  [[nodiscard]] bool may_be_seen() const { return is_strong && !reads_only(); }
  [[nodiscard]] bool looks() const { return is_strong && (reads_only() || returns); }
};

struct Footprint {
  std::vector<MemoryAccess> accesses;
  // Something else that other grids or the host can tell the order of: "printf (line 12:2)"; empty if none.
  std::string visible;
};

// `effects` are the memory effects of the kernel.
Footprint footprint_of(const FunctionFacts& kernel, const MemoryEffects& effects);

// The sources that operand `address` of an instruction is computed from.
AddressSources address_sources(const FunctionFacts& kernel, uint32_t instruction, uint32_t operand);

}  // namespace klap::analysis
