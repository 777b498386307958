// A call for an argument buffer may be moved behind the computation of the arguments only where nothing can
// tell the difference.
#include "analysis/inline/early_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fixture.h"
#include "ptx/tree.h"
#include "transform/text/moved_requests.h"

namespace klap::analysis {
namespace {

using testing::IsEmpty;
using testing::Not;

constexpr char kLoad[] = "\tld.global.u32 \t%r11, [%rd1];\n";
constexpr char kTest[] = "\tsetp.eq.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$L__BB1_3;\n";
constexpr char kGuard[] = "\t@%p1 bra \t$L__BB1_3;\n";

// A loop that computes what the fixture loads.
constexpr char kLoop[] =
    "\tmov.u32 %r11, %r1;\n$loop:\n\tshr.u32 %r11, %r11, 1;\n\tsetp.gt.u32 %p1, %r11, 9;\n\t@%p1 bra "
    "$loop;\n";

std::string with_loop(const std::string& loop = kLoop) { return replaced(fixture("cdp2"), kLoad, loop); }

const ptx::Function& parent(const ptx::Module& module) {
  const ptx::Function* found = module.find_function("_Z6parentPiPKi");
  EXPECT_NE(nullptr, found);
  return *found;
}

// The problem of the parent's launch once calls are moved.
std::string problem_of(const std::string& text) {
  const ptx::Module module = ptx::parse(text, "fixture");
  const ptx::Module moved =
      transform::with_moved_requests(module, find_early_requests(module, parent(module)));
  const FunctionFacts facts(moved, parent(moved));
  EXPECT_EQ(1u, facts.sites.size());
  // Messages name the program's own lines.
  const FunctionFacts before(module, parent(module));
  EXPECT_EQ(module.place(before.sites.at(0).get_call->head), moved.place(facts.sites.at(0).get_call->head));
  return facts.sites.at(0).problem;
}

bool is_moved(const std::string& text) {
  const ptx::Module module = ptx::parse(text, "fixture");
  return !find_early_requests(module, parent(module)).empty();
}

TEST(EarlyRequest, IsMovedBehindALoop) {
  EXPECT_FALSE(is_moved(fixture("cdp2")));
  EXPECT_NE("", Parsed(with_loop()).site().problem);
  EXPECT_EQ("", problem_of(with_loop()));
}

TEST(EarlyRequest, IsMovedBehindABranch) {
  const std::string branch = "\tmov.u32 %r11, 7;\n\tsetp.gt.u32 %p1, %r1, 9;\n\t@%p1 bra $behind;\n" +
                             std::string(kLoad) + "$behind:\n";
  EXPECT_EQ("", problem_of(with_loop(branch)));
}

TEST(EarlyRequest, IsMovedWhereTheBranchGoesToTheLaunch) {
  const std::string text = replaced(with_loop(), kTest,
                                    "\tsetp.ne.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$filled;\n\tbra $L__BB1_3;\n"
                                    "$filled:\n");
  EXPECT_EQ("", problem_of(text));
}

TEST(EarlyRequest, IsMovedBehindAFunctionThatOnlyComputes) {
  const std::string call =
      "\t{\n\t.param .b32 given;\n\tst.param.b32 [given], %r1;\n\t.param .b32 got;\n"
      "\tcall.uni (got), half, (given);\n\tld.param.b32 %r11, [got];\n\t}\n";
  const auto with_function = [&](const std::string& body) {
    return replaced(with_loop(call), "\t// .globl\t_Z6parentPiPKi\n",
                    ".func (.param .b32 r) half(.param .b32 p)\n{\n\t.reg .b32 %r<3>;\n\t.reg .b64 %d;\n"
                    "\tld.param.u32 %r1, [p];\n" +
                        body + "\tshr.u32 %r1, %r1, 1;\n\tst.param.b32 [r], %r1;\n\tret;\n}\n");
  };
  EXPECT_NE("", Parsed(with_function("")).site().problem);
  EXPECT_EQ("", problem_of(with_function("")));
  EXPECT_FALSE(is_moved(with_function("\tst.global.u32 [%d], %r1;\n")));
  EXPECT_FALSE(is_moved(with_function("\tatom.global.add.u32 %r1, [%d], 1;\n")));
  EXPECT_FALSE(is_moved(with_function("\tbar.sync 0;\n")));
  EXPECT_FALSE(is_moved(with_function("\texit;\n")));
}

TEST(EarlyRequest, TakesTheStoresInFrontOfACallWithIt) {
  const std::string call =
      "\tst.u64 [%rd2], %rd3;\n\t{\n\t.param .b32 given;\n\tst.param.b32 [given], %r1;\n\t.param .b32 got;\n"
      "\tcall.uni (got), half, (given);\n\tld.param.b32 %r11, [got];\n\t}\n";
  const std::string text =
      replaced(replaced(with_loop(call), "\tst.u64 \t[%rd2], %rd3;\n", ""), "\t// .globl\t_Z6parentPiPKi\n",
               ".func (.param .b32 r) half(.param .b32 p)\n{\n\t.reg .b32 %r<3>;\n\tld.param.u32 %r1, [p];\n"
               "\tst.param.b32 [r], %r1;\n\tret;\n}\n");
  EXPECT_NE("", Parsed(text).site().problem);
  EXPECT_EQ("", problem_of(text));
  // The call changes what the store in front of it has stored.
  EXPECT_NE("", problem_of(replaced(text, "ld.param.b32 %r11, [got];", "ld.param.b64 %rd3, [got];")));
}

TEST(EarlyRequest, StaysWhereAThreadWithoutBufferWouldDoSomethingElse) {
  const auto loop_with = [&](const std::string& instruction) {
    return with_loop(replaced(kLoop, "$loop:\n", "$loop:\n\t" + instruction + "\n"));
  };
  EXPECT_TRUE(is_moved(loop_with("ld.global.u32 %r12, [%rd1];")));
  EXPECT_FALSE(is_moved(loop_with("st.global.u32 [%rd1], %r1;")));
  EXPECT_FALSE(is_moved(loop_with("atom.global.add.u32 %r12, [%rd1], 1;")));
  EXPECT_FALSE(is_moved(loop_with("ld.volatile.global.u32 %r12, [%rd1];")));
  EXPECT_FALSE(is_moved(loop_with("ld.acquire.gpu.global.u32 %r12, [%rd1];")));
  EXPECT_FALSE(is_moved(loop_with("st.param.b32 [result], %r1;")));
  EXPECT_FALSE(is_moved(loop_with("bar.sync 0;")));
  EXPECT_FALSE(is_moved(loop_with("shfl.sync.idx.b32 %r12, %r1, 0, 31, -1;")));
  EXPECT_FALSE(is_moved(loop_with("@%p1 exit;")));
  EXPECT_FALSE(is_moved(loop_with("@%p1 trap;")));
}

TEST(EarlyRequest, StaysWhereAThreadWithoutBufferReadsWhatIsComputed) {
  const std::string end = "$L__BB1_3:\n\tret;\n";
  const std::string text = with_loop();
  const size_t at = text.rfind(end);
  ASSERT_NE(std::string::npos, at);
  const auto ending_with = [&](const std::string& instruction) {
    return std::string(text).replace(at, end.size(), "$L__BB1_3:\n\t" + instruction + "\n\tret;\n");
  };
  EXPECT_TRUE(is_moved(ending_with("st.global.u32 [%rd1], %r4;")));
  EXPECT_FALSE(is_moved(ending_with("st.global.u32 [%rd1], %r11;")));
}

TEST(EarlyRequest, StaysWhereWhatItIsGivenChanges) {
  // The grid, the child, the buffer, and the result of its test.
  for (const char* changed : {"add.s32 %r10, %r10, 1;", "add.s64 %rd7, %rd7, 8;", "add.s64 %rd2, %rd2, 8;",
                              "mov.b64 %rd6, %rd2;", "setp.lt.s32 %p2, %r1, 3;", "selp.b32 %r12, 1, 2, %p2;"})
    EXPECT_FALSE(is_moved(with_loop(std::string(kLoop) + "\t" + changed + "\n$other:\n"))) << changed;
}

TEST(EarlyRequest, StaysWhereControlCanComeFromElsewhereOrGoThere) {
  // A jump into the loop, one out of it, and one to the launch.
  EXPECT_FALSE(is_moved(replaced(with_loop(), kGuard, "\t@%p1 bra \t$loop;\n")));
  EXPECT_FALSE(is_moved(
      with_loop(replaced(kLoop, "\t@%p1 bra $loop;\n", "\t@%p1 bra $L__BB1_3;\n\tbra $next;\n$next:\n"))));
  EXPECT_FALSE(
      is_moved(replaced(with_loop(std::string(kLoop) + "$fill:\n"), kGuard, "\t@%p1 bra \t$fill;\n")));
}

// A block that ends with a call, where no launch follows.
TEST(EarlyRequest, StaysWhereNothingIsLaunched) {
  std::string text = with_loop("\tst.u64 [%rd2], %rd3;\n\t{\n\tcall.uni half;\n\t}\n");
  const size_t begin = text.find("\tst.u64 \t[%rd2], %rd3;\n"), end = text.rfind("$L__BB1_3:");
  ASSERT_LT(begin, end);
  text.erase(begin, end - begin);
  text.insert(text.find(".visible .entry _Z6parent"), ".func half()\n{\n\tret;\n}\n");
  EXPECT_FALSE(is_moved(text));
  EXPECT_FALSE(is_moved(text.substr(0, text.rfind("$L__BB1_3:")) + "$L__BB1_3:\n}\n"));
}

TEST(EarlyRequest, StaysWhereTheBufferIsTestedTwice) {
  EXPECT_THAT(problem_of(with_loop(std::string(kLoop) + "\tsetp.eq.s64 %p1, %rd2, 0;\n$behind:\n")),
              Not(IsEmpty()));
}

}  // namespace
}  // namespace klap::analysis
