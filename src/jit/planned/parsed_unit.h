// The units of a program as they are analysed: parsed, and with what hides launches expanded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/inline/inlining.h"
#include "jit/data/unit.h"
#include "ptx/source_lines.h"
#include "ptx/tree.h"

namespace klap::jit {

// A unit with its PTX parsed on first use. PTX for a target that the device is not among is read as PTX for
// the device's: the assembler will find what needs the other one, and retarget.h what it may mean.
//
// Analyses see the unit after six changes, and variants are made from that. Each `ldu` becomes `ld`,
// which may stand wherever it does. Asynchronous copies of launched kernels are done at once
// (analysis/inline/asynchronous_copies.h). Computations are moved out of calls' scopes
// (analysis/inline/sunk_computations.h). Copies of large arguments are expanded
// (analysis/inline/copy_loops.h). Some called functions become part of its kernels
// (analysis/inline/inlining.h). Buffers are asked for where they are filled
// (analysis/inline/early_requests.h). What stands for the program's own code is the unit as it is.
class ParsedUnit {
 public:
  // The kernels that units of the program may launch; asked only where a kernel calls functions.
  using LaunchedKernels = std::function<const analysis::KernelNames&()>;
  using Names = std::set<std::string, std::less<>>;
  ParsedUnit(const Unit& unit, uint32_t sm, LaunchedKernels launched = {}, Names disputed = {})
      : unit_(unit), sm_(sm), launched_(std::move(launched)), disputed_(std::move(disputed)) {}
  [[nodiscard]] const Unit& unit() const { return unit_; }
  // The unit as the program has it. Null when it carries no PTX. Throws Error(Parse).
  [[nodiscard]] const ptx::Module* original();
  // The unit as it is analysed; the original itself if nothing in it is changed for that.
  [[nodiscard]] const ptx::Module* module();
  // The lines of the program's source that original() names. It must not be null.
  [[nodiscard]] const ptx::SourceLines& source_lines();
  // True for a function of module() that no code of the unit gets to any more.
  [[nodiscard]] bool is_expanded(const ptx::Function& function);
  // The target that the PTX was made for, where it is read as PTX for another one; else empty.
  [[nodiscard]] const std::string& made_for() const { return made_for_; }

 private:
  // The kernels that the program may launch.
  [[nodiscard]] analysis::KernelNames launched(const ptx::Module& unit) const;
  // The original with `ldu` as `ld`; itself where it has none.
  const ptx::Module& plain();
  // plain() with asynchronous copies as loads and stores.
  const ptx::Module& synchronous();
  // synchronous() with what its calls' scopes compute in front of them.
  const ptx::Module& lifted();
  // lifted() with copies expanded.
  const ptx::Module& unrolled();
  // unrolled() with calls inlined.
  const ptx::Module& inlined();
  // inlined() with calls for buffers moved.
  const ptx::Module& moved();

  const Unit& unit_;
  uint32_t sm_;
  LaunchedKernels launched_;
  Names disputed_;  // -> ptx::Module::disputed
  std::optional<ptx::Module> original_, plain_, synchronous_, lifted_, unrolled_, inlined_, moved_;
  const ptx::Module* module_ = nullptr;  // one of these, once it is found
  std::optional<std::set<std::string_view>> in_use_;
  std::string made_for_;
  std::optional<ptx::SourceLines> source_lines_;
};

// The kernels that the launching units of a program name, found out when somebody asks.
class LaunchedKernels {
 public:
  void add(ParsedUnit& unit) { units_.push_back(&unit); }
  const analysis::KernelNames& names();

 private:
  std::vector<ParsedUnit*> units_;
  std::optional<analysis::KernelNames> names_;
};

// The names of constants that units of the program may fill otherwise (analysis/graph/module_constants.h).
ParsedUnit::Names disputed_in(const Program& program);

}  // namespace klap::jit
