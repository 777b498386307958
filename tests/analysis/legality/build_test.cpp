// What only shows when rewritten code is built: sites that are left then, and what is said of how the others
// are built, word for word.
#include <gtest/gtest.h>

#include "assembled.h"
#include "fixture.h"

namespace klap::test {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t changes = 0;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size(), ++changes)
    text.replace(at, from.size(), to);
  if (changes == 0) throw std::runtime_error("the fixture does not hold: " + from);
  return text;
}

// A program of one unit with machine code made from the PTX.
jit::Program complete(const std::string& ptx) {
  jit::Program program = jit::program_from_ptx(ptx, "unit");
  program.units[0].cubin = assembled(replaced(ptx, ".target sm_", ".target sm_90 //"));
  return program;
}

std::string built(const jit::Program& program) {
  jit::Request request;
  request.by_sizes = false;
  request.sm = 90;
  std::string text;
  for (const jit::SiteRemark& remark : rewrite_module(program, request).remarks) text += remark_text(remark);
  return text;
}

constexpr char kRewritten[] =
    "_Z6parentPiPKi launches _Z5childPii: rewritten: block 32x1x1, moldable, flattened: threads with i < "
    "argument 2 of child (int), 256 to a consumer block, children without threads skipped, 12 argument "
    "bytes, 1 of 2 arguments "
    "grid-uniform, passed once, record 8 bytes, "
    "NULL stream\n"
    "  in short: flattened\n"
    "  note: order proven: children of different threads never conflict\n";

// The fixture's child uses a variable that other units cannot name.
std::string with_internal_variable(const std::string& ptx) {
  const std::string text = replaced(ptx, ".visible .entry _Z5childPii(",
                                    ".global .align 4 .u32 counter;\n.visible .entry _Z5childPii(");
  return replaced(text, "\tadd.s64 \t%rd4, %rd2, %rd3;", "\tmov.u64 \t%rd4, counter;");
}

TEST(Build, OfAUnitWithItsMachineCodeNeedsNoNote) {
  EXPECT_EQ(std::string("unit:95:2: ") + kRewritten, built(complete(fixture("cdp2"))));
}

TEST(Build, SaysWhyAUnitIsAssembledAnew) {
  EXPECT_EQ(std::string("unit:95:2: ") + kRewritten +
                "  note: the unit is assembled anew: the unit carries no machine code for this device\n",
            built(jit::program_from_ptx(fixture("cdp2"), "unit")));
  EXPECT_EQ(std::string("unit:96:2: ") + kRewritten +
                "  note: the unit is assembled anew: variable counter is internal to the unit\n",
            built(complete(with_internal_variable(fixture("cdp2")))));
}

TEST(Build, LeavesAUnitThatWouldHaveToBeAssembledFromPtxForANewerTarget) {
  const std::string text = replaced(fixture("cdp2"), ".target sm_80", ".target sm_100");
  EXPECT_EQ(
      "unit:96:2: _Z6parentPiPKi launches _Z5childPii: left (target-too-new): unit: all of the unit would "
      "have "
      "to be assembled from PTX for sm_100: variable counter is internal to the unit\n",
      built(complete(with_internal_variable(text))));
}

TEST(Build, LeavesSitesOfProgramsWithAUnitOfNothing) {
  jit::Program program = jit::program_from_ptx(fixture("cdp2"), "unit");
  program.units.emplace_back().name = "empty";
  EXPECT_EQ(
      "unit:95:2: _Z6parentPiPKi launches _Z5childPii: left (unit-options): empty: the unit has neither "
      "machine "
      "code nor PTX for this device\n",
      built(program));
}

TEST(Build, OfTheSameKernelTwice) {
  const std::string weak = replaced(fixture("cdp2"), ".visible .entry", ".weak .entry");
  jit::Program program = jit::program_from_ptx(weak, "unit");
  program.units.push_back(jit::program_from_ptx(weak, "again").units[0]);
  const std::string anew =
      "  note: the unit is assembled anew: the unit carries no machine code for this device\n";
  EXPECT_EQ(std::string("unit:95:2: ") + kRewritten + anew + "again:95:2: " + kRewritten +
                "  note: the same kernel stands in an earlier unit, whose variant serves both\n",
            built(program));
}

}  // namespace
}  // namespace klap::test
