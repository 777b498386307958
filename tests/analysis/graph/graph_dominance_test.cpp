// Dominators, post-dominators and control dependence, against their definitions and by hand.
#include <set>

#include "analysis/graph/dominance.h"
#include "graph_fixture.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<uint32_t> list(std::span<const uint32_t> blocks) { return {blocks.begin(), blocks.end()}; }

// Blocks that are reached from `from` on paths that avoid `avoid`; the exit is the last entry.
std::vector<bool> reached(const ControlFlow& flow, uint32_t from, uint32_t avoid) {
  const auto& blocks = flow.blocks();
  std::vector<bool> out(blocks.size() + 1);
  std::vector<uint32_t> work;
  if (from != avoid) work.push_back(from);
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    if (out[b]) continue;
    out[b] = true;
    if (blocks[b].exits_function) out.back() = true;
    for (uint32_t to : blocks[b].successors) {
      if (to != avoid) work.push_back(to);
    }
  }
  return out;
}

constexpr uint32_t kAvoidNothing = ~0u;

TEST(Dominance, MeetsItsDefinition) {
  uint32_t pairs = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Kernel k(random_body(3 + seed % 17, seed));
    const Dominance d(*k.flow);
    ASSERT_TRUE(d.known());
    const auto n = static_cast<uint32_t>(k.flow->blocks().size());
    const std::vector<bool> live = reached(*k.flow, 0, kAvoidNothing);
    for (uint32_t a = 0; a < n; ++a) {
      const std::vector<bool> without = reached(*k.flow, 0, a);
      for (uint32_t b = 0; b < n; ++b) {
        const bool expected = a == b || (live[a] && live[b] && !without[b]);
        EXPECT_EQ(expected, d.dominates(a, b)) << "seed " << seed << ": " << a << " " << b;
        pairs += expected && a != b ? 1 : 0;
      }
    }
  }
  EXPECT_GT(pairs, 1000u);
}

// Where every block can get out of the function no assumption about endless loops is needed.
TEST(Dominance, PostDominanceAndControlMeetTheirDefinitions) {
  uint32_t pairs = 0, functions = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const Kernel k(random_body(3 + seed % 17, seed));
    const Dominance d(*k.flow);
    const auto& blocks = k.flow->blocks();
    const auto n = static_cast<uint32_t>(blocks.size());
    bool endless = false;
    for (uint32_t b = 0; b < n; ++b) {
      EXPECT_EQ(!reached(*k.flow, b, kAvoidNothing).back(), d.is_endless(b)) << "seed " << seed << ": " << b;
      endless = endless || d.is_endless(b);
    }
    if (endless) continue;
    ++functions;
    const auto post = [&](uint32_t a, uint32_t b) { return a == b || !reached(*k.flow, b, a).back(); };
    for (uint32_t a = 0; a < n; ++a) {
      for (uint32_t b = 0; b < n; ++b)
        EXPECT_EQ(post(a, b), d.post_dominates(a, b)) << "seed " << seed << ": " << a << " " << b;
      for (uint32_t c = 0; c < n; ++c) {
        bool controls = false;
        for (uint32_t way : blocks[c].successors)
          controls = controls || (post(a, way) && (a == c || !post(a, c)));
        controls = controls && blocks[c].successors.size() + (blocks[c].exits_function ? 1 : 0) > 1;
        const auto by = list(d.controllers(a));
        EXPECT_EQ(controls, std::find(by.begin(), by.end(), c) != by.end())
            << "seed " << seed << ": " << a << " by " << c;
        pairs += controls ? 1 : 0;
      }
    }
  }
  EXPECT_GT(functions, 50u);
  EXPECT_GT(pairs, 1000u);
}

TEST(Dominance, KnowsWhatABranchDecides) {
  const Kernel k(R"(
    @%p1 bra ELSE;
    mov.u32 %r1, 1;
    bra JOIN;
    ELSE: mov.u32 %r1, 2;
    JOIN: @%p2 ret;
    mov.u32 %r1, 3;
    LOOP: add.u32 %r1, %r1, 1;
    @%p3 bra LOOP;
    ret;)");
  // b0 branch, b1 then, b2 else, b3 join, b4, b5 loop, b6 ret
  const Dominance d(*k.flow);
  EXPECT_THAT(list(d.controllers(0)), IsEmpty());
  EXPECT_THAT(list(d.controllers(1)), ElementsAre(0));
  EXPECT_THAT(list(d.controllers(2)), ElementsAre(0));
  EXPECT_THAT(list(d.controllers(3)), IsEmpty());
  EXPECT_THAT(list(d.controllers(5)), ElementsAre(3, 5));
  EXPECT_THAT(list(d.controllers(6)), ElementsAre(3));
  EXPECT_THAT(d.deciding_branches(5), ElementsAre(3, 5));
  EXPECT_EQ(3u, d.immediate_post_dominator(0));
  EXPECT_EQ(d.exit(), d.immediate_post_dominator(3));
  EXPECT_EQ(0u, d.immediate_dominator(3));
  EXPECT_EQ(
      "b0: dominator none, post-dominator b3\n"
      "b1: dominator b0, post-dominator b3, controlled by b0\n"
      "b2: dominator b0, post-dominator b3, controlled by b0\n"
      "b3: dominator b0, post-dominator exit\n"
      "b4: dominator b3, post-dominator b5, controlled by b3\n"
      "b5: dominator b4, post-dominator b6, controlled by b3 b5\n"
      "b6: dominator b5, post-dominator exit, controlled by b3\n",
      print_dominance(*k.flow, d));
}

// A thread that takes the first branch never gets to REST: REST does depend on that branch.
TEST(Dominance, AnEndlessLoopIsAWayNotToArrive) {
  const Kernel k(R"(
    @%p1 bra SPIN;
    REST: ret;
    SPIN: mov.u32 %r1, 1;
    @%p2 bra HERE;
    mov.u32 %r1, 2;
    HERE: mov.u32 %r1, 3;
    bra SPIN;)");
  // b0, b1 REST, b2 SPIN, b3, b4 HERE
  const Dominance d(*k.flow);
  EXPECT_THAT(list(d.controllers(1)), ElementsAre(0));
  EXPECT_FALSE(d.is_endless(0));
  for (uint32_t b = 2; b <= 4; ++b) {
    EXPECT_TRUE(d.is_endless(b));
    EXPECT_NE(Dominance::kNone, d.immediate_post_dominator(b));
    EXPECT_THAT(d.deciding_branches(b), testing::Contains(0u)) << b;
  }
  EXPECT_THAT(d.deciding_branches(3), testing::Contains(2u));
  EXPECT_THAT(print_dominance(*k.flow, d), HasSubstr("endless"));
}

// The loop is entered in its middle, and its first block in the text is another than the one entered.
TEST(Dominance, WhatDecidesAnEndlessLoopDecidesAllOfIt) {
  const Kernel k(R"(
    @%p1 bra IN;
    ret;
    BACK: mov.u32 %r1, 1;
    IN: mov.u32 %r1, 2;
    bra BACK;)");
  const Dominance d(*k.flow);
  EXPECT_THAT(d.deciding_branches(2), ElementsAre(0));
  EXPECT_THAT(d.deciding_branches(3), ElementsAre(0));
}

TEST(Dominance, SaysThatItKnowsNothing) {
  const Kernel k(R"(
    @%p1 bra A;
    brx.idx %r1, NOWHERE;
    A: mov.u32 %r1, 1;
    ret;)");
  const Dominance d(*k.flow);
  EXPECT_FALSE(d.known());
  EXPECT_FALSE(d.control_known());
  EXPECT_FALSE(d.dominates(0, 2));
  EXPECT_TRUE(d.dominates(2, 2));
  EXPECT_FALSE(d.post_dominates(2, 0));
  EXPECT_EQ(Dominance::kNone, d.immediate_dominator(2));
  EXPECT_THAT(list(d.controllers(0)), ElementsAre(0, 1));
  EXPECT_THAT(d.deciding_branches(2), ElementsAre(0, 1));
  EXPECT_THAT(list(d.controlled(1)), ElementsAre(0, 1, 2));
  EXPECT_THAT(list(d.controlled(2)), IsEmpty());
  EXPECT_THAT(print_dominance(*k.flow, d), HasSubstr("unknown"));
}

// A loop nest this deep makes the relation quadratic; it is given up, not computed.
TEST(Dominance, GivesUpARelationThatIsTooLarge) {
  std::string body;
  constexpr int kDepth = 600;
  for (int i = 0; i < kDepth; ++i) body += "H" + std::to_string(i) + ": mov.u32 %r1, 1;\n";
  for (int i = kDepth; i-- > 0;) body += "@%p1 bra H" + std::to_string(i) + ";\n";
  const Kernel k(body + "ret;");
  const Dominance d(*k.flow);
  EXPECT_TRUE(d.known());
  EXPECT_FALSE(d.control_known());
  EXPECT_EQ(600u, d.controllers(0).size());
  EXPECT_THAT(print_dominance(*k.flow, d), HasSubstr("unknown: control dependence"));
}

TEST(Dominance, TakesAnEmptyFunction) {
  const Kernel k("");
  const Dominance d(*k.flow);
  EXPECT_EQ("", print_dominance(*k.flow, d));
}

}  // namespace
}  // namespace klap::analysis
