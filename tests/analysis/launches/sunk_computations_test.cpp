// Computations in the scope of a launch's call may stand in front of it only where nothing tells the
// difference.
#include "analysis/inline/sunk_computations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fixture.h"
#include "ptx/tree.h"
#include "transform/text/lifted_computations.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kStore[] = "\tst.param.b64 \t[param0+0], %rd2;";

// The text of each instruction that may be moved, with `changed` in place of a launch's first store.
std::vector<std::string> found_with(const std::string& changed) {
  const Parsed p(replaced(fixture("cdp2"), kStore, changed));
  std::vector<std::string> out;
  for (const SunkComputation& s : find_sunk_computations(p.module, p.facts->function))
    out.emplace_back(p.module.text(s.instruction->tokens));
  return out;
}

TEST(SunkComputation, StandsBetweenStores) {
  EXPECT_THAT(found_with(kStore), IsEmpty());
  EXPECT_THAT(found_with(std::string("\tadd.s32 %r1, %r1, 1;\n") + kStore),
              ElementsAre("add.s32 %r1, %r1, 1;"));
  EXPECT_THAT(found_with(std::string(kStore) + "\n\tadd.s32 %r1, %r1, 1;\n\tmov.u32 %r2, %r1;\n"),
              ElementsAre("add.s32 %r1, %r1, 1;", "mov.u32 %r2, %r1;"));
}

TEST(SunkComputation, StaysWhereTheScopeCouldTell) {
  // The store reads the register's value from before.
  EXPECT_THAT(found_with(std::string(kStore) + "\n\tadd.s64 %rd2, %rd2, 8;"), IsEmpty());
  // The scope's own names.
  EXPECT_THAT(found_with(std::string("\tmov.b64 %rd3, param0;\n") + kStore), IsEmpty());
  EXPECT_THAT(found_with(std::string("\t.reg .b32 own;\n\tadd.s32 own, %r1, 1;\n") + kStore), IsEmpty());
  // A flag that is no register, and something that has other effects.
  EXPECT_THAT(found_with(std::string("\tadd.cc.s32 %r1, %r1, 1;\n") + kStore), IsEmpty());
  EXPECT_THAT(found_with(std::string("\t@%p1 add.s32 %r1, %r1, 1;\n") + kStore), IsEmpty());
  EXPECT_THAT(found_with(std::string("\tld.global.u32 %r1, [%rd3];\n\tadd.s32 %r1, %r1, 1;\n") + kStore),
              IsEmpty());
  // Behind a label, to which control may come from elsewhere.
  EXPECT_THAT(found_with(std::string(kStore) + "\n$L__inside:\n\tadd.s32 %r1, %r1, 1;"), IsEmpty());
}

TEST(SunkComputation, IsUnderstoodInFrontOfTheScope) {
  const Parsed p(replaced(fixture("cdp2"), kStore, std::string("\tadd.s32 %r1, %r1, 1;\n") + kStore));
  EXPECT_THAT(p.site().problem, HasSubstr("holds another instruction"));
  const ptx::Module lifted =
      transform::with_lifted_computations(p.module, find_sunk_computations(p.module, p.facts->function));
  const ptx::Function* const parent = lifted.find_function(p.facts->function.name);
  ASSERT_NE(nullptr, parent);
  const FunctionFacts facts(lifted, *parent);
  ASSERT_EQ(1u, facts.sites.size());
  EXPECT_EQ("", facts.sites[0].problem);
  // Messages name the program's own lines.
  EXPECT_EQ(p.module.place(p.site().get_call->head), lifted.place(facts.sites[0].get_call->head));
}

}  // namespace
}  // namespace klap::analysis
