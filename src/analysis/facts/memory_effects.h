// Which memory a function reads, writes and updates atomically, as far as addresses can be followed.
//
// Every address is traced back to its roots: pointers in parameters, variables by name, the function's own
// local memory, the argument buffers of launches. An address that cannot be traced has the root `unknown` and
// may be anything.
//
// Arithmetic on a pointer is taken to stay in the object that it points to, as in the languages that PTX is
// compiled from. A value that is a pointer on one way and computed from narrower values on another is taken
// for any pointer: programs pass pointers in two words.
//
// The analysis concludes:
//  - Different variables of a module do not overlap, and neither do different address spaces. (All dynamic
//    shared arrays are one variable.)
//  - Two pointers in parameters may point to the same memory, and so may a pointer and a variable. Only a
//    declared space (`.ptr .shared`) or the spaces of the accesses set pointers apart.
//  - `ld.global.nc` says that the kernel itself does not write what is read there while it runs; PTX gives no
//    meaning to a program in which it does. So a function does not change memory that it reads by `.nc` only,
//    under whatever name. This says nothing about the writes of other kernels.
//  - The argument buffer of a launch is the runtime's and overlaps nothing that the program names.
// The effects of children on memory are not part of their parent's effects.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/effects/effects.h"
#include "analysis/facts/facts.h"

namespace klap::analysis {

struct MemoryRoot {
  enum class Kind : uint8_t { Unknown, Parameter, Symbol, Local, LaunchBuffer };
  Kind kind = Kind::Unknown;
  uint32_t parameter = 0, offset = 0;  // Parameter: which one, and where in it the pointer stands
  std::string name;                    // Symbol
  // "global", "shared", "const", "local", "texture"; "" where only a generic address is known.
  std::string space;
  auto operator<=>(const MemoryRoot&) const = default;
};

struct MemoryUse {
  bool read = false;  // other than by .nc
  bool read_nc = false;
  bool written = false;
  bool updated = false;  // by atomics or reductions
  [[nodiscard]] bool changes() const { return written || updated; }
  void add(const MemoryUse& other);
};

class MemoryEffects {
 public:
  // Memory effects of the function and its callees, as seen from the function. Callees that cannot be seen,
  // recursion and instructions that are on no list count as reads and writes of unknown memory.
  explicit MemoryEffects(const FunctionFacts& function);

  [[nodiscard]] const std::map<MemoryRoot, MemoryUse>& uses() const { return uses_; }
  // The uses of one of the function's instructions. A call has the uses of its callee.
  [[nodiscard]] const std::map<MemoryRoot, MemoryUse>& uses_of(const ptx::Statement& instruction) const;
  // The memory that a register or a name can point to, as far as it can be followed. It is empty for a value
  // that is no pointer.
  [[nodiscard]] std::set<MemoryRoot> roots_of(std::string_view operand) const;
  // True unless the memory behind a root is shown not to be changed by this function, under whatever name.
  [[nodiscard]] bool may_change(const MemoryRoot& root) const;

 private:
  std::map<MemoryRoot, MemoryUse> uses_;
  std::map<const ptx::Statement*, std::map<MemoryRoot, MemoryUse>> by_instruction_;
  std::map<std::string, std::set<MemoryRoot>, std::less<>> by_name_;
};

// False only if shown; see above.
bool may_overlap(const MemoryRoot& a, const MemoryRoot& b);

std::string to_text(const MemoryRoot& root);
// One line for each root: "parameter 0 (global): read, written".
std::string print_memory_effects(const FunctionFacts& function);

}  // namespace klap::analysis
