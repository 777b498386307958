// ChainFacts holds what is known of a chain (promotion.h). A chain is a kernel of one block that launches one
// block of itself; its links are the runs of that kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/launches/sites.h"
#include "ptx/tree.h"

namespace klap::analysis {

// How link n gets an argument.
enum class LinkArgument {
  Unchanged,  // stored as it came: the first launch's for all links
  Stepped,    // first value + n * step, or first value * step^n, modulo 2^(8 * bytes)
  Available,  // a pure function of arguments that are not postponed, and of special registers and constants
  Postponed,  // anything else: known when the link before makes its launch
};

// A postponed argument that leaves a link as `argument operation value`, where the value needs no postponed
// argument. Then many links' values can be combined before any of them knows its argument.
struct CarriedArgument {
  std::string operation;            // PTX with its type: "add.s32", "max.f32", "and.b32", ...
  std::vector<std::string> values;  // operands whose combination is the value, registers or literals
};

struct ChainArgument {
  uint32_t offset = 0, bytes = 0;  // in the parameter block, as the site stores it
  LinkArgument kind = LinkArgument::Postponed;
  bool multiplies = false;  // Stepped: by `step`, else adds it
  uint64_t step = 0;
  std::string source;  // the stored operand: register or literal
  std::string type;    // of the store, ".u32"
  const ptx::Statement* store = nullptr;
  std::optional<CarriedArgument> carried;
};

// A predicate register that must be true (or false) for the launch to be reached.
struct ChainTest {
  std::string predicate;
  bool negated = false;
};

// A value that a Counted condition compares, `value - minus`: from each link to the next it rises or falls by
// `step`. Behind the end of the chain it may wrap around, and the tests hold again. Examples are links `tile
// + 1 < tiles` with tiles near 2^31, or a countdown that begins below zero. So a link exists only if the
// value has not wrapped around from the first link to the one before it. With v the value for that earlier
// link, whose number is k (the first link's is 0), and `first` = v - k * step, or v + k * step where it
// falls, both modulo 2^bits:
//     k <= (2^bits - 1) / step  and  first <= v (v <= first where it falls), as signed or unsigned.
struct ChainCounter {
  std::string value, minus;  // registers that test_slice computes, or literals; `minus` may be empty
  uint32_t bits = 32;        // 16, 32 or 64: of the comparison
  bool is_signed = false;
  bool falls = false;
  uint64_t step = 1;  // not 0
};

enum class LinkCondition {
  Counted,    // a link exists exactly if the tests, and the counters, held for the one before
  Available,  // the tests are pure functions of arguments that are not postponed
  AtSite,     // known when the launch is made or passed by
};

// Straight-line code that computes values from parameters, special registers and constants: instructions in
// text order, each a definition of registers that nothing else defines; none touches memory other than
// parameters.
using Slice = std::vector<const ptx::Statement*>;

struct ChainFacts {
  const Site* site = nullptr;
  std::array<uint32_t, 3> block{};       // constant
  uint32_t shared_bytes = 0;             // dynamic, constant
  std::vector<ChainArgument> arguments;  // by offset; they cover all parameters that the kernel reads
  LinkCondition condition = LinkCondition::AtSite;
  std::vector<ChainTest> tests;        // Counted, Available: all must hold, for one thread of the block
  std::vector<ChainCounter> counters;  // Counted: for each test that changes with the link
  Slice test_slice;                    // computes the tests' predicates, and what the counters name
  Slice next_slice;                    // computes the sources of Available arguments
  std::string condition_text;          // for the remark: why it is not better, or what it is

  // Overlap: code before `boundary` needs nothing of earlier links. All threads of the block come to it
  // exactly once, before the launch and before any write that others can see. It is null if nothing overlaps.
  const ptx::Statement* boundary = nullptr;
  // Pure instructions in front of the boundary that use postponed arguments, `ld.param` among them, in text
  // order: they are to stand behind the acquire instead.
  Slice moved;
  std::string boundary_text;  // for the remark: what ends the region, with its place
  bool boundary_is_annotated = false;

  // True if four conditions hold. Each postponed argument is carried. The condition is Counted. Values are
  // known at the boundary by thread 0, which makes the launch. Between boundary and launch no thread touches
  // memory that others can see.
  bool looks_back = false;
  std::string look_back_text;  // why not
};

}  // namespace klap::analysis
