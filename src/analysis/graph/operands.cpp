#include "analysis/graph/operands.h"

#include <algorithm>
#include <array>

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;

namespace {

using Opcode = std::string_view;

// Both tables are in alphabetical order. Instructions whose first operand is an address stand in the first:
// an address is not written by rule.
constexpr std::array kWritesFirst = std::to_array<Opcode>({
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "atom",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "fma",
    "fns",
    "getctarank",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "multimem",
    "neg",
    "not",
    "or",
    "popc",
    "prmt",
    "rcp",
    "redux",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "stacksave",
    "sub",
    "subc",
    "suld",
    "suq",
    "szext",
    "tanh",
    "tcgen05",
    "tensormap",
    "testp",
    "tex",
    "tld4",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wmma",
    "xor",
});
constexpr std::array kWritesNothing = std::to_array<Opcode>({
    "applypriority", "bar",   "barrier",        "bra",    "brkpt",        "brx",      "cp",       "discard",
    "exit",          "fence", "griddepcontrol", "membar", "nanosleep",    "pmevent",  "prefetch", "prefetchu",
    "red",           "ret",   "setmaxnreg",     "st",     "stackrestore", "stmatrix", "sured",    "sust",
    "trap",
});
static_assert(std::is_sorted(kWritesFirst.begin(), kWritesFirst.end()));
static_assert(std::is_sorted(kWritesNothing.begin(), kWritesNothing.end()));

template <size_t N>
bool contains(const std::array<Opcode, N>& table, Opcode opcode) {
  return std::binary_search(table.begin(), table.end(), opcode);
}

// What happens to the first operand, where it is no address.
OperandUse first_operand_use(const Module& m, const Statement& s, Opcode opcode) {
  // A call without a result names the function first; with one, the results stand in brackets.
  if (opcode == "call") return m.is(s.operands[0].first, "(") ? OperandUse::Written : OperandUse::Read;
  if ((opcode == "bar" || opcode == "barrier") && m.has_modifier(s, ".red")) return OperandUse::Written;
  // The accumulator of an asynchronous product is its result too.
  if (opcode == "wgmma")
    return m.has_modifier(s, ".mma_async") ? OperandUse::ReadAndWritten : OperandUse::Read;
  if (opcode == "tcgen05" && m.has_modifier(s, ".dealloc")) return OperandUse::Read;
  if (contains(kWritesNothing, opcode)) return OperandUse::Read;
  return OperandUse::Written;
}

}  // namespace

bool is_known_opcode(Opcode opcode) {
  return contains(kWritesFirst, opcode) || contains(kWritesNothing, opcode) || opcode == "call" ||
         opcode == "wgmma";
}

OperandUse operand_use(const Module& module, const Statement& instruction, size_t index) {
  if (module.is(instruction.operands[index].first, "[")) return OperandUse::Read;
  const Opcode opcode = module.text(instruction.head);
  if (!is_known_opcode(opcode)) return OperandUse::Unknown;
  return index == 0 ? first_operand_use(module, instruction, opcode) : OperandUse::Read;
}

}  // namespace klap::analysis
