// Loops, natural and irreducible, and the parts of loops.
#include <algorithm>

#include "analysis/graph/dominance.h"
#include "analysis/graph/loops.h"
#include "graph_fixture.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Loop> irreducible(const Loops& loops) {
  std::vector<Loop> out;
  for (const Loop& loop : loops.all()) {
    if (!loop.is_natural()) out.push_back(loop);
  }
  return out;
}

struct Analysed : Kernel {
  explicit Analysed(const std::string& body) : Kernel(body), dominance(*flow), loops(*flow) {}
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
                         [&](const Loop& loop) { return loop.is_natural() && loop.header() == header; });
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
  EXPECT_THAT(irreducible(k.loops), IsEmpty());
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
  const auto found = irreducible(k.loops);
  ASSERT_EQ(1u, found.size());
  EXPECT_THAT(found[0].blocks, ElementsAre(1, 2, 3));
  EXPECT_THAT(found[0].entries, ElementsAre(1, 3));
  EXPECT_EQ(0u, k.loops.all()[found[0].parent].header());
  EXPECT_TRUE(k.loops.is_irreducible(1));
  EXPECT_FALSE(k.loops.is_irreducible(4));
  EXPECT_EQ(3u, k.loops.all().size());  // AROUND and SELF are natural
  EXPECT_EQ(2u, k.loops.depth(1));
  EXPECT_EQ(3u, k.loops.depth(2));
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
      const auto found = std::find_if(k.loops.all().begin(), k.loops.all().end(), [&](const Loop& loop) {
        return loop.is_natural() && loop.header() == header;
      });
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
      EXPECT_EQ(blocks[b].reachable && k.flow->in_cycle(b), k.loops.depth(b) > 0)
          << "seed " << seed << ": " << b;
      irreducible += k.loops.is_irreducible(b) ? 1 : 0;
    }
  }
  EXPECT_GT(loops, 200u);
  EXPECT_GT(nested, 20u);
  EXPECT_GT(irreducible, 20u);
}

// Whether, of these blocks, each reaches each within them.
bool strongly_connected_by(const ControlFlow& flow, const std::vector<uint32_t>& blocks) {
  const Subgraph graph(
      blocks, [&](uint32_t b) -> const auto& { return flow.blocks()[b].successors; });
  return graph.components.count == 1 && graph.cyclic(0);
}

std::vector<uint32_t> entries_of(const ControlFlow& flow, const Loop& loop) {
  std::vector<uint32_t> out;
  const auto outside = [&](uint32_t p) { return flow.blocks()[p].reachable && !loop.contains(p); };
  for (uint32_t b : loop.blocks) {
    const auto& from = flow.blocks()[b].predecessors;
    if (b == 0 || std::any_of(from.begin(), from.end(), outside)) out.push_back(b);
  }
  return out;
}

// Every cycle that is left when control may not come back to an entry is in a loop inside.
void expect_inner_loops(const Analysed& k, const Loop& loop) {
  std::vector<uint32_t> rest;
  std::set_difference(loop.blocks.begin(), loop.blocks.end(), loop.entries.begin(), loop.entries.end(),
                      std::back_inserter(rest));
  const Subgraph inside(
      rest, [&](uint32_t b) -> const auto& { return k.flow->blocks()[b].successors; });
  for (uint32_t c = 0; c < inside.components.count; ++c) {
    if (!inside.cyclic(c)) continue;
    for (uint32_t b : inside.nodes_of(c)) EXPECT_GT(k.loops.depth(b), loop.depth);
  }
}

// Every loop can be gone round, has the entries that it says, and lies in its parent as a whole.
TEST(Loops, AreAForest) {
  uint32_t in_irreducible = 0, at_entries = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Analysed k(random_body(3 + seed % 17, seed));
    const std::vector<Loop>& all = k.loops.all();
    for (uint32_t l = 0; l < all.size(); ++l) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", loop " + std::to_string(l));
      const Loop& loop = all[l];
      EXPECT_TRUE(strongly_connected_by(*k.flow, loop.blocks));
      EXPECT_EQ(entries_of(*k.flow, loop), loop.entries);
      for (uint32_t b : loop.blocks)
        EXPECT_TRUE(!loop.is_natural() || k.dominance.dominates(loop.header(), b));
      expect_inner_loops(k, loop);
      if (loop.parent == Loop::kNone) continue;
      const Loop& parent = all[loop.parent];
      EXPECT_LT(loop.parent, l);
      EXPECT_EQ(parent.depth + 1, loop.depth);
      EXPECT_LT(loop.blocks.size(), parent.blocks.size());
      EXPECT_TRUE(
          std::includes(parent.blocks.begin(), parent.blocks.end(), loop.blocks.begin(), loop.blocks.end()));
      if (parent.is_natural()) continue;
      ++in_irreducible;
      at_entries +=
          static_cast<uint32_t>(std::count(parent.entries.begin(), parent.entries.end(), loop.entries[0]));
    }
  }
  EXPECT_GT(in_irreducible, 20u);
  EXPECT_GT(at_entries, 5u);  // natural loops that begin where an irreducible one is entered
}

TEST(Loops, AreNotWhereNothingLeads) {
  const Analysed k("ret;\nDEAD: @%p1 bra DEAD;\nret;");
  EXPECT_TRUE(k.flow->in_cycle(1));
  EXPECT_THAT(k.loops.all(), IsEmpty());
  // What nothing leads to is no second entry.
  const Analysed entered("mov.u32 %r1, 0;\nA: mov.u32 %r1, 1;\nB: @%p1 bra A;\nret;\nDEAD: bra B;");
  ASSERT_EQ(1u, entered.loops.all().size());
  EXPECT_TRUE(entered.loops.all()[0].is_natural());
}

TEST(Loops, HaveParts) {
  const Analysed k(R"(
    mov.u32 %r1, 0;
    HEAD: mov.u32 %r2, 0;
    @%p1 bra HEAD;
    mov.u32 %r2, 1;
    @%p2 bra HEAD;
    ret;)");
  // b0, b1 HEAD, b2, b3
  const LoopParts parts(*k.flow);
  ASSERT_EQ(2u, parts.all().size());  // all of the loop is no part of its own
  EXPECT_THAT(parts.all()[0].blocks, ElementsAre(1, 2));
  EXPECT_THAT(parts.all()[1].blocks, ElementsAre(1));
  EXPECT_THAT(parts.all()[1].entries, ElementsAre(1));
  EXPECT_EQ(0u, parts.all()[1].parent);
  EXPECT_FALSE(parts.all()[1].merged);
  EXPECT_THAT(parts.around(1), ElementsAre(1, 0));
  EXPECT_THAT(parts.around(2), ElementsAre(0));
  EXPECT_THAT(parts.around(3), IsEmpty());
}

TEST(Loops, HaveOnePartForTooMany) {
  std::string body = "HEAD: mov.u32 %r2, 0;\n";
  for (int i = 0; i < 20; ++i) body += "@%p1 bra HEAD;\nadd.u32 %r1, %r1, 1;\n";
  const Analysed k(body + "bra HEAD;");
  const LoopParts parts(*k.flow);
  ASSERT_EQ(2u, parts.all().size());
  EXPECT_TRUE(parts.all()[1].merged);
  EXPECT_EQ(parts.all()[0].blocks, parts.all()[1].blocks);
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
