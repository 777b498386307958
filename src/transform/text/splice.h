// Splicing: the body of one PTX function, copied into another.
//
// Every name that the body declares gets a prefix of its own, so nothing can clash; parameters, results,
// special registers and, unless it is kept, the function's exit are bound to what the surrounding code
// provides. The result is a brace-delimited scope that falls through at its end. Its line tables (.loc) are
// those of the spliced code.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/launches/sites.h"
#include "analysis/legality/shared_overlay.h"
#include "analysis/legality/warp_block.h"
#include "analysis/optimise/straight_loops.h"
#include "analysis/ranges/range_loop.h"
#include "analysis/synchronisation/early_exit.h"
#include "ptx/tree.h"
#include "transform/text/lines.h"
#include "transform/text/record_layout.h"

namespace klap::transform {

// Marker names of a template, and the names that replace them.
using SymbolNames = std::map<std::string, std::string, std::less<>>;

// A `.func` template: parameters become operands (registers or literals) of the caller, results registers of
// it.
struct InlineCall {
  std::string prefix;                       // for declared names, for example "klap_r_"
  std::vector<std::string> arguments;       // one operand per parameter
  std::map<uint32_t, std::string> results;  // offset in the result -> register
  SymbolNames symbols;                      // functions that the template calls by a marker's name
  // Calls of this marker become the text that is made for their operands.
  std::string body_marker;
  std::function<std::string(const std::vector<std::string>& operands)> body;
};
// Throws Error(Internal) if the template uses a form that is not provided for.
std::string inline_function(const ptx::Module& module, const ptx::Function& function, const InlineCall& call,
                            LineTables& lines);

// Text in front of a statement and behind it.
struct Around {
  std::string before, after;
  bool instead = false;  // the statement itself is left out
};
using Surroundings = std::map<const ptx::Statement*, Around>;

// "%r1" -> "%klap_c_r1", "$L1" -> "$klap_c_L1": the sigil stays first, as PTX names want it. Literals stay. A
// register whose name has no number gets one more underscore, "%tid_x" -> "%klap_c__tid_x", since the
// generated code has such names: "%klap_c_tid_x". Without a prefix names stay as they are.
std::string with_prefix(std::string_view name, const std::string& prefix);

// A read of the kernel's parameters in one way, and the register that holds its value.
struct PreloadedArgument {
  uint32_t offset = 0;  // in the parameter block
  std::string type;     // that it is loaded as: ".u32"
  uint32_t bits = 0;    // of the register, which may be more than the type's
  std::string name;
};
// The preloaded arguments: those for which `most_words` registers of 32 bits have room, in the order in which
// the kernel reads them. Their names begin with `prefix`.
std::vector<PreloadedArgument> preloaded_arguments(const ptx::Module& module, const ptx::Function& function,
                                                   const std::string& prefix, uint32_t most_words);

// A loop of which so many iterations are to stand in a row.
struct UnrolledCopy {
  analysis::StraightLoop loop;
  uint32_t iterations = 1;
};

// A child kernel's body: its parameters lie elsewhere, its position is virtual.
struct InlineKernel {
  std::string prefix;
  std::string arguments;                     // operand: address of the argument area, in global memory
  std::vector<ArgumentPlace> places;         // where they lie in it; none: as in the parameter block
  std::string once;                          // operand: address of those that are passed once
  std::vector<PreloadedArgument> preloaded;  // arguments that are in registers
  // The operands themselves, if the body runs in the thread that has them. Then the arguments lie nowhere in
  // memory, and each read of a parameter reads one of these operands.
  const std::vector<analysis::Argument>* operands = nullptr;
  std::array<std::string, 3> ctaid, nctaid, tid;  // operands, x y z
  std::array<std::string, 3> ntid;                // extents of the block: literals where they are constant
  bool block_is_real = false;                     // it runs in a block of its own size: %ntid is right
  bool in_parameters = false;                     // `arguments` is an address of the kernel's own parameters
  bool keep_exits = false;                        // `ret` and `exit` end the thread, as in the child itself
  // The body may read memory that was written in the same kernel, so every load must be coherent.
  bool coherent = false;
  // Loads of global memory whose data will not be loaded again, so that other data may stay in the caches.
  const std::set<const ptx::Statement*>* streamed = nullptr;
  // The threads that may exit early. Barriers are then those of templates/common/exits.h.
  analysis::MayExit may_exit = analysis::MayExit::Nobody;
  // A block of one warp among several: shared variables have a part for each. `group` is the 32-bit operand
  // that says which part is the warp's.
  const analysis::WarpBlock* warp_block = nullptr;
  std::string group;
  uint32_t groups = 1;
  // Shared variables that are parts of the variable `overlay` instead.
  std::span<const analysis::OverlaidVariable> overlaid;
  std::string overlay;
  // Statements that are told another index of the thread, or another width of its block, where these operands
  // are not empty. All others find arguments that are in `elsewhere` in other registers than `preloaded`
  // says.
  const analysis::HigherThreads* higher = nullptr;
  std::string higher_index, wider_block;
  std::vector<PreloadedArgument> elsewhere;
  // Text in front of a statement that all threads reach, behind which only those go on for which the
  // predicate holds; the others leave the body.
  const ptx::Statement* parting = nullptr;
  std::string parting_text, parting_predicate;
  Surroundings around;              // of statements of the body
  std::vector<UnrolledCopy> loops;  // of the body
};
// All different reads of the bytes from `offset` on, as they begin there. They have no names.
std::vector<PreloadedArgument> argument_reads(const ptx::Module& module, const ptx::Function& function,
                                              uint32_t offset);
// Loads an argument into its register, which is declared elsewhere.
std::string load_preloaded(const ptx::Function& function, const PreloadedArgument& preloaded,
                           const InlineKernel& kernel);
// Loads `kernel.preloaded` into their registers, which are declared elsewhere.
std::string load_preloaded(const ptx::Function& function, const InlineKernel& kernel);

// Throws Error(Unsupported) naming the line if a parameter or a special register is used in a way that cannot
// be redirected.
std::string inline_kernel(const ptx::Module& module, const ptx::Function& function,
                          const InlineKernel& kernel, LineTables& lines);

}  // namespace klap::transform
