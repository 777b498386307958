// What cannot run says so, with its place; what is no PTX or does not fit together stops the load.
#include "decode_fixture.h"

namespace klap::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The text for an instruction that is in line 8, column 3.
std::string refused(const std::string& instruction) {
  const Linked linked({kernel("  " + instruction)});
  const Function& k = linked.function("k");
  EXPECT_EQ(unsupported_in(linked.image(), k), k.unsupported);
  return k.unsupported;
}

TEST(Errors, UnknownInstructionsAreNamedWithTheirPlace) {
  for (const std::string opcode :
       {"wgmma.fence.sync.aligned", "mbarrier.init.shared.b64", "frobnicate.u32", "add.frob.u32",
        "multimem.red.add.u32", "suld.b.1d.b32.trap", "barrier.cluster.arrive", "cp.async.bulk.commit_group",
        "getctarank.u32"}) {
    EXPECT_THAT(refused(opcode + " %r1, %r2, %r3;"),
                AllOf(StartsWith("a.ptx:8:3: "), HasSubstr("'" + opcode + "'"), HasSubstr("[in kernel k]"),
                      HasSubstr("\n"
                                "  "
                                "    " +
                                opcode)));
  }
}

// Whether PTX has the opcode is a question for the table in src/ptx, not for the emulator.
TEST(Errors, OpcodesOfPtxAreToldFromOthers) {
  EXPECT_THAT(refused("wgmma.fence.sync.aligned;"), HasSubstr("aligned': this opcode is not supported"));
  EXPECT_THAT(refused("tcgen05.wait.sync;"), HasSubstr("sync': this opcode is not supported"));
  EXPECT_THAT(refused("vadd2.s32.s32.s32 %r1, %r2, %r3, %r1;"), HasSubstr("s32': no such instruction"));
  EXPECT_THAT(refused("frobnicate.u32 %r1, %r2;"), HasSubstr("u32': PTX has no such opcode"));
  EXPECT_THAT(refused("clmad.lo.u64 %rd1, %rd1, %rd1, %rd1;"), HasSubstr("u64': PTX has no such opcode"));
}

TEST(Errors, UnknownModifiersAndOperandsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"ld.global.frob.u32 %r1, [%rd1];", "'.frob'"},
      {"ld.global %r1, [%rd1];", "no type"},
      {"ld.global.v2.u32 %r1, [%rd1];", "1 destinations"},
      {"ld.global.u32 %r1;", "1 operands"},
      {"ld.global.u32 5, [%rd1];", "'5' as a destination"},
      {"ld.shared.u32 %r1, [gv];", "another space"},
      {"ld.u32 %r1, [k];", "access to a function"},
      {"ld.global.u32 %r1, [%rd1*2];", "address '%rd1*2'"},
      {"st.async.u32 [%r1], %r2, [%r3];", "3 operands"},
      {"red.async.relaxed.cluster.shared::cluster.add.u32 [%r1], %r2;", "'.async'"},
      {"atom.global.u32 %r1, [%rd1], 1;", "no operation"},
      {"mov.u32 %r1, %envreg0;", "'%envreg0'"},
      {"mov.u32 %r1, %tid;", "'%tid'"},
      {"add.s32 %r1, %r2.b0, %r3;", "'%r2.b0'"},
      {"add.s32 %v1, %r1, %r2;", "'%v1' as a destination"},
      {"shfl.sync.up.b64 %rd1, %rd2, 1, 0, -1;", "mode or type"},
      {"vote.sync.ballot.pred %p1, %p2, -1;", "mode or type"},
      {"redux.sync.add.f32 %f1, %f2, -1;", "operation or type"},
      {"fence.proxy.tensormap::generic.release.gpu;", "'fence.proxy"},
      {"tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %rd2, {%f5}];", "sampler"},
      {"tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], %f7;", "shape"},
      {"cp.async.ca.shared.global [%r1], [%rd1], 3;", "this size"},
      {"cvta.global.u32 %r1, %r2;", "32 bits"},
      {"bar.sync 0, 64, 1;", "3 operands"},
      {"brx.idx %r1, nowhere;", "no list of targets"},
      {"call %rd1, (5), nowhere;", "unknown size"},
  };
  for (const auto& [instruction, reason] : cases) {
    EXPECT_THAT(refused(instruction), AllOf(StartsWith("a.ptx:8:"), HasSubstr(reason))) << instruction;
  }
}

TEST(Errors, OnlyKernelsThatReachItCannotRun) {
  const Linked linked(
      {".func bad() { wgmma.fence; ret; }\n.func near() { call bad; ret; }\n"
       ".func good() { ret; }\n"
       ".entry direct() { wgmma.wait; ret; }\n.entry far() { call near; ret; }\n"
       ".entry fine() { call good; ret; }\n"
       ".entry loop() { call good; call good; ret; }"});
  const auto why = [&](const char* name) { return unsupported_in(linked.image(), linked.function(name)); };
  EXPECT_THAT(why("far"), StartsWith("a.ptx:4:15: the emulator does not know 'wgmma.fence'"));
  EXPECT_THAT(why("direct"), HasSubstr("wgmma.wait"));
  EXPECT_EQ(why("fine"), "");
  EXPECT_EQ(why("loop"), "");
}

TEST(Errors, IndirectCallsReachWhatHasAnAddress) {
  const std::string text =
      ".func bad() { wgmma.fence; ret; }\n"
      ".entry k() { .reg .b64 %rd<2>; p: .callprototype _ (); call %rd1, (), p; ret; }\n";
  const Linked without({text});
  EXPECT_EQ(without.function("k").unsupported, "");
  const Linked with({text + ".entry other() { .reg .b64 %rd<2>; mov.u64 %rd1, bad; ret; }\n"});
  EXPECT_THAT(with.function("k").unsupported, HasSubstr("wgmma.fence"));
  EXPECT_EQ(with.function("other").unsupported, "");
  const Linked table({text + ".global .u64 t[1] = {bad};\n"});
  EXPECT_THAT(table.function("k").unsupported, HasSubstr("wgmma.fence"));
}

TEST(Errors, LaterInstructionsAreStillRead) {
  EXPECT_THAT(link_failure({kernel("wgmma.fence;\nmov.u64 %rd1, nothing;")}, ErrorCode::Link),
              StartsWith("a.ptx:9:15: undefined symbol 'nothing' [in kernel k]"));
}

TEST(Errors, ClustersOfBlocks) {
  const Linked linked(
      {".entry one() .reqnctapercluster 1, 1, 1 { ret; }\n.entry two() .reqnctapercluster 2 { ret; }"});
  EXPECT_EQ(linked.function("one").unsupported, "");
  EXPECT_THAT(linked.function("two").unsupported, StartsWith("a.ptx:5:14: clusters of blocks"));
}

TEST(Errors, DeclarationsThatAreNotKnown) {
  const Linked linked(
      {".entry k() { .local .u32 x<3>; ret; }\n.entry big() { .local .b8 x[0x70000000]; .local .b8 "
       "y[0x70000000]; ret; }\n"
       ".entry fine() { ret; }"});
  EXPECT_THAT(linked.function("k").unsupported, StartsWith("a.ptx:4:26: range of variables"));
  EXPECT_THAT(linked.function("big").unsupported, HasSubstr("frame of 2 GiB"));
  EXPECT_EQ(linked.function("fine").unsupported, "");
}

TEST(Errors, GarbageIsRefusedWithoutACrash) {
  const std::string many(100000, '('), minus(100000, '-');
  EXPECT_THAT(link_failure({kernel("mov.u32 %r1, " + minus + "1;")}, ErrorCode::Parse),
              HasSubstr("too deeply"));
  EXPECT_THAT(
      link_failure({kernel("mov.u32 %r1, " + many + "1" + std::string(100000, ')') + ";")}, ErrorCode::Parse),
      HasSubstr("too deeply"));
  for (const char* instruction :
       {"atom.add.u32 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1], 1;", "ld.u32 , [%rd1];",
        "ld.u32 %r1, [];", "ld.u32 %r1, %rd1;", "call;", "call (%r1);", "call (), k, (,);",
        "tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [,{%r1}];", "mov.b64 {}, %rd1;", "mov.u64 %rd1, lv-4;",
        "brx.idx %r1, ;", "shfl.sync.up.b32 |, %r1, %r1, %r1, %r1;"}) {
    EXPECT_NE(refused(instruction), "") << instruction;
  }
}

TEST(Errors, MalformedTextStopsTheLoad) {
  EXPECT_THAT(link_failure({kernel("bra $nowhere;")}, ErrorCode::Parse), HasSubstr("a.ptx:8:5"));
  EXPECT_THAT(link_failure({kernel("bra ;")}, ErrorCode::Parse), HasSubstr("branch without a target"));
  EXPECT_THAT(link_failure({kernel("@%r1 ret;")}, ErrorCode::Parse),
              HasSubstr("a.ptx:8:2: the guard is not"));
  EXPECT_THAT(link_failure({".global .align 3 .u32 x;"}, ErrorCode::Parse), HasSubstr("power of two"));
  EXPECT_THAT(link_failure({".global .foo .bar x;"}, ErrorCode::Parse), HasSubstr("a.ptx:4:"));
}

}  // namespace
}  // namespace klap::emulator
