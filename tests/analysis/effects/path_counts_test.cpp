// Counts on paths, compared with an enumeration of paths in random graphs.
#include "analysis/graph/path_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "kernel.h"

namespace klap::test {
namespace {

using analysis::ControlFlow;
using analysis::CountRange;
using analysis::PathCounts;

struct Setting {
  explicit Setting(const Kernel& k)
      : flow(k.facts->flow), counted(flow.instructions().size()), targets(counted) {
    for (uint32_t i = 0; i < counted.size(); ++i) {
      const auto& s = *flow.instructions()[i].statement;
      counted[i] = k.module.is(s.head, "bar");
      targets[i] = k.module.is(s.head, "ret");
    }
  }
  const ControlFlow& flow;
  std::vector<bool> counted, targets;
};

TEST(PathCounts, OfOneDecision) {
  const Kernel k =
      kernel("bar.sync 0; @%p1 bra L; bar.sync 0; L: bar.sync 0; @%p2 bra M; mov.u32 %r1, 1; M: ret;");
  const Setting s(k);
  const PathCounts counts(s.flow, s.counted, s.targets);
  EXPECT_EQ(2u, counts.from_entry()->least);
  EXPECT_EQ(3u, counts.from_entry()->most);
  EXPECT_EQ(std::vector<uint32_t>{1}, counts.decisions()) << "not the second branch, which changes nothing";
}

TEST(PathCounts, OfLoops) {
  const Kernel counting = kernel("L: bar.sync 0; @%p1 bra L; ret;");
  const Setting s(counting);
  const PathCounts counts(s.flow, s.counted, s.targets);
  EXPECT_EQ(1u, counts.from_entry()->least);
  EXPECT_EQ(CountRange::kUnbounded, counts.from_entry()->most);
  EXPECT_EQ(std::vector<uint32_t>{1}, counts.decisions());
  const Kernel idle = kernel("bar.sync 0; L: add.u32 %r1, %r1, 1; @%p1 bra L; bar.sync 0; ret;");
  const Setting t(idle);
  const PathCounts none(t.flow, t.counted, t.targets);
  EXPECT_EQ(2u, none.from_entry()->most);
  EXPECT_TRUE(none.decisions().empty());
}

// A branch whose ways meet again with equal counts decides nothing, in a loop as elsewhere; in loops in loops
// neither.
TEST(PathCounts, OfWaysThatMeetAgainInALoop) {
  const Kernel meet = kernel("L: @%p1 bra M; mov.u32 %r1, 1; M: bar.sync 0; @%p2 bra L; ret;");
  const Setting s(meet);
  EXPECT_EQ(std::vector<uint32_t>{3}, PathCounts(s.flow, s.counted, s.targets).decisions());
  const Kernel apart = kernel("L: @%p1 bra M; bar.sync 0; M: bar.sync 0; @%p2 bra L; ret;");
  const Setting t(apart);
  EXPECT_EQ((std::vector<uint32_t>{0, 3}), PathCounts(t.flow, t.counted, t.targets).decisions());
  const Kernel nested = kernel(
      "K: @%p3 bra L; mov.u32 %r2, 1; L: @%p1 bra M; mov.u32 %r1, 1; M: bar.sync 0; @%p2 bra L; @%p4 bra K; "
      "ret;");
  const Setting u(nested);
  EXPECT_EQ((std::vector<uint32_t>{5, 6}), PathCounts(u.flow, u.counted, u.targets).decisions());
  const Kernel idle = kernel("L: bar.sync 0; I: add.u32 %r1, %r1, 1; @%p1 bra I; @%p2 bra L; ret;");
  const Setting v(idle);
  EXPECT_EQ(std::vector<uint32_t>{3}, PathCounts(v.flow, v.counted, v.targets).decisions());
}

TEST(PathCounts, OfPredicatedInstructionsAndUnreachableTargets) {
  const Kernel k = kernel("@%p1 bar.sync 0; ret;");
  const Setting s(k);
  const PathCounts counts(s.flow, s.counted, s.targets);
  EXPECT_EQ(0u, counts.from_entry()->least);
  EXPECT_EQ(1u, counts.from_entry()->most);
  EXPECT_EQ(std::vector<uint32_t>{0}, counts.decisions());
  const Kernel endless = kernel("L: bra L; ret;");
  const Setting t(endless);
  EXPECT_FALSE(PathCounts(t.flow, t.counted, t.targets).from_entry());
}

// A body of blocks that each count or not and end in a branch, forwards only where `acyclic`.
std::string random_body(std::mt19937& random, bool acyclic) {
  const int blocks = 3 + static_cast<int>(random() % 6);
  std::string body;
  for (int b = 0; b < blocks; ++b) {
    body += "B" + std::to_string(b) + ": mov.u32 %r1, 1;\n";
    for (unsigned n = random() % 3; n > 0; --n) body += "bar.sync 0;\n";
    const int first = acyclic ? b + 1 : 0;
    const int to = first + static_cast<int>(random() % static_cast<unsigned>(blocks - first + 1));
    if (random() % 4 != 0)
      body += "@%p" + std::to_string(b) + " bra " + (to == blocks ? "END" : "B" + std::to_string(to)) + ";\n";
    if (random() % 8 == 0) body += "ret;\n";
  }
  return body + "END: ret;";
}

// All counts with which a walk of limited length gets from the entry to a target.
std::set<uint32_t> enumerate(const Setting& s) {
  std::set<uint32_t> out;
  std::set<std::pair<uint32_t, uint32_t>> seen;  // block, count
  const std::function<void(uint32_t, uint32_t)> walk = [&](uint32_t b, uint32_t count) {
    if (count > 40 || !seen.emplace(b, count).second) return;
    const auto& block = s.flow.blocks()[b];
    for (uint32_t i = block.first; i < block.last; ++i) {
      if (s.targets[i]) out.insert(count);
      if (s.counted[i]) ++count;
    }
    for (uint32_t to : block.successors) walk(to, count);
  };
  walk(0, 0);
  return out;
}

void compare(bool acyclic) {
  std::mt19937 random(acyclic ? 1 : 2);
  int decided = 0, same = 0;
  for (int iteration = 0; iteration < 400; ++iteration) {
    const std::string body = random_body(random, acyclic);
    const Kernel k = kernel(body);
    const Setting s(k);
    const PathCounts counts(s.flow, s.counted, s.targets);
    const std::set<uint32_t> expected = enumerate(s);
    ASSERT_EQ(!expected.empty(), counts.from_entry().has_value()) << body;
    if (expected.empty()) continue;
    EXPECT_EQ(*expected.begin(), counts.from_entry()->least) << body;
    if (counts.from_entry()->most != CountRange::kUnbounded)
      EXPECT_EQ(*expected.rbegin(), counts.from_entry()->most) << body;
    else
      EXPECT_GT(*expected.rbegin(), 30u) << body;
    if (counts.decisions().empty()) {
      EXPECT_EQ(1u, expected.size()) << body;
      ++same;
    } else {
      ++decided;
    }
  }
  EXPECT_GT(decided, 20);
  EXPECT_GT(same, 20);
}
// What a thread counts that goes the way which `outcome` says for the n-th time that it is at a branch;
// nothing if it goes on for too long.
using Outcome = std::function<bool(uint32_t branch, uint32_t time)>;
std::optional<uint32_t> walk(const Setting& s, const Outcome& outcome) {
  std::map<uint32_t, uint32_t> times;
  uint32_t count = 0, b = 0;
  for (int steps = 0; steps < 300; ++steps) {
    const auto& block = s.flow.blocks()[b];
    for (uint32_t i = block.first; i < block.last; ++i) {
      if (s.targets[i]) return count;
      if (s.counted[i]) ++count;
    }
    if (block.successors.empty()) return std::nullopt;
    const uint32_t branch = block.last - 1;
    const bool second = block.successors.size() > 1 && outcome(branch, times[branch]++);
    b = block.successors[second ? 1 : 0];
  }
  return std::nullopt;
}

// Threads that agree at all decisions, each time, and go other ways at all other branches.
void expect_equal_counts(bool acyclic) {
  std::mt19937 random(acyclic ? 3 : 4);
  int compared = 0, undecided = 0;
  for (int iteration = 0; iteration < 1500; ++iteration) {
    const std::string body = random_body(random, acyclic);
    const Kernel k = kernel(body);
    const Setting s(k);
    const PathCounts counts(s.flow, s.counted, s.targets);
    const std::vector<uint32_t>& decisions = counts.decisions();
    for (uint32_t pair = 0; pair < 8; ++pair) {
      bool left_open = false;
      const auto thread = [&](uint32_t number) {
        return walk(s, [&, number](uint32_t branch, uint32_t time) {
          const bool decides = std::ranges::find(decisions, branch) != decisions.end();
          left_open = left_open || !decides;
          std::seed_seq seed{branch, time, pair, static_cast<uint32_t>(iteration), decides ? 0U : number};
          return std::mt19937(seed)() % 2 == 0;
        });
      };
      const auto first = thread(1), second = thread(2);
      if (!first || !second) continue;
      ASSERT_EQ(*first, *second) << body;
      ++compared;
      undecided += left_open ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(undecided, 100);
}
TEST(PathCounts, AreEqualForThreadsThatAgree) { expect_equal_counts(true); }
TEST(PathCounts, AreEqualForThreadsThatAgreeInLoops) { expect_equal_counts(false); }

TEST(PathCounts, AgreeWithAllPathsOfRandomGraphs) { compare(true); }
TEST(PathCounts, AgreeWithAllWalksOfRandomGraphsWithLoops) { compare(false); }

}  // namespace
}  // namespace klap::test
