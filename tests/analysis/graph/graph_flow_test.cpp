// Basic blocks, edges, exits and reachability.
#include "graph_fixture.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Flow, KnowsEveryWayOut) {
  const Kernel k(R"(
    @%p1 ret;
    @%p2 exit;
    @%p3 trap;
    @%p4 bra END;
    mov.u32 %r1, 1;
    END:)");
  const auto& blocks = k.flow->blocks();
  ASSERT_EQ(5u, blocks.size());
  const BlockEnd ends[] = {BlockEnd::Return, BlockEnd::Exit, BlockEnd::Trap, BlockEnd::Branch,
                           BlockEnd::FallsThrough};
  for (uint32_t b = 0; b < 5; ++b) {
    EXPECT_EQ(ends[b], blocks[b].end);
    EXPECT_TRUE(blocks[b].exits_function) << b;
    EXPECT_EQ(b >= 3, blocks[b].falls_off) << b;
    EXPECT_EQ(b < 4, blocks[b].conditional) << b;
    if (b < 4) {
      EXPECT_THAT(blocks[b].successors, ElementsAre(b + 1));
      EXPECT_THAT(blocks[b + 1].predecessors, ElementsAre(b));
    }
  }
}

TEST(Flow, MarksWhatCannotBeReached) {
  const Kernel k(R"(
    bra C;
    A: mov.u32 %r1, 1;
    B: bra A;
    C: ret;
    mov.u32 %r2, 1;)");
  const auto& blocks = k.flow->blocks();
  ASSERT_EQ(5u, blocks.size());
  EXPECT_TRUE(blocks[0].reachable);
  EXPECT_FALSE(blocks[1].reachable);
  EXPECT_FALSE(blocks[2].reachable);
  EXPECT_TRUE(blocks[3].reachable);
  EXPECT_FALSE(blocks[4].reachable);
  EXPECT_TRUE(k.flow->in_cycle(1));
  EXPECT_FALSE(k.flow->in_cycle(3));
  EXPECT_THAT(print_flow(*k.flow), HasSubstr("bra, -> b1, from b1, unreachable"));
}

TEST(Flow, CallsThatDoNotReturnEndAPath) {
  const std::string items = ".extern .func stop() .noreturn;\n.extern .func go();\n";
  const Kernel k(R"(
    call.uni stop, ();
    call.uni go, ();
    @%p1 call stop;
    P: .callprototype _ () .noreturn;
    Q: .callprototype _ ();
    call %rd1, (), Q;
    call %rd1, (), P;
    mov.u32 %r1, 1;)",
                 items);
  const auto& blocks = k.flow->blocks();
  ASSERT_EQ(4u, blocks.size());
  EXPECT_EQ(BlockEnd::NoReturnCall, blocks[0].end);
  EXPECT_THAT(blocks[0].successors, IsEmpty());
  EXPECT_EQ(BlockEnd::NoReturnCall, blocks[1].end);
  EXPECT_THAT(blocks[1].successors, ElementsAre(2));
  EXPECT_EQ(2u, blocks[1].last - blocks[1].first);  // the call of `go` ends no block
  EXPECT_THAT(blocks[2].successors, IsEmpty());
  EXPECT_FALSE(blocks[3].reachable);
}

// A register that is named like a function that does not return is no call of that function.
TEST(Flow, AnIndirectCallIsNotTheFunctionOfItsRegistersName) {
  const Kernel k(R"(
    { .reg .b64 stop; Q: .callprototype _ (); call stop, (), Q; }
    ret;)",
                 ".extern .func stop() .noreturn;\n");
  EXPECT_EQ(1u, k.flow->blocks().size());
}

TEST(Flow, FollowsTargetListsOfTheRightScope) {
  const Kernel k(R"(
    T: .branchtargets A, B, A;
    {
      U: .branchtargets B;
      @%p1 brx.idx %r1, T;
      brx.idx %r1, U;
      A: mov.u32 %r1, 1;
    }
    {
      U: .branchtargets A;
      brx.idx %r1, U;
    }
    A: mov.u32 %r2, 1;
    B: ret;)");
  // b0 @brx T, b1 brx U, b2 inner A, b3 brx U of the second scope, b4 outer A, b5 B
  const auto& blocks = k.flow->blocks();
  ASSERT_EQ(5u, blocks.size() - 1);
  EXPECT_THAT(blocks[0].successors, ElementsAre(4, 5, 1));
  EXPECT_THAT(blocks[1].successors, ElementsAre(5));
  EXPECT_THAT(blocks[3].successors, ElementsAre(4));
  EXPECT_FALSE(k.flow->has_unknown_branch());
}

TEST(Flow, SaysThatABranchIsUnknown) {
  const Kernel k(R"(
    brx.idx %r1, NOWHERE;
    A: mov.u32 %r1, 1;
    B: ret;)");
  EXPECT_TRUE(k.flow->has_unknown_branch());
  EXPECT_TRUE(k.flow->can_follow(2, 0));
  EXPECT_THAT(print_flow(*k.flow), HasSubstr("unknown: a branch without a list"));
  EXPECT_THAT(print_flow(*k.flow), HasSubstr("brx, -> unknown, entry"));
  EXPECT_THAT(print_flow(*k.flow), HasSubstr("reachable: unknown"));
  EXPECT_THAT(print_flow_dot(*k.flow), HasSubstr("b0 -> unknown"));
}

TEST(Flow, PrintsBlocksAndAGraph) {
  const Kernel k(R"(@%p1 bra B;
    mov.u32 %r1, 1;
    B: ret;)");
  EXPECT_EQ(
      "b0 lines 6-6: conditional bra, -> b2 b1, entry\n"
      "b1 lines 7-7: falls through, -> b2, from b0\n"
      "b2 lines 8-8: ret, -> exit, from b0 b1\n",
      print_flow(*k.flow));
  const std::string dot = print_flow_dot(*k.flow);
  EXPECT_THAT(dot, HasSubstr("digraph \"k\" {"));
  EXPECT_THAT(dot, HasSubstr("  b0 [label=\"b0, line 6\\l@%p1 bra B;\\l\"];\n"));
  EXPECT_THAT(dot, HasSubstr("  b0 -> b1 [label=else];\n"));
  EXPECT_THAT(dot, HasSubstr("  b2 -> exit;\n"));
  EXPECT_TRUE(dot.ends_with("}\n"));
}

// can_follow against a plain search over instructions.
TEST(Flow, ReachesWhatASearchReaches) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Kernel k(random_body(3 + seed % 20, seed));
    const auto& blocks = k.flow->blocks();
    for (uint32_t from = 0; from < blocks.size(); ++from) {
      std::vector<bool> reached(blocks.size());
      std::vector<uint32_t> work(blocks[from].successors);
      while (!work.empty()) {
        const uint32_t b = work.back();
        work.pop_back();
        if (reached[b]) continue;
        reached[b] = true;
        work.insert(work.end(), blocks[b].successors.begin(), blocks[b].successors.end());
      }
      for (uint32_t to = 0; to < blocks.size(); ++to) {
        const uint32_t last = blocks[from].last - 1, first = blocks[to].first;
        const bool expected = reached[to] || (from == to && last > first && reached[from]);
        EXPECT_EQ(expected, k.flow->can_follow(last, first)) << "seed " << seed << " " << from << " " << to;
      }
      EXPECT_EQ(reached[from], k.flow->in_cycle(from));
    }
  }
}

TEST(Flow, TakesAnEmptyFunction) {
  const Kernel k("");
  EXPECT_TRUE(k.flow->blocks().empty());
  EXPECT_EQ("", print_flow(*k.flow));
}

}  // namespace
}  // namespace klap::analysis
