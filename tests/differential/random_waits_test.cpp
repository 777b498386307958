// Random programs that wait, without running them on anything: that they are reproducible, that each kind of
// statement comes, that children count, and that ptxas takes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "process.h"
#include "random/waits/generate.h"
#include "random/waits/print.h"
#include "random/waits/reduce.h"
#include "random/waits/reference.h"
#include "support/file.h"

namespace klap::differential::waits {
namespace {

TEST(RandomWaits, AreTheSameForTheSameSeed) {
  std::set<std::string> different;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const std::string text = print_ptx(generate(seed));
    EXPECT_EQ(text, print_ptx(generate(seed))) << seed;
    different.insert(text);
  }
  EXPECT_EQ(30U, different.size());
}

TEST(RandomWaits, HaveStatementsOfAllKindsInAllPlaces) {
  std::set<Kind> kinds, in_loops, in_branches, in_functions;
  const auto add_inner = [](const Statement& s, std::set<Kind>& to) {
    random::for_each(s.body, [&](const Statement& inner) { to.insert(inner.kind); });
  };
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    for (const Kernel& kernel : generate(seed).kernels) {
      random::for_each(kernel.body, [&](const Statement& s) {
        kinds.insert(s.kind);
        if (s.kind == Kind::Loop) add_inner(s, in_loops);
        if (s.kind == Kind::If) add_inner(s, in_branches);
        if (s.kind == Kind::Function) add_inner(s, in_functions);
      });
    }
  }
  EXPECT_EQ(static_cast<size_t>(Kind::LastError) + 1, kinds.size());
  for (const auto* const place : {&in_loops, &in_branches, &in_functions}) {
    EXPECT_TRUE(place->contains(Kind::Wait));
    EXPECT_TRUE(place->contains(Kind::Barrier));
    EXPECT_TRUE(place->contains(Kind::Launch));
  }
}

// A reference in which children did nothing would agree with a library that loses them.
TEST(RandomWaits, DependOnTheirChildren) {
  int depending = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Program program = generate(seed);
    program.polls = false;  // the counters, too, would depend on them
    const Memories with = run_reference(program);
    for (Kernel& kernel : program.kernels)
      random::for_each(kernel.body, [](Statement& s) {
        if (s.kind == Kind::Launch) s.kind = Kind::ClearTotal;
      });
    prepare(program);
    const Memories without = run_reference(program);
    // The words of the first grid's own threads come first.
    const Kernel& first = program.kernels[0];
    const auto own = static_cast<ptrdiff_t>(kAllWords + first.threads() * first.blocks() * kAllWords);
    depending += std::equal(with.words.begin(), with.words.begin() + own, without.words.begin()) ? 0 : 1;
  }
  EXPECT_GE(depending, 50);
}

TEST(RandomWaits, AreTakenByPtxas) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "program.ptx").string();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    write_file(file, print_ptx(generate(seed)));
    const std::string command =
        std::string(KLAP_PTXAS) + " -arch=sm_80 -c -o " + file + ".o " + file + " >" + file + ".log 2>&1";
    ASSERT_EQ(0, std::system(command.c_str())) << seed << "\n" << read_file(file + ".log");
  }
}

TEST(RandomWaits, AreReducedToWhatFails) {
  const auto waits = [](const Program& program) {
    bool found = false;
    for (const Kernel& kernel : program.kernels)
      random::for_each(kernel.body, [&](const Statement& s) { found = found || s.kind == Kind::Wait; });
    return found;
  };
  const Program small = reduce(generate(7), waits, 20000);
  EXPECT_TRUE(waits(small));
  EXPECT_LE(size_of(small), 6U);
}

}  // namespace
}  // namespace klap::differential::waits
