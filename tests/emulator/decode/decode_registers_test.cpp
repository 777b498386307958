// Registers share columns where they are never live at once, and nowhere else.
#include "analysis/graph/liveness.h"
#include "decode_fixture.h"
#include "emulator/decode/decode_columns.h"

namespace klap::emulator {
namespace {

using testing::ElementsAre;

TEST(Registers, NamesOfInnerScopesAreOthers) {
  EXPECT_THAT(listing("mov.u32 %r1, 1;\n{ .reg .b32 %r1; mov.u32 %r1, 2; st.global.u32 [%rd1], %r1; "
                      "}\nst.global.u32 [%rd1], %r1;"),
              ElementsAre("Alu mov.u32 r0 = 0x1", "Alu mov.u32 r2 = 0x2",
                          "Store st.global.u32 r1, r2 [global+0 weak 1xu32]",
                          "Store st.global.u32 r1, r0 [global+0 weak 1xu32]"));
}

TEST(Registers, ChainsReuseColumns) {
  std::string text = "mov.u32 %r1, 1;\n";
  for (int i = 1; i < 60; ++i) {
    text +=
        "add.s32 %s" + std::to_string(i + 1) + ", " + (i == 1 ? "%r1" : "%s" + std::to_string(i)) + ", 1;\n";
  }
  const Linked linked({kernel(".reg .b32 %s<64>;\n" + text)});
  EXPECT_LE(linked.function("k").columns, 3u);
}

TEST(Registers, LoopsKeepWhatTheNextRoundReads) {
  const std::vector<std::string> code = listing(
      "mov.u32 %r1, 0;\nmov.u32 %r2, 5;\n$top: add.s32 %r1, %r1, %r2;\nmov.u32 %r3, 1;\nst.global.u32 "
      "[%rd1], %r3;\n"
      "setp.lt.s32 %p1, %r1, 50;\n@%p1 bra $top;");
  // %r2 is read in the next round after %r3 was written, so they are two columns.
  EXPECT_EQ(code[1], "Alu mov.u32 r2 = 0x5");
  EXPECT_EQ(code[3], "Alu mov.u32 r3 = 0x1");
}

// %rd1 is dead where %r3 is written, %r1 and %r2 are not.
TEST(Registers, AnInstructionsResultNeverOverwritesItsOperands) {
  EXPECT_THAT(listing("mov.b64 {%r1, %r2}, %rd1;\nadd.s32 %r3, %r1, %r2;"),
              ElementsAre("Alu mov.b64 r0, r1 = r2", "Alu add.s32 r2 = r0, r1"));
}

// The proof over real and branchy code: two registers that are live at one place have no column in common.
TEST(Registers, LiveOnesNeverShare) {
  const ptx::Module m = ptx::parse(std::string(kHeader) + kernel(R"(
mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r1, 0; @%p1 bra $else; mov.u32 %r2, 3; mul.lo.s32 %r3, %r2, %r1; bra $join;
$else: mov.u32 %r4, 9; @!%p2 mov.u32 %r3, %r4; mov.b128 %q1, {%rd1, %rd2};
$loop: add.s32 %r5, %r3, %r4; setp.gt.s32 %p3, %r5, 4; mov.b128 {%rd3, %rd4}, %q1; @%p3 bra $loop;
$join: ld.global.v4.f32 %v1, [%rd5]; add.f32 %f1, %v1.x, %v1.w; st.global.f32 [%rd5], %f1; st.global.u32 [%rd6], %r3;)"),
                                   "a.ptx");
  const analysis::ControlFlow flow(m, m.functions.front());
  const analysis::VirtualRegisters registers(flow);
  const analysis::Liveness liveness(flow, registers);
  const Columns columns = assign_columns(flow, registers);
  uint32_t all = 0, pairs = 0;
  for (const auto& r : registers.all()) all += r.lanes * lane_columns(r);
  EXPECT_LT(columns.count, all);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const std::vector<uint32_t> live = liveness.live_before(i);
    for (const uint32_t a : live) {
      for (const uint32_t b : live) {
        if (a == b) continue;
        const uint32_t a_end = columns.first[a] + registers[a].lanes * lane_columns(registers[a]);
        const uint32_t b_end = columns.first[b] + registers[b].lanes * lane_columns(registers[b]);
        EXPECT_TRUE(a_end <= columns.first[b] || b_end <= columns.first[a])
            << registers[a].name << " and " << registers[b].name << " before instruction " << i;
        ++pairs;
      }
    }
  }
  EXPECT_GT(pairs, 50u);
}

TEST(Registers, ParametersInRegistersAreAllThereAtTheStart) {
  const Linked linked(
      {".func g(.reg .b32 a, .reg .b32 b) { .reg .b32 %r<4>; add.s32 %r1, a, 1; st.global.u32 [64], %r1; "
       "mov.u32 b, "
       "5; st.global.u32 [64], b; ret; }"});
  const Function& g = linked.function("g");
  EXPECT_NE(g.parameters[0].where.index, g.parameters[1].where.index);
}

}  // namespace
}  // namespace klap::emulator
