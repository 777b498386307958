// Branches, labels and scopes, calls of all forms, ends of functions.
#include "decode_fixture.h"

namespace klap::emulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Control, BranchesGoToInstructions) {
  EXPECT_THAT(listing("$top: add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 9;\n@%p1 bra $top;\nbra.uni $end;\n"
                      "trap;\n$end: ret;"),
              ElementsAre("Alu add.s32 r0 = r0, 0x1", "Alu setp.lt.s32 r1 = r0, 0x9", "@r1 Branch bra -> 0",
                          "Branch bra.uni -> 5", "Trap trap", "Exit ret"));
}

TEST(Control, LabelsOfInnerScopesHideOuterOnes) {
  EXPECT_THAT(listing("bra $x;\n{ bra $x; $x: brkpt; }\n{ bra $x; $x: trap; }\n$x: exit;"),
              ElementsAre("Branch bra -> 5", "Branch bra -> 2", "Nothing brkpt", "Branch bra -> 4",
                          "Trap trap", "Exit exit"));
}

TEST(Control, BranchesAcrossWhatBecomesTwoInstructions) {
  EXPECT_THAT(listing("bra $x; cp.async.ca.shared.global [%r1], [%rd1], 4; $x: ret;"),
              ElementsAre("Branch bra -> 3", testing::_, testing::_, "Exit ret"));
}

TEST(Control, TablesOfTargets) {
  EXPECT_THAT(listing("brx.idx %r1, $table;\n$a: trap;\n$b: exit;\n$table: .branchtargets $b, $a, $b;"),
              ElementsAre("IndexedBranch brx.idx r0 -> 2, 1, 2", "Trap trap", "Exit exit"));
}

TEST(Control, EveryFunctionEnds) {
  const Linked linked(
      {".func f() { .reg .pred %p<2>; bra $end; $end: }\n.func g() { ret; }\n.func h() {}\n"
       ".func i() { .reg .pred %p<2>; @%p1 ret; }\n.entry k() { }\n.entry l() { exit; }"});
  EXPECT_THAT(listing(linked.image(), linked.function("f")), ElementsAre("Branch bra -> 1", "Return }"));
  EXPECT_THAT(listing(linked.image(), linked.function("g")), ElementsAre("Return ret"));
  EXPECT_THAT(listing(linked.image(), linked.function("h")), ElementsAre("Return }"));
  EXPECT_THAT(listing(linked.image(), linked.function("i")), ElementsAre("@r0 Return ret", "Return }"));
  EXPECT_THAT(listing(linked.image(), linked.function("k")), ElementsAre("Exit }"));
  EXPECT_THAT(listing(linked.image(), linked.function("l")), ElementsAre("Exit exit"));
}

// ---- calls ----

constexpr const char* kCallee =
    ".visible .func (.param .b32 out) f(.param .b64 a, .param .align 8 .b8 b[12]) {\n"
    "  .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
    "  ld.param.b64 %rd1, [a]; ld.param.u32 %r1, [b+8]; st.param.b32 [out], %r1; ret; }\n";

TEST(Calls, ParametersLieInTheCalleesFrame) {
  const Linked linked({kCallee});
  const Function& f = linked.function("f");
  ASSERT_EQ(f.parameters.size(), 2u);
  EXPECT_EQ(f.parameters[1].bytes, 12u);
  EXPECT_EQ(f.parameters[1].offset, 8u);
  EXPECT_EQ(f.parameters[1].where.from, Operand::From::LocalVariable);
  EXPECT_EQ(f.results[0].bytes, 4u);
  EXPECT_THAT(listing(linked.image(), f),
              ElementsAre("Load ld.param.b64 r0 = local(8) [local+0 weak 1xb64 to 64]",
                          "Load ld.param.u32 r0 = local(16) [local+8 weak 1xu32 to 32]",
                          "Store st.param.b32 local(0), r0 [local+0 weak 1xb32]", "Return ret"));
  EXPECT_EQ(f.local_bytes, 32u);
}

TEST(Calls, ArgumentsAreParamVariables) {
  const Linked linked({std::string(kCallee) +
                       ".entry k() { .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
                       "{ .param .b64 p0; .param .align 8 .b8 p1[12]; .param .b32 r0;\n"
                       "st.param.b64 [p0], %rd1; st.param.b32 [p1+8], 7;\n"
                       "call.uni (r0), f, (p0, p1);\nld.param.b32 %r1, [r0]; } ret; }"});
  EXPECT_THAT(listing(linked.image(), linked.function("k")),
              ElementsAre("Store st.param.b64 local(0), r0 [local+0 weak 1xb64]",
                          "Store st.param.b32 local(8), 0x7 [local+8 weak 1xb32]",
                          "Call call.uni f(local(0):8, local(8):12) -> (local(20):4)",
                          "Load ld.param.b32 r0 = local(20) [local+0 weak 1xb32 to 32]", "Exit ret"));
}

TEST(Calls, ScopesShareTheFrame) {
  const Linked linked(
      {".entry k() { .local .align 4 .b8 keep[20]; { .param .b64 p0; .param .b64 p1; } { .param .b32 p0; { "
       ".param .b64 p1; } } ret; }"});
  const auto& frame = linked.function("k").frame;
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (const FrameVariable& v : frame) places.emplace_back(v.offset, v.bytes);
  EXPECT_THAT(places, ElementsAre(std::pair{0u, 20u}, std::pair{24u, 8u}, std::pair{32u, 8u},
                                  std::pair{20u, 4u}, std::pair{24u, 8u}));
  EXPECT_EQ(linked.function("k").local_bytes, 48u);
}

TEST(Calls, RegistersAndNumbersAsArguments) {
  const Linked linked(
      {".func (.reg .b32 out) g(.reg .b32 a, .reg .b64 b) { .reg .b32 %r<3>; cvt.u32.u64 %r1, b; add.s32 "
       "out, "
       "a, %r1; ret; }\n"
       ".entry k() { .reg .b32 %r<3>; call (%r1), g, (%r2, 5); ret; }"});
  const Function& g = linked.function("g");
  EXPECT_EQ(g.parameters[0].where.from, Operand::From::Register);
  EXPECT_NE(g.parameters[0].where.index, g.parameters[1].where.index);
  EXPECT_EQ(g.results[0].where.from, Operand::From::Register);
  EXPECT_THAT(listing(linked.image(), linked.function("k")),
              ElementsAre("Call call g(r1:4, 0x5:8) -> (r0:4)", "Exit ret"));
}

TEST(Calls, ThroughAnAddress) {
  const Linked linked(
      {std::string(kCallee) +
       ".entry k() { .reg .b64 %rd<3>; .reg .b32 %r<3>; .param .b64 p0; .param .align 8 .b8 p1[12]; .param "
       ".b32 r0;\nmov.u64 %rd1, f;\n"
       "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]);\n"
       "call (r0), %rd1, (p0, p1), proto;\ncall (%r1), %rd1, (3, p1), proto; ret; }"});
  EXPECT_THAT(listing(linked.image(), linked.function("k")),
              ElementsAre(HasSubstr("Alu mov.u64 r0 = 0x"),
                          "IndirectCall call r0(local(0):8, local(8):12) -> (local(20):4)",
                          "IndirectCall call r0(0x3:8, local(8):12) -> (r1:4)", "Exit ret"));
  EXPECT_THAT(linked.image().indirect_callees, ElementsAre(0u));
  const Function& k = linked.function("k");
  EXPECT_EQ(k.constants[0], kCodeWindow);
  EXPECT_EQ(k.calls[0].function, CallDetail::kIndirect);
}

TEST(Calls, OfTheMachine) {
  const Linked linked(
      {".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
       ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 "
       "g[12], "
       ".param .align 4 .b8 b[12], .param .b32 s);\n"
       ".entry k() { .param .b64 n; .param .b64 r; .param .align 4 .b8 g[12]; .param .b32 s; call (r), "
       "malloc, (n);\n"
       "call (r), __cudaCDP2GetParameterBufferV2, (n, g, g, s); ret; }"});
  const Function& f = linked.function("__cudaCDP2GetParameterBufferV2");
  EXPECT_GE(f.builtin, 0);
  EXPECT_NE(f.builtin, linked.function("malloc").builtin);
  std::vector<uint32_t> offsets;
  for (const FormalParameter& p : f.parameters) offsets.push_back(p.offset);
  EXPECT_THAT(offsets, ElementsAre(0u, 8u, 20u, 32u));
  EXPECT_EQ(f.results.at(0).bytes, 8u);
}

}  // namespace
}  // namespace klap::emulator
