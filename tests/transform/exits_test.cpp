// The ways out of a parent that launches its children itself: which are found, what is written in their
// place, and what stands against it. Every rewritten text is also assembled and linked.
#include "analysis/synchronisation/exits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "golden.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.rfind(from);
  if (at == std::string::npos) throw std::runtime_error("fixture does not hold: " + from);
  return text.replace(at, from.size(), to);
}

std::string fixture() { return read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx"); }

// The fixture's parent with other statements where its body ends: `$L__BB1_3: ret;`.
std::string ending_with(const std::string& end) { return replaced(fixture(), "\tret;\n", end); }
// The same with a barrier at its beginning, behind an early return to the common `ret`.
std::string with_barrier(const std::string& text) {
  return replaced(text, "\tadd.s32 \t%r6, %r1, 31;", "\tbar.sync 0;\n\tadd.s32 \t%r6, %r1, 31;");
}

jit::Request device_request() {
  jit::Request request;
  request.setting = test::given({{"granularity", "grid"}, {"launcher", "device"}});
  return request;
}

// Statements of the parent by which its threads leave, as text.
std::vector<std::string> ways_out(const std::string& text, bool* falls_off_end = nullptr,
                                  bool may_lack_buffer = false) {
  const ptx::Module module = ptx::parse(text, "fixture");
  const analysis::FunctionFacts facts(module, *module.find_function("_Z6parentPiPKi"));
  const analysis::Exits exits = analysis::find_exits(facts, may_lack_buffer);
  if (falls_off_end != nullptr) *falls_off_end = exits.falls_off_end;
  std::vector<std::string> out;
  for (const ptx::Statement* way : exits.ways) out.push_back(module.compact(way->tokens));
  return out;
}

// The text of the parent's variant, which must assemble and link with one counted leave for each way out.
std::string variant(const std::string& text, size_t ways) {
  const jit::Program program = jit::program_from_ptx(text, "fixture");
  const jit::RewrittenModule module = rewrite_module(program, device_request());
  EXPECT_FALSE(module.cubin.empty());
  std::string rewritten = jit::rewrite_ptx(program.units[0], device_request(), nullptr);
  rewritten = rewritten.substr(rewritten.find("_Z6parentB25klap_grid_device_"));
  EXPECT_EQ(ways, test::count(rewritten, "@%klap_is_last bra $klap_launch;"));
  EXPECT_EQ(1u, test::count(rewritten, "$klap_launch:"));
  // Every thread ends counted: one `ret` behind each count, one behind the launch of the children.
  EXPECT_EQ(ways + 1, test::count(rewritten, "\tret;"));
  EXPECT_EQ(0u, test::count(rewritten, "exit;"));
  return rewritten;
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Exits, OneReturnAtTheEnd) {
  bool falls_off_end = true;
  EXPECT_THAT(ways_out(fixture(), &falls_off_end), ElementsAre("ret;"));
  EXPECT_FALSE(falls_off_end);
  const std::string text = variant(fixture(), 1);
  EXPECT_THAT(text, HasSubstr("__cudaCDP2GetParameterBufferV2"));
  EXPECT_THAT(text, HasSubstr("__cudaCDP2LaunchDeviceV2"));
}

TEST(Exits, LaunchesAsTheProgramsOwnLaunchDid) {
  const std::string text = variant(read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2-ptsz.ptx"), 1);
  EXPECT_THAT(text, HasSubstr("__cudaCDP2LaunchDeviceV2_ptsz"));
}

TEST(Exits, PredicatedAndNested) {
  const std::string text =
      ending_with("\t{ .reg .pred %q; setp.gt.s32 %q, %r1, 9; @!%q exit;\n\t{ @%q ret.uni; } }\n\tret;\n");
  EXPECT_THAT(ways_out(text), ElementsAre("@!%q exit;", "@%q ret.uni;", "ret;"));
  const std::string rewritten = variant(text, 3);
  EXPECT_THAT(rewritten, HasSubstr("@%q bra $klap_stay0;"));
  EXPECT_THAT(rewritten, HasSubstr("@!%q bra $klap_stay1;"));
}

TEST(Exits, ExitInTheMiddle) {
  const std::string text =
      ending_with("\tsetp.gt.s32 %p1, %r1, 9;\n\t@%p1 bra $more;\n\texit;\n$more:\n\tret;\n");
  EXPECT_THAT(ways_out(text), ElementsAre("exit;", "ret;"));
  variant(text, 2);
}

TEST(Exits, BodyWithoutReturn) {
  bool falls_off_end = false;
  const std::string text = ending_with("\tst.global.u32 [%rd1], %r1;\n");
  EXPECT_THAT(ways_out(text, &falls_off_end), ElementsAre());
  EXPECT_TRUE(falls_off_end);
  variant(text, 1);
}

TEST(Exits, LastReturnIsPredicated) {
  bool falls_off_end = false;
  const std::string text = ending_with("\t@%p1 ret;\n");
  EXPECT_THAT(ways_out(text, &falls_off_end), ElementsAre("@%p1 ret;"));
  EXPECT_TRUE(falls_off_end);
  variant(text, 2);
}

// Without barriers threads may meet at the common `ret`; with one they must not wait there for each other.
TEST(Exits, ReturnsAreSplitWhereThreadsWaitForEachOther) {
  const std::string text = with_barrier(fixture());
  EXPECT_THAT(ways_out(text), ElementsAre("@%p1 bra $L__BB1_3;", "ret;"));
  const std::string rewritten = variant(text, 2);
  EXPECT_THAT(rewritten, HasSubstr("@!%p1 bra $klap_stay0;"));
  EXPECT_THAT(rewritten, HasSubstr("@%p2 bra \t$L__BB1_3;")) << "the test for a null buffer is never true";
}

// A launch that the queue has no room for is the program's own, and may get no buffer.
TEST(Exits, ThreadsWithoutABufferLeave) {
  EXPECT_THAT(ways_out(with_barrier(fixture()), nullptr, true),
              ElementsAre("@%p1 bra $L__BB1_3;", "@%p2 bra $L__BB1_3;", "ret;"));
}

TEST(Exits, LabelsThatMeanSomethingElseElsewhereAreNotSplit) {
  const std::string text = replaced(with_barrier(fixture()), "\tbar.sync 0;",
                                    "\tbar.sync 0;\n\t{ @%p1 bra $L__BB1_3; $L__BB1_3: mov.u32 %r2, 1; }");
  EXPECT_THAT(ways_out(text), ElementsAre("ret;"));
}

std::string reason(const std::string& text, jit::Launcher launcher) {
  jit::Request request;
  request.setting = test::given({{"granularity", "grid"}, {"launcher", to_string(launcher)}});
  const auto remarks = explain_module(jit::program_from_ptx(text, "fixture"), request);
  EXPECT_EQ(1u, remarks.size());
  return remarks[0].rewritten ? remarks[0].launcher : remarks[0].reason + ": " + remarks[0].detail;
}

TEST(Exits, CalledFunctionsMustNotEndThreads) {
  const std::string text = replaced(
      ending_with("\tcall.uni stop;\n\tret;\n"), ".visible .entry _Z6parent",
      ".func stop() { .reg .pred %p; setp.eq.u32 %p, 1, 2; @%p exit; ret; }\n.visible .entry _Z6parent");
  EXPECT_EQ("host", reason(text, jit::Launcher::Host));
  EXPECT_THAT(reason(text, jit::Launcher::Device), HasSubstr("parent-exits: stop, called by it, may exit"));
}

TEST(Exits, IndexedBranchesMustNotEndThreadsThatOthersWaitFor) {
  const std::string text =
      replaced(fixture(), "\tadd.s32 \t%r6, %r1, 31;",
               "\tts: .branchtargets $L__BB1_3, $on;\n\tbrx.idx %r1, ts;\n$on:\n\tadd.s32 \t%r6, %r1, 31;");
  EXPECT_EQ("device", reason(text, jit::Launcher::Device));
  EXPECT_EQ("host", reason(with_barrier(text), jit::Launcher::Host));
  EXPECT_THAT(reason(with_barrier(text), jit::Launcher::Device),
              HasSubstr("parent-exits: an indexed branch"));
}

// A block of the consumer is one block of the child and nothing else: the child's `ret` ends the thread.
TEST(Exits, OfTheChildStayWhatTheyAre) {
  const std::string text =
      replaced(fixture(), "\tmul.wide.s32 \t%rd3, %r1, 4;", "\tmul.wide.s32 \t%rd3, %r1, 4;\n\t@!%p1 exit;");
  const jit::Program program = jit::program_from_ptx(text, "fixture");
  const std::string both = jit::rewrite_ptx(program.units[0], device_request(), nullptr);
  const size_t consumer = both.find("klap_exact_");
  const std::string exact = both.substr(consumer, both.find("klap_grid_device_") - consumer);
  EXPECT_EQ(1u, test::count(exact, "@!%klap_c0_p1 exit;"));
  EXPECT_EQ(2u, test::count(exact, "\tret;")) << "the child's and the kernel's own";
  EXPECT_EQ(0u, test::count(exact, "$klap_c0_end"));
}

// A child of another unit: the kernel that runs it stands there, and the parent's unit declares it.
TEST(Exits, ConsumerInAnotherUnit) {
  const std::string whole = fixture();
  const size_t child = whole.find(".visible .entry _Z5child");
  const size_t parent = whole.find(".visible .entry _Z6parent");
  jit::Program program = jit::program_from_ptx(
      whole.substr(0, child) + ".extern .entry _Z5childPii(.param .u64 a, .param .u32 b)\n;\n" +
          whole.substr(parent),
      "parents");
  program.units.push_back(
      jit::program_from_ptx(
          ".version 9.0\n.target sm_80\n.address_size 64\n" + whole.substr(child, parent - child), "children")
          .units[0]);
  std::map<std::string, std::string> dumped;
  jit::Request request = device_request();
  request.dump = [&](const jit::Stage& stage) { dumped[stage.file] = stage.bytes; };
  const jit::RewrittenModule module = rewrite_module(program, request);
  ASSERT_EQ(1u, module.variants.size()) << module.remarks.at(0).detail;
  const std::string& consumer = module.variants[0].queues[0].consumer;
  EXPECT_EQ(1u, test::count(dumped["unit0.klap.ptx"], ".extern .entry " + consumer));
  EXPECT_EQ(1u, test::count(dumped["unit1.klap.ptx"], ".visible .entry " + consumer));
  EXPECT_THAT(module.cubin, HasSubstr(".text." + consumer));
}

}  // namespace
}  // namespace klap
