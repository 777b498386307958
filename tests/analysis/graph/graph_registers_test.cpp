// Registers and their names, reaching definitions, def-use chains, liveness.
#include <fmt/format.h>

#include <random>
#include <set>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/operands.h"
#include "analysis/graph/reaching.h"
#include "analysis/graph/registers.h"
#include "graph_fixture.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Origins = ReachingDefinitions::Origins;

struct Analysed : Kernel {
  explicit Analysed(const std::string& body, const std::string& items = "") : Analysed(Kernel(body, items)) {}
  explicit Analysed(Kernel&& kernel)
      : Kernel(std::move(kernel)),
        registers(*flow),
        liveness(*flow, registers),
        reaching(*flow, registers, liveness) {}
  VirtualRegisters registers;
  Liveness liveness;
  ReachingDefinitions reaching;

  [[nodiscard]] Origins origins(uint32_t instruction, std::string_view name) const {
    return reaching.origins(instruction, registers.find(instruction, name));
  }
  [[nodiscard]] std::vector<uint32_t> uses(uint32_t instruction, std::string_view name) const {
    return reaching.uses(instruction, registers.find(instruction, name));
  }
  [[nodiscard]] std::vector<std::string> live_before(uint32_t instruction) const {
    std::vector<std::string> out;
    for (uint32_t reg : liveness.live_before(instruction)) out.emplace_back(registers[reg].name);
    return out;
  }
};

// "written|read" of one instruction; a write that overwrites for certain has an exclamation mark.
std::string accesses(const std::string& instruction) {
  const Kernel k(instruction);
  const VirtualRegisters registers(*k.flow);
  std::string written, read;
  for (const Access& access : registers.accesses(0)) {
    const std::string name(registers[access.reg].name.substr(1));
    if (access.written) written += name + (access.kills ? "! " : " ");
    if (access.read) read += name + " ";
  }
  return written + "| " + read;
}

TEST(Operands, AreReadOrWritten) {
  EXPECT_EQ("r1! | r2 r3 ", accesses("add.u32 %r1, %r2, %r3;"));
  EXPECT_EQ("r1! | r1 r3 ", accesses("add.u32 %r1, %r1, %r3;"));
  EXPECT_EQ("r1 | p1 r2 ", accesses("@!%p1 mov.u32 %r1, %r2;"));
  EXPECT_EQ("r1! r2! | rd1 ", accesses("mov.b64 {%r1, %r2}, %rd1;"));
  EXPECT_EQ("r1! r3! | rd1 ", accesses("ld.global.v4.u32 {%r1, _, %r3, _}, [%rd1+8];"));
  EXPECT_EQ("| rd1 r1 r2 ", accesses("st.global.v2.u32 [%rd1], {%r1, %r2};"));
  EXPECT_EQ("p1! p2! | r1 p3 ", accesses("setp.lt.and.u32 %p1|%p2, %r1, 4, !%p3;"));
  EXPECT_EQ("r1! p1! | r2 r3 ", accesses("shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1;"));
  EXPECT_EQ("r1! | rd1 r2 ", accesses("atom.global.add.u32 %r1, [%rd1], %r2;"));
  EXPECT_EQ("| rd1 r2 ", accesses("red.global.add.u32 [%rd1], %r2;"));
  EXPECT_EQ("| r1 r2 ", accesses("bar.sync %r1, %r2;"));
  EXPECT_EQ("r1! | r2 p1 ", accesses("barrier.cta.red.popc.aligned.u32 %r1, %r2, %p1;"));
  EXPECT_EQ("f1! f2! | f1 f2 rd1 rd2 p1 ",
            accesses("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, %rd1, %rd2, %p1, 1, 1;"));
  EXPECT_EQ("| r1 ", accesses("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;"));
  EXPECT_EQ("r1! | r2 ", accesses("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];"));
  EXPECT_EQ("r1! | rd1 r2 ", accesses("call (%r1), %rd1, (%r2), P;"));
  EXPECT_EQ("| rd1 r2 ", accesses("call %rd1, (%r2), P;"));
  EXPECT_EQ("| rd1 ", accesses("stackrestore.u64 %rd1;"));
  EXPECT_EQ("| rd1 rd2 r1 ", accesses("mbarrier.init.shared.b64 [%rd1+%rd2], %r1;"));
}

// An opcode of the future may do anything to the registers it names, but for those inside an address.
TEST(Operands, OfAnUnknownOpcodeMayBeAnything) {
  EXPECT_EQ("r1 r2 | rd1 r1 r2 ", accesses("frobnicate.u32 [%rd1], %r1, %r2;"));
  const Analysed k("mov.u32 %r1, 1;\nfrobnicate.u32 %r2, %r1;\nst.global.u32 [%rd1], %r1;\nret;");
  EXPECT_THAT(k.registers.unknown_instructions(), ElementsAre(1));
  EXPECT_EQ((Origins{{0, 1}, false}), k.origins(2, "%r1"));
  EXPECT_EQ(std::nullopt, k.reaching.only_definition(2, k.registers.find(2, "%r1")));
  EXPECT_THAT(print_reaching(*k.flow, k.registers, k.reaching), HasSubstr("unknown opcode"));
  const DataFlow data(*k.module, *k.function, *k.flow);
  EXPECT_EQ(std::nullopt, data.constant("%r1"));
}

TEST(Registers, AreToldApartWhereScopesShareAName) {
  // As ptxas resolves names: %r5 is beyond the inner range, and the inner %r1 exists from its declaration on.
  const Analysed k(R"(
    mov.u32 %r1, 1;
    mov.u32 %r5, 5;
    {
      mov.u32 %r1, 2;
      .reg .b32 %r<3>;
      mov.u32 %r1, 3;
      st.global.u32 [%rd1], %r1;
      st.global.u32 [%rd1], %r5;
    }
    { .reg .u64 %r1; ld.global.u64 %r1, [%rd1]; }
    st.global.u32 [%rd1], %r1;
    ret;)");
  EXPECT_EQ(k.registers.find(0, "%r1"), k.registers.find(2, "%r1"));
  EXPECT_NE(k.registers.find(0, "%r1"), k.registers.find(3, "%r1"));
  EXPECT_NE(k.registers.find(3, "%r1"), k.registers.find(6, "%r1"));
  EXPECT_EQ(".u64", k.registers[k.registers.find(6, "%r1")].type);
  EXPECT_EQ((Origins{{3}, false}), k.origins(4, "%r1"));
  EXPECT_EQ((Origins{{1}, false}), k.origins(5, "%r5"));
  EXPECT_EQ((Origins{{2}, false}), k.origins(7, "%r1"));
  EXPECT_THAT(k.uses(0, "%r1"), IsEmpty());
  EXPECT_THAT(k.uses(2, "%r1"), ElementsAre(7));
  EXPECT_EQ(VirtualRegisters::kNone, k.registers.find(7, "%tid"));
}

// One definition by its name, but not of the register that is read.
TEST(DataFlow, KnowsNothingOfNamesThatSeveralRegistersShare) {
  const Kernel k = Kernel::of_module(R"(.version 8.8
.target sm_90
.address_size 64
.func f(.reg .b32 a, .param .b64 p) {
  .reg .b32 %r<9>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  { .reg .b32 a; mov.b32 a, 7; st.global.b32 [%rd1], a; }
  st.global.b32 [%rd1+4], a;
  mov.b32 %r5, 5;
  { .reg .b32 %r<3>; mov.b32 %r1, 1; }
  mov.b32 %r2, %r5;
  ret;
})");
  const DataFlow data(*k.module, *k.function, *k.flow);
  EXPECT_TRUE(data.is_ambiguous("a"));
  EXPECT_EQ(std::nullopt, data.constant("a"));
  EXPECT_EQ(std::nullopt, data.symbol("a"));
  // A shorter range in an inner scope hides no register of the outer one.
  EXPECT_TRUE(data.names().is_register("%r5"));
  EXPECT_EQ(5u, data.constant("%r2"));
}

TEST(DataFlow, TakesAnAccumulatorForWritten) {
  const Kernel k(
      "mov.f32 %f1, 0f00000000;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1;\nret;");
  const DataFlow data(*k.module, *k.function, *k.flow);
  EXPECT_THAT(data.definitions("%f1"), ElementsAre(0, 1));
}

TEST(Reaching, DefinitionsThatMayNotHappenLeaveTheOldValue) {
  const Analysed k(R"(
    mov.u32 %r1, 1;
    @%p1 mov.u32 %r1, 2;
    st.global.u32 [%rd1], %r1;
    mov.u32 %r1, 3;
    st.global.u32 [%rd1], %r1;
    ret;)");
  EXPECT_EQ((Origins{{0, 1}, false}), k.origins(2, "%r1"));
  EXPECT_EQ((Origins{{3}, false}), k.origins(4, "%r1"));
  EXPECT_EQ(3u, k.reaching.only_definition(4, k.registers.find(4, "%r1")));
  EXPECT_EQ(std::nullopt, k.reaching.only_definition(2, k.registers.find(2, "%r1")));
  EXPECT_THAT(k.uses(0, "%r1"), ElementsAre(2));
  EXPECT_THAT(k.uses(1, "%r1"), ElementsAre(2));
  EXPECT_EQ((Origins{{}, true}), k.origins(1, "%p1"));
  EXPECT_THAT(print_reaching(*k.flow, k.registers, k.reaching),
              HasSubstr("line 9: %r1 from line 7 line 8\n"));
  EXPECT_THAT(print_reaching(*k.flow, k.registers, k.reaching), HasSubstr("line 8: %p1 from nothing\n"));
}

TEST(Reaching, OneLaneOfAVectorLeavesTheOthers) {
  const Analysed k(R"(
    .reg .v2 .f32 v;
    mov.f32 v.x, %f1;
    mov.f32 v.y, %f2;
    st.global.v2.f32 [%rd1], v;
    ld.global.v2.f32 v, [%rd1];
    st.global.v2.f32 [%rd1], v;
    ret;)");
  EXPECT_EQ((Origins{{0, 1}, true}), k.origins(2, "v"));
  EXPECT_EQ((Origins{{3}, false}), k.origins(4, "v"));
  EXPECT_EQ(2u, k.registers[k.registers.find(4, "v")].words());
}

TEST(Reaching, FollowsLoopsAndJoins) {
  const Analysed k(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 7;
    LOOP: add.u32 %r1, %r1, %r2;
    @%p1 bra SKIP;
    mov.u32 %r3, %r1;
    SKIP: @%p2 bra LOOP;
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd1], %r2;
    ret;)");
  EXPECT_EQ((Origins{{0, 2}, false}), k.origins(2, "%r1"));
  EXPECT_EQ((Origins{{1}, false}), k.origins(2, "%r2"));
  EXPECT_EQ((Origins{{4}, true}), k.origins(6, "%r3"));
  EXPECT_THAT(k.uses(1, "%r2"), ElementsAre(2, 7));
  EXPECT_THAT(k.uses(2, "%r1"), ElementsAre(2, 4));
}

TEST(Reaching, KnowsParametersInRegistersAndResults) {
  const Analysed k(Kernel::of_module(R"(.version 8.8
.target sm_90
.address_size 64
.func (.reg .b32 out) f(.reg .b32 in) {
  @%p1 mov.b32 out, in;
  ret;
})"));
  EXPECT_EQ((Origins{{}, true}), k.origins(0, "in"));
  EXPECT_EQ((Origins{{0}, true}), k.origins(1, "out"));
  EXPECT_TRUE(k.registers[k.registers.find(0, "in")].is_parameter);
  EXPECT_THAT(print_reaching(*k.flow, k.registers, k.reaching), HasSubstr("in from parameter\n"));
}

TEST(Reaching, KnowsNothingWhereABranchIsUnknown) {
  const Analysed k(
      "mov.u32 %r1, 1;\nmov.u32 %r1, 2;\nst.global.u32 [%rd1], %r1;\nbrx.idx %r1, NOWHERE;\nret;");
  EXPECT_FALSE(k.reaching.known());
  EXPECT_FALSE(k.liveness.known());
  EXPECT_EQ((Origins{{0, 1}, true}), k.origins(2, "%r1"));
  EXPECT_THAT(k.uses(0, "%r1"), ElementsAre(2, 3));
  EXPECT_THAT(k.live_before(4), UnorderedElementsAre("%r1", "%rd1"));
  EXPECT_EQ((Pressure{3, 0}), k.liveness.pressure(4));
  EXPECT_THAT(print_reaching(*k.flow, k.registers, k.reaching), HasSubstr("unknown: every definition"));
  EXPECT_THAT(print_liveness(*k.flow, k.registers, k.liveness), HasSubstr("unknown: every register"));
}

TEST(Reaching, KnowsNothingOfCodeThatNeverRuns) {
  const Analysed k("mov.u32 %r1, 1;\nret;\nst.global.u32 [%rd1], %r1;\nmov.u32 %r1, 2;\nret;");
  EXPECT_EQ((Origins{{}, true}), k.origins(2, "%r1"));
  EXPECT_THAT(k.uses(0, "%r1"), IsEmpty());
  EXPECT_THAT(k.uses(3, "%r1"), IsEmpty());
}

TEST(Liveness, CountsWhatMustBeHeld) {
  const Analysed k(R"(
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r2, [%rd1+4];
    setp.lt.u32 %p1, %r1, %r2;
    mov.u64 %rd2, 1;
    @%p1 add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    st.global.u64 [%rd1], %rd2;
    mov.u32 %r9, 1;
    ret;)");
  EXPECT_THAT(k.live_before(0), ElementsAre("%rd1"));
  EXPECT_THAT(k.live_before(4), UnorderedElementsAre("%r1", "%r2", "%p1", "%rd1", "%rd2"));
  EXPECT_THAT(k.live_before(5), UnorderedElementsAre("%r1", "%rd1", "%rd2"));
  EXPECT_THAT(k.live_before(7), IsEmpty());
  EXPECT_EQ((Pressure{2 + 1, 0}), k.liveness.pressure(0));
  EXPECT_EQ((Pressure{2 + 2 + 1 + 1, 1}), k.liveness.pressure(4));
  EXPECT_EQ((Pressure{1, 0}), k.liveness.pressure(7));  // a result nobody reads still needs a place
  EXPECT_EQ((Pressure{6, 1}), k.liveness.maximum().pressure);
  EXPECT_EQ(3u, k.liveness.maximum().words_at);
  EXPECT_EQ(2u, k.liveness.maximum().predicates_at);
  EXPECT_THAT(print_liveness(*k.flow, k.registers, k.liveness),
              HasSubstr("maximum: 6 registers of 32 bits (line 10), 1 predicates (line 9)\n"));
}

// A body with random moves, some predicated, between few registers.
std::string random_moves(uint32_t blocks, uint32_t seed) {
  std::mt19937 random(seed);
  std::string body = random_body(blocks, seed), out;
  for (char c : body) {
    out += c;
    if (c != ':' || out.ends_with("T:")) continue;  // a block's label, not the table's
    for (uint32_t n = random() % 4; n > 0; --n) {
      const auto to = 2 + random() % 4, from = 2 + random() % 4;
      out += fmt::format("{} mov.u32 %r{}, %r{}; ", random() % 3 == 0 ? " @%p2" : "", to, from);
      if (random() % 2 == 0) out += fmt::format("st.global.u32 [%rd1], %r{};", from);
    }
  }
  return out;
}

// The instructions that can run directly after one; the count of instructions stands for the end.
std::vector<uint32_t> next_of(const ControlFlow& flow, uint32_t i) {
  const BasicBlock& block = flow.blocks()[flow.instructions()[i].block];
  if (i + 1 < block.last) return {i + 1};
  std::vector<uint32_t> out;
  for (uint32_t to : block.successors) out.push_back(flow.blocks()[to].first);
  return out;
}

// Carries each definition forward along every path, and looks forward from each point for reads.
TEST(Reaching, MeetsItsDefinitionAndSoDoesLiveness) {
  uint32_t several = 0, entries = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Analysed k(random_moves(2 + seed % 12, seed));
    const auto n = static_cast<uint32_t>(k.flow->instructions().size());
    const auto access = [&](uint32_t i, uint32_t reg) {
      for (const Access& a : k.registers.accesses(i)) {
        if (a.reg == reg) return a;
      }
      return Access{};
    };
    for (uint32_t reg = 0; reg < k.registers.all().size(); ++reg) {
      std::vector<Origins> expected(n);
      std::vector<std::set<uint32_t>> uses(n);
      const auto carry = [&](uint32_t definition, std::vector<uint32_t> work) {
        std::vector<bool> seen(n);
        while (!work.empty()) {
          const uint32_t i = work.back();
          work.pop_back();
          if (seen[i]) continue;
          seen[i] = true;
          if (access(i, reg).read) {
            if (definition == n) {
              expected[i].entry = true;
            } else {
              expected[i].definitions.push_back(definition);
              uses[definition].insert(i);
            }
          }
          if (access(i, reg).kills) continue;
          for (uint32_t to : next_of(*k.flow, i)) work.push_back(to);
        }
      };
      for (uint32_t i = 0; i < n; ++i) {
        const bool reachable = k.flow->blocks()[k.flow->instructions()[i].block].reachable;
        if (reachable && access(i, reg).written) carry(i, next_of(*k.flow, i));
      }
      carry(n, {0});
      for (uint32_t i = 0; i < n; ++i) {
        const bool reachable = k.flow->blocks()[k.flow->instructions()[i].block].reachable;
        const Access a = access(i, reg);
        if (a.read && reachable) {
          EXPECT_EQ(expected[i], k.reaching.origins(i, reg)) << "seed " << seed << ": " << i << " " << reg;
          several += expected[i].definitions.size() > 1 ? 1 : 0;
          entries += expected[i].entry ? 1 : 0;
        }
        if (a.written && reachable) {
          EXPECT_EQ(std::vector<uint32_t>(uses[i].begin(), uses[i].end()), k.reaching.uses(i, reg));
        }
        bool live = false;
        std::vector<bool> seen(n);
        std::vector<uint32_t> work{i};
        while (!work.empty() && !live) {
          const uint32_t at = work.back();
          work.pop_back();
          if (seen[at]) continue;
          seen[at] = true;
          live = access(at, reg).read;
          if (access(at, reg).kills) continue;
          for (uint32_t to : next_of(*k.flow, at)) work.push_back(to);
        }
        EXPECT_EQ(live && reachable, k.liveness.is_live_before(reg, i)) << "seed " << seed << ": " << i;
        const auto before = k.liveness.live_before(i);
        EXPECT_EQ(live && reachable, std::find(before.begin(), before.end(), reg) != before.end());
      }
    }
  }
  EXPECT_GT(several, 500u);
  EXPECT_GT(entries, 500u);
}

}  // namespace
}  // namespace klap::analysis
