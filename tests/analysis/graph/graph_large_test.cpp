// The cost of all analyses on a generated kernel of 100,000 instructions: counts of work, which do not depend
// on the machine, and a time that only a quadratic algorithm would miss.
#include <fmt/format.h>

#include <chrono>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/loops.h"
#include "analysis/graph/reaching.h"
#include "graph_fixture.h"

namespace klap::analysis {
namespace {

struct Cost {
  size_t instructions = 0, control_pairs = 0, liveness_steps = 0, values = 0;
  double seconds = 0;
};

Cost cost_of(const std::string& body) {
  auto module = ptx::parse(Kernel(body).module->source, "large.ptx");
  const auto begin = std::chrono::steady_clock::now();
  const ControlFlow flow(module, module.functions.back());
  const Dominance dominance(flow);
  const Loops loops(flow);
  const VirtualRegisters registers(flow);
  const Liveness liveness(flow, registers);
  const ReachingDefinitions reaching(flow, registers, liveness);
  const DataFlow data(module, module.functions.back(), flow);
  Cost cost;
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    (void)flow.in_loop(i);
    (void)flow.index_of(flow.instructions()[i].statement);
  }
  cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  cost.instructions = flow.instructions().size();
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) cost.control_pairs += dominance.controllers(b).size();
  cost.liveness_steps = liveness.steps();
  cost.values = reaching.values();
  EXPECT_TRUE(dominance.control_known() && loops.known() && liveness.known() && reaching.known());
  testing::Test::RecordProperty("seconds", fmt::format("{}", cost.seconds));
  return cost;
}

TEST(LargeKernel, CostsInProportion) {
  const Cost small = cost_of(long_body(10'000)), large = cost_of(long_body(100'000));
  ASSERT_GT(large.instructions, 99'000u);
  const double growth = double(large.instructions) / double(small.instructions);
  EXPECT_LT(double(large.control_pairs), 1.1 * growth * double(small.control_pairs));
  EXPECT_LT(double(large.liveness_steps), 1.1 * growth * double(small.liveness_steps));
  EXPECT_LT(double(large.values), 1.1 * growth * double(small.values));
  EXPECT_LT(large.values, 3 * large.instructions);
  EXPECT_LT(large.seconds, 20.0);
}

// One exit that every block branches to, a chain of joins, and one table of many targets.
TEST(LargeKernel, CostsInProportionWhateverItsShape) {
  std::string exits, joins, table = "T: .branchtargets L0", cases, straight;
  for (int i = 0; i < 30'000; ++i) {
    exits += fmt::format("setp.eq.u32 %p1, %r1, {};\n@%p1 bra DONE;\nadd.u32 %r1, %r1, %r2;\n", i);
    joins += fmt::format("@%p1 bra J{0};\nadd.u32 %r1, %r2, 1;\nJ{0}: mov.u32 %r3, %r1;\n", i);
    if (i > 0) table += fmt::format(", L{}", i);
    cases += fmt::format("L{}: add.u32 %r1, %r1, {};\n@%p1 bra DONE;\n", i, i);
    straight += fmt::format("mov.u32 %r1, %r2;\nmov.u32 %r2, %r1;\nst.global.u32 [%rd1], %r1;\n");
  }
  exits += "DONE: ret;";
  joins += "ret;";
  straight += "ret;";
  table += ";\nHEAD: brx.idx %r1, T;\n";
  table += cases;
  table += "bra HEAD;\nDONE: ret;";
  for (const std::string& body : {exits, joins, table, straight}) {
    const Cost cost = cost_of(body);
    EXPECT_LT(cost.control_pairs, 4 * cost.instructions);
    EXPECT_LT(cost.liveness_steps, 20 * cost.instructions);
    EXPECT_LT(cost.values, 3 * cost.instructions);
    EXPECT_LT(cost.seconds, 20.0);
  }
}

// More live registers and blocks than can be held: it says so at once.
TEST(LargeKernel, GivesUpWhatCannotBeHeld) {
  std::string body = ".reg .b32 %q<8000>;\n", end;
  for (int i = 0; i < 8000; ++i) {
    body += fmt::format("ld.global.u32 %q{}, [%rd1];\n@%p1 bra B{};\nB{}: mov.u32 %r1, 1;\n", i, i, i);
    end += fmt::format("st.global.u32 [%rd1], %q{};\n", i);
  }
  const Kernel k(body + end + "ret;");
  const VirtualRegisters registers(*k.flow);
  const Liveness liveness(*k.flow, registers);
  EXPECT_FALSE(liveness.known());
  EXPECT_TRUE(liveness.is_live_before(0, 0));
  EXPECT_FALSE(ReachingDefinitions(*k.flow, registers, liveness).known());
}

}  // namespace
}  // namespace klap::analysis
