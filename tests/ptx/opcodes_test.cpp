// The table of opcodes beside the PTX manual: it leaves nothing out, has nothing that PTX has not, and its
// columns do not contradict each other.
#include "ptx/opcodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace klap::ptx {
namespace {

using testing::IsEmpty;
using Names = std::vector<std::string_view>;

// The first words of all instructions, in the order of chapter 9.7 of "Parallel Thread Execution ISA",
// version 9.0.
const Names kManual = {
    // Integer arithmetic
    "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "popc",
    "clz", "bfind", "fns", "brev", "bfe", "bfi", "szext", "bmsk", "dp4a", "dp2a",
    // Extended-precision integer arithmetic; add.cc, sub.cc and mad.cc are forms of the above.
    "addc", "subc", "madc",
    // Floating point, also half and mixed precision
    "testp", "copysign", "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh",
    // Comparison and selection
    "set", "setp", "selp", "slct",
    // Logic and shift
    "and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr",
    // Data movement and conversion
    "mov", "shfl", "prmt", "ld", "ldu", "st", "multimem", "prefetch", "prefetchu", "applypriority", "discard",
    "createpolicy", "isspacep", "cvta", "cvt", "mapa", "getctarank", "cp", "tensormap",
    // Texture and surface
    "tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq",
    // Control flow
    "bra", "brx", "call", "ret", "exit",
    // Parallel synchronisation and communication
    "bar", "barrier", "membar", "fence", "atom", "red", "vote", "match", "activemask", "redux",
    "griddepcontrol", "elect", "mbarrier", "clusterlaunchcontrol",
    // Matrices of a warp, of a group of warps, and of tensor cores of the 5th generation
    "wmma", "mma", "ldmatrix", "stmatrix", "movmatrix", "wgmma", "tcgen05",
    // Stack
    "stacksave", "stackrestore", "alloca",
    // Video: scalar, then of two and four values
    "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset", "vadd2", "vsub2", "vavrg2",
    "vabsdiff2", "vmin2", "vmax2", "vset2", "vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4",
    "vset4",
    // Miscellaneous
    "brkpt", "nanosleep", "pmevent", "trap", "setmaxnreg"};

// Instructions of later versions, about which nobody has decided yet. They are taken for the worst.
const Names kRefused = {"clmad", "fabric"};

bool has(const Names& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

// The names of all rows for which something holds.
template <typename Holds>
Names rows(Holds&& holds) {
  Names out;
  for (const Opcode& opcode : all_opcodes()) {
    if (holds(opcode)) out.push_back(opcode.name);
  }
  return out;
}

TEST(Opcodes, EveryInstructionOfTheManualIsListed) {
  Names missing;
  std::ranges::copy_if(kManual, std::back_inserter(missing),
                       [](std::string_view name) { return !opcode_of(name).is_known(); });
  EXPECT_THAT(missing, IsEmpty());
  Names listed;
  std::ranges::copy_if(kRefused, std::back_inserter(listed),
                       [](std::string_view name) { return opcode_of(name).is_known(); });
  EXPECT_THAT(listed, IsEmpty()) << "these are no longer refused";
}

TEST(Opcodes, EveryRowIsInTheManual) {
  EXPECT_THAT(rows([](const Opcode& opcode) { return !has(kManual, opcode.name); }), IsEmpty());
  EXPECT_EQ(kManual.size(), all_opcodes().size()) << "the manual's list has a name twice";
}

TEST(Opcodes, AreFoundByTheirName) {
  for (const Opcode& opcode : all_opcodes()) EXPECT_EQ(&opcode, &opcode_of(opcode.name)) << opcode.name;
  const Module module = parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {\n.reg .u32 %r1;\nmul.lo.u32 %r1, %r1, "
      "2;\n}\n",
      "a.ptx");
  Names found;
  for_each_statement(module.functions.front().body, [&](const Statement& s) {
    if (s.kind == StatementKind::Instruction) found.push_back(opcode_of(module, s).name);
  });
  EXPECT_THAT(found, testing::ElementsAre("mul"));
}

TEST(Opcodes, WithoutARowAreTakenForTheWorst) {
  for (const std::string_view name : {"", "a", "ad", "addd", "ADD", "add.u32", "xorr", "zzz", "clmad"}) {
    const Opcode& opcode = opcode_of(name);
    EXPECT_FALSE(opcode.is_known()) << name;
    EXPECT_EQ(FirstOperand::Unknown, opcode.first);
    EXPECT_EQ(OpcodeResult::Other, opcode.result);
    EXPECT_EQ(OpcodeEffect::Unlisted, opcode.effect);
    EXPECT_EQ(GlobalWrite::May, opcode.writes_global);
    EXPECT_EQ(Synchronisation::May, opcode.synchronises);
    EXPECT_EQ(Lanes::None, opcode.lanes);
  }
}

// What only computes has no effect of any kind, and every row says what happens to its first operand.
TEST(Opcodes, ColumnsDoNotContradictEachOther) {
  EXPECT_THAT(rows([](const Opcode& opcode) { return opcode.first == FirstOperand::Unknown; }), IsEmpty());
  EXPECT_THAT(rows([](const Opcode& opcode) {
                return opcode.is_computation() &&
                       (opcode.first != FirstOperand::Written || opcode.effect != OpcodeEffect::None ||
                        opcode.writes_global != GlobalWrite::Never ||
                        opcode.synchronises != Synchronisation::Never || opcode.lanes != Lanes::None);
              }),
              IsEmpty());
  EXPECT_THAT(rows([](const Opcode& opcode) {
                return opcode.result == OpcodeResult::Memory && opcode.first != FirstOperand::Written;
              }),
              IsEmpty());
  EXPECT_THAT(rows([](const Opcode& opcode) {
                return opcode.effect == OpcodeEffect::WarpSync &&
                       (opcode.lanes == Lanes::None || opcode.writes_global != GlobalWrite::Never);
              }),
              IsEmpty());
  EXPECT_THAT(rows([](const Opcode& opcode) {
                const bool orders = opcode.effect == OpcodeEffect::Fence ||
                                    opcode.effect == OpcodeEffect::Barrier ||
                                    opcode.effect == OpcodeEffect::Atomic;
                return orders && opcode.synchronises != Synchronisation::May;
              }),
              IsEmpty());
}

}  // namespace
}  // namespace klap::ptx
