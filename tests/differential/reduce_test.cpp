// The reducer with planted failures: what is left is what the failure needs, and nothing else.
#include "random/reduce.h"

#include <gtest/gtest.h>

#include "random/generate.h"
#include "random/print_ptx.h"
#include "random/reference.h"

namespace klap::differential::random {
namespace {

bool any(const Program& program, const std::function<bool(const Statement&)>& is) {
  bool found = false;
  for (const Kernel& kernel : program.kernels) {
    for_each(kernel.body, [&](const Statement& s) { found = found || is(s); });
  }
  return found;
}

bool has_atomic_xor(const Program& program) {
  return any(program, [](const Statement& s) {
    return s.kind == Kind::Update && static_cast<Sum>(s.number) == Sum::Xor && s.limit == 1;
  });
}
bool has_loop(const Program& program) {
  return any(program, [](const Statement& s) { return s.kind == Kind::Loop; });
}

size_t statements(const Program& program) {
  size_t count = 0;
  for (const Kernel& kernel : program.kernels) for_each(kernel.body, [&](const Statement&) { ++count; });
  return count;
}

TEST(Reducer, LeavesWhatAPlantedFailureNeeds) {
  const auto fails = [](const Program& p) { return has_atomic_xor(p) && has_loop(p); };
  int reduced = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Program program = generate(seed, parse_mix("all"));
    if (!fails(program)) continue;
    const Program small = reduce(program, fails);
    ++reduced;
    EXPECT_TRUE(fails(small));
    EXPECT_EQ("", problem(small));
    EXPECT_EQ(2U, statements(small)) << print_ptx(small);
    EXPECT_EQ(1U, small.steps.size());
    // No call, no argument, no thread but one is left. The step may launch a kernel that has neither.
    EXPECT_LE(small.kernels.size(), 3U);
    EXPECT_LE(size_of(small), 6U) << print_ptx(small);
    EXPECT_EQ(std::string::npos, print_ptx(small).find("call"));
    EXPECT_LE(lay_out(small).threads, 1U);
  }
  EXPECT_GE(reduced, 5);
}

// A failure that shows in the result: a launch in a loop whose child adds to a sum.
TEST(Reducer, KeepsAFailureThatNeedsALaunch) {
  const auto fails = [](const Program& p) {
    const Memories before = initial_memories(p), after = run_reference(p);
    Program without = p;
    for (Kernel& kernel : without.kernels) {
      for_each(kernel.body, [](Statement& s) {
        if (s.kind == Kind::Launch) s.site.grid[0] = {0, 1, {}};
      });
    }
    return run_reference(without).sums != after.sums && before.sums != after.sums;
  };
  int reduced = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    // A kernel that launches itself would be all that is needed.
    const Program program = generate(seed, parse_mix("all,-recursion"));
    if (!fails(program)) continue;
    const Program small = reduce(program, fails);
    ++reduced;
    EXPECT_TRUE(fails(small));
    EXPECT_EQ(2U, statements(small)) << print_ptx(small);  // the launch, and one update
    EXPECT_EQ(2U, small.kernels.size()) << print_ptx(small);
    EXPECT_LT(size_of(small), size_of(program) / 4);
  }
  EXPECT_GE(reduced, 4);
}

TEST(Reducer, StopsWhenTold) {
  const Program program = generate(3, parse_mix("all"));
  size_t tries = 0;
  const Program small = reduce(
      program,
      [&](const Program&) {
        ++tries;
        return true;
      },
      10);
  EXPECT_LE(tries, 10U);
  EXPECT_LE(size_of(small), size_of(program));
}

TEST(Reducer, LeavesAProgramThatCannotBeMadeSmaller) {
  const Program program = generate(5, parse_mix("legal"));
  const Program same = reduce(program, [](const Program&) { return false; });
  EXPECT_EQ(print_ptx(program), print_ptx(same));
}

}  // namespace
}  // namespace klap::differential::random
