// Random programs without running them on anything: that they are reproducible and legal, that their results
// do not depend on the order of grids, that ptxas and klap_jit take every one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "jit/module.h"
#include "process.h"
#include "random/generate.h"
#include "random/print_ptx.h"
#include "random/program_case.h"
#include "random/reference.h"
#include "support/error.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::differential::random {
namespace {

constexpr const char* kMixes[] = {"all", "legal", "swarm"};
constexpr const char* kAllMixes[] = {"all", "legal", "swarm", "order"};

TEST(RandomPrograms, AreTheSameForTheSameSeed) {
  for (const char* mix : kAllMixes) {
    std::set<std::string> different;
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      const std::string text = print_ptx(generate(seed, parse_mix(mix)));
      EXPECT_EQ(text, print_ptx(generate(seed, parse_mix(mix)))) << mix << " " << seed;
      different.insert(text);
    }
    EXPECT_EQ(30U, different.size());
  }
}

TEST(RandomPrograms, GiveTheSameResultInAnyOrderOfGrids) {
  for (const char* mix : kAllMixes) {
    for (uint64_t seed = 1; seed <= 150; ++seed) {
      const Program program = generate(seed, parse_mix(mix));
      const Memories first = run_reference(program, GridOrder::FirstComeFirstServed);
      for (const GridOrder order : {GridOrder::AtOnce, GridOrder::LastComeFirstServed}) {
        const Memories other = run_reference(program, order);
        EXPECT_EQ(first.own, other.own) << mix << " " << seed;
        EXPECT_EQ(first.sums, other.sums) << mix << " " << seed;
        EXPECT_EQ(first.input, other.input) << mix << " " << seed;
        EXPECT_EQ(first.cells, other.cells) << mix << " " << seed;
      }
    }
  }
}

// A reference that did nothing would agree with an interpreter that does nothing.
TEST(RandomPrograms, ChangeMemoryFromDeviceLaunches) {
  int changed = 0, by_children = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Program program = generate(seed, parse_mix("all"));
    const Memories before = initial_memories(program), after = run_reference(program);
    changed += before.own != after.own || before.sums != after.sums ? 1 : 0;
    for (Kernel& kernel : program.kernels) {
      for_each(kernel.body, [](Statement& s) {
        if (s.kind == Kind::Launch) s.site.grid[0] = {0, 1, {}};  // refused
      });
    }
    const Memories without = run_reference(program);
    by_children += without.own != after.own || without.sums != after.sums ? 1 : 0;
  }
  EXPECT_EQ(60, changed);
  EXPECT_GE(by_children, 50);
}

// Programs of this mix are there for what CUDA orders: most must show it when the order is another one.
TEST(RandomPrograms, OfTheOrderMixDependOnTheOrderOfLaunches) {
  int depending = 0, launching = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Program program = generate(seed, parse_mix("order,-unordered"));
    const Memories right = run_reference(program);
    const Memories wrong = run_reference(program, GridOrder::Reversed);
    depending += right.cells != wrong.cells || right.own != wrong.own || right.sums != wrong.sums ? 1 : 0;
    launching += right.cells != initial_memories(program).cells ? 1 : 0;
  }
  EXPECT_GE(depending, 150);
  EXPECT_GE(launching, 190);
}

TEST(RandomPrograms, StayAffordable) {
  for (const char* mix : kMixes) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      const Layout layout = lay_out(generate(seed, parse_mix(mix)));
      EXPECT_LE(layout.grids, 500U) << mix << " " << seed;
      EXPECT_LE(layout.threads, 12000U) << mix << " " << seed;
    }
  }
}

int assemble(const std::string& ptx, const std::filesystem::path& file) {
  write_file(file, ptx);
  const std::string command = std::string(KLAP_PTXAS) + " -arch=sm_90 -c -o " + file.string() + ".o " +
                              file.string() + " >" + file.string() + ".log 2>&1";
  return std::system(command.c_str());
}

TEST(RandomPrograms, AreTakenByPtxas) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "program.ptx";
  for (const char* mix : kAllMixes) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      ASSERT_EQ(0, assemble(print_ptx(generate(seed, parse_mix(mix))), file))
          << mix << " " << seed << "\n"
          << read_file(file.string() + ".log");
    }
  }
}

jit::Request grid_request(jit::Launcher launcher) {
  jit::Request request;
  request.sm = 90;
  request.setting = test::given({{"granularity", "grid"}, {"launcher", to_string(launcher)}});
  return request;
}

TEST(RandomPrograms, AreUnderstoodByKlap) {
  for (const char* mix : kAllMixes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const auto program = jit::program_from_ptx(print_ptx(generate(seed, parse_mix(mix))), "random");
      for (const auto& remark : explain_module(program, grid_request(jit::Launcher::Host))) {
        EXPECT_NE("not-understood", remark.reason) << mix << " " << seed << ": " << remark.detail;
        EXPECT_NE("callee-unknown", remark.reason) << mix << " " << seed << ": " << remark.detail;
      }
    }
  }
}

TEST(RandomPrograms, OfTheLegalMixAreMostlyRewritten) {
  int rewritten = 0, sites = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const auto program = jit::program_from_ptx(print_ptx(generate(seed, parse_mix("legal"))), "random");
    for (const auto& remark : explain_module(program, grid_request(jit::Launcher::Host))) {
      ++sites;
      rewritten += remark.rewritten ? 1 : 0;
    }
  }
  EXPECT_GE(sites, 100);
  EXPECT_GE(rewritten, sites * 3 / 4);
}

TEST(Mixes, AreReadAndRefused) {
  EXPECT_FALSE(parse_mix("legal").nested);
  EXPECT_TRUE(parse_mix("legal,+loops").loops);
  EXPECT_FALSE(parse_mix("all,-recursion").recursion);
  EXPECT_TRUE(parse_mix("swarm,-exits").swarm);
  EXPECT_THROW(parse_mix("all,-nothing"), Error);
  EXPECT_THROW(parse_mix(""), Error);
}

}  // namespace
}  // namespace klap::differential::random
