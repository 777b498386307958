// Natural loops and irreducible regions.
#include <algorithm>

#include "analysis/loops.h"
#include "graph_fixture.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Analysed : Kernel {
  explicit Analysed(const std::string& body) : Kernel(body), dominance(*flow), loops(*flow, dominance) {}
  Dominance dominance;
  Loops loops;
};

TEST(Loops, NestAndHaveExits) {
  const Analysed k(R"(
    mov.u32 %r1, 0;
    OUTER: mov.u32 %r2, 0;
    INNER: add.u32 %r2, %r2, 1;
    @%p1 ret;
    @%p2 bra INNER;
    @%p3 bra OUTER;
    SECOND: @%p4 bra SECOND;
    ret;)");
  // b0, b1 OUTER, b2 INNER, b3, b4, b5 SECOND, b6
  ASSERT_EQ(3u, k.loops.all().size());
  const auto by_header = [&](uint32_t header) -> const Loop& {
    return *std::find_if(k.loops.all().begin(), k.loops.all().end(),
                         [&](const Loop& loop) { return loop.header == header; });
  };
  const Loop& outer = by_header(1);
  EXPECT_THAT(outer.blocks, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(outer.latches, ElementsAre(4));
  EXPECT_THAT(outer.exits, ElementsAre(Loop::Exit{2, k.dominance.exit()}, Loop::Exit{4, 5}));
  const Loop& inner = by_header(2);
  EXPECT_THAT(inner.blocks, ElementsAre(2, 3));
  EXPECT_THAT(inner.exits, ElementsAre(Loop::Exit{2, k.dominance.exit()}, Loop::Exit{3, 4}));
  EXPECT_EQ(2u, inner.depth);
  EXPECT_EQ(&outer, &k.loops.all()[inner.parent]);
  EXPECT_EQ(Loop::kNone, by_header(5).parent);
  EXPECT_EQ(0u, k.loops.depth(0));
  EXPECT_EQ(1u, k.loops.depth(4));
  EXPECT_EQ(2u, k.loops.depth(3));
  EXPECT_THAT(k.loops.irreducible(), IsEmpty());
  EXPECT_FALSE(k.loops.is_irreducible(3));
  EXPECT_THAT(print_loops(*k.flow, k.loops),
              HasSubstr("loop b1 line 8, depth 1: b1 b2 b3 b4; back from b4; left b2 -> exit, b4 -> b5\n"));
  EXPECT_THAT(print_loops(*k.flow, k.loops), HasSubstr("\n  loop b2 line 9, depth 2: b2 b3;"));
}

TEST(Loops, WithOneHeaderAreOneLoop) {
  const Analysed k("HEAD: @%p1 bra HEAD;\n@%p2 bra HEAD;\nbra HEAD;");
  ASSERT_EQ(1u, k.loops.all().size());
  EXPECT_THAT(k.loops.all()[0].latches, ElementsAre(0, 1, 2));
  EXPECT_THAT(k.loops.all()[0].exits, IsEmpty());
  EXPECT_THAT(print_loops(*k.flow, k.loops), HasSubstr("never left"));
}

TEST(Loops, ReportsIrreducibleRegions) {
  const Analysed k(R"(
    AROUND: @%p1 bra B;
    A: mov.u32 %r1, 1;
    SELF: @%p4 bra SELF;
    B: @%p2 bra A;
    @%p3 bra AROUND;
    ret;)");
  // b0 AROUND, b1 A, b2 SELF, b3 B, b4, b5
  ASSERT_EQ(1u, k.loops.irreducible().size());
  EXPECT_THAT(k.loops.irreducible()[0].blocks, ElementsAre(1, 2, 3));
  EXPECT_THAT(k.loops.irreducible()[0].entries, ElementsAre(1, 3));
  EXPECT_TRUE(k.loops.is_irreducible(1));
  EXPECT_FALSE(k.loops.is_irreducible(4));
  EXPECT_EQ(2u, k.loops.all().size());  // AROUND and SELF are natural
  EXPECT_EQ(1u, k.loops.depth(1));
  EXPECT_EQ(2u, k.loops.depth(2));
  EXPECT_THAT(print_loops(*k.flow, k.loops), HasSubstr("irreducible: b1 b2 b3; entered at b1 b3\n"));
}

// Against the definitions, on random graphs.
TEST(Loops, MeetTheirDefinition) {
  uint32_t loops = 0, irreducible = 0, nested = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Analysed k(random_body(3 + seed % 17, seed));
    const auto& blocks = k.flow->blocks();
    const auto n = static_cast<uint32_t>(blocks.size());
    for (uint32_t header = 0; header < n; ++header) {
      // The body by its definition: blocks that reach a latch without passing the header.
      std::vector<bool> body(n);
      std::vector<uint32_t> work;
      for (uint32_t from : blocks[header].predecessors) {
        if (blocks[from].reachable && k.dominance.dominates(header, from)) work.push_back(from);
      }
      const bool is_header = !work.empty();
      body[header] = true;
      while (!work.empty()) {
        const uint32_t b = work.back();
        work.pop_back();
        if (body[b]) continue;
        body[b] = true;
        for (uint32_t from : blocks[b].predecessors) {
          if (blocks[from].reachable) work.push_back(from);
        }
      }
      const auto found = std::find_if(k.loops.all().begin(), k.loops.all().end(),
                                      [&](const Loop& loop) { return loop.header == header; });
      ASSERT_EQ(is_header, found != k.loops.all().end()) << "seed " << seed << ": " << header;
      if (!is_header) continue;
      ++loops;
      nested += found->depth > 1 ? 1 : 0;
      const auto index = static_cast<uint32_t>(found - k.loops.all().begin());
      for (uint32_t b = 0; b < n; ++b) {
        EXPECT_EQ(body[b], k.loops.contains(index, b)) << "seed " << seed << ": " << header << " " << b;
        EXPECT_EQ(body[b], std::binary_search(found->blocks.begin(), found->blocks.end(), b));
      }
    }
    for (uint32_t b = 0; b < n; ++b) {
      const bool somewhere = k.loops.depth(b) > 0 || k.loops.is_irreducible(b);
      EXPECT_EQ(blocks[b].reachable && k.flow->in_cycle(b), somewhere) << "seed " << seed << ": " << b;
      irreducible += k.loops.is_irreducible(b) ? 1 : 0;
    }
  }
  EXPECT_GT(loops, 200u);
  EXPECT_GT(nested, 20u);
  EXPECT_GT(irreducible, 20u);
}

TEST(Loops, SayThatTheyAreUnknown) {
  const Analysed k("LOOP: @%p1 bra LOOP;\nbrx.idx %r1, NOWHERE;\nret;");
  EXPECT_FALSE(k.loops.known());
  EXPECT_TRUE(k.loops.is_irreducible(2));
  EXPECT_THAT(print_loops(*k.flow, k.loops), HasSubstr("unknown"));
}

TEST(Loops, TakeAnEmptyFunction) { EXPECT_EQ("", print_loops(*Analysed("").flow, Analysed("").loops)); }

}  // namespace
}  // namespace klap::analysis
