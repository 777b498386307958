// Whether a block may begin several links before the rest of the first, and what it keeps of each.
#include "analysis/batching.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.h"

namespace klap::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// "keeps %r5, again: ld.param..., ...", or the objection.
std::string batching(const Changes& changes) {
  const Kernel kernel = chain_kernel(changes);
  const analysis::ChainVerdict chain = analysis::judge_promotion(*kernel.facts, false);
  if (!chain.facts || chain.facts->boundary == nullptr) return "no chain that overlaps";
  const analysis::BatchingVerdict verdict = analysis::judge_batching(*kernel.facts, *chain.facts);
  if (!verdict.batching) return verdict.objection;
  std::string text = "keeps";
  for (const analysis::VirtualRegister& reg : verdict.batching->kept) text += fmt::format(" {}", reg.name);
  text += "; again";
  for (const ptx::Statement* s : verdict.batching->again)
    text += fmt::format(" {}", kernel.facts->module.compact(s->tokens));
  return text;
}

constexpr const char* kRest = "st.global.u32 [%rd7], %r9;";
Changes rest(const std::string& code) { return {{kRest, code + kRest}}; }

TEST(Batching, KeepsWhatCannotBeComputedAgain) {
  EXPECT_THAT(batching({}), AllOf(StartsWith("keeps %r5; again "), HasSubstr("ld.param.u64 %rd2, [q];"),
                                  HasSubstr("add.s64 %rd7, %rd4, %rd5;"), Not(HasSubstr("ld.global")),
                                  Not(HasSubstr("[sum]"))));
}

TEST(Batching, KeepsPredicatesOfWhatIsGone) {
  // Of a loaded value that nothing else needs behind the boundary.
  EXPECT_THAT(
      batching({{"bar.sync 0;", "ld.global.u32 %r20, [%rd6+4]; setp.gt.u32 %p9, %r20, 3; bar.sync 0;"},
                {kRest, "@%p9 st.global.u32 [%rd7], %r9;"}}),
      StartsWith("keeps %r5 %p9; again "));
  // Of one that is kept anyway.
  EXPECT_THAT(batching({{"bar.sync 0;", "setp.gt.u32 %p9, %r5, 3; bar.sync 0;"},
                        {kRest, "@%p9 st.global.u32 [%rd7], %r9;"}}),
              AllOf(StartsWith("keeps %r5; again "), HasSubstr("setp.gt.u32 %p9, %r5, 3;")));
}

TEST(Batching, WhatItWasComputedFromIsAnotherValueNow) {
  const Changes once = {{"bar.sync 0;", "ld.global.u32 %r20, [%rd6+4]; add.s32 %r21, %r20, %r4; bar.sync 0;"},
                        {kRest, "st.global.u32 [%rd7], %r21; st.global.u32 [%rd7+4], %r20;"}};
  EXPECT_THAT(batching(once), AllOf(HasSubstr("%r20"), HasSubstr("add.s32 %r21, %r20, %r4;")));
  const Changes twice = {
      {"bar.sync 0;",
       "ld.global.u32 %r20, [%rd6+4]; add.s32 %r21, %r20, %r4; ld.global.u32 %r20, [%rd6+8]; bar.sync 0;"},
      {kRest, "st.global.u32 [%rd7], %r21; st.global.u32 [%rd7+4], %r20;"}};
  EXPECT_THAT(batching(twice), AllOf(HasSubstr("%r21"), Not(HasSubstr("add.s32 %r21"))));
}

TEST(Batching, TheRestReadsNoSharedMemory) {
  constexpr const char* kObjection = "the rest of a link may read shared memory: ";
  EXPECT_THAT(batching(rest("ld.shared.u32 %r9, [room]; ")),
              StartsWith(std::string(kObjection) + "ld (line "));
  EXPECT_THAT(batching(rest("ld.u32 %r9, [%rd7]; ")), StartsWith(std::string(kObjection) + "ld (line "));
  EXPECT_THAT(batching(rest("atom.add.u32 %r9, [%rd7], 1; ")),
              StartsWith(std::string(kObjection) + "atom (line "));
  EXPECT_THAT(batching(rest("prefetch.L1 [%rd7]; ")),
              StartsWith(std::string(kObjection) + "prefetch (line "));
  EXPECT_THAT(batching(rest("atom.global.add.u32 %r9, [%rd7], 1; ")), StartsWith("keeps"));
  EXPECT_THAT(batching(rest("st.shared.u32 [room], %r5; bar.sync 0; ")), StartsWith("keeps"));
}

TEST(Batching, NothingButRegistersIsALinksOwn) {
  EXPECT_THAT(batching({{".shared .align 4 .b8 room[256];", ".local .align 4 .b8 depot[16];"},
                        {"bar.sync 0;", "st.local.u32 [depot], %r5; bar.sync 0;"}}),
              StartsWith("it has local memory: st (line "));
  EXPECT_THAT(batching({{".visible .entry k", ".func f() { ret; }\n.visible .entry k"},
                        {"bar.sync 0;", "call f; bar.sync 0;"}}),
              StartsWith("it calls functions: call (line "));
}

TEST(Batching, FewRegisters) {
  std::string loads, stores;
  for (int i = 0; i < 8; ++i) {
    loads += fmt::format("ld.global.u32 %r{}, [%rd6+{}]; ", 20 + i, 4 * i + 4);
    stores += fmt::format("st.global.u32 [%rd7+{}], %r{}; ", 4 * i + 4, 20 + i);
  }
  EXPECT_EQ(batching({{"bar.sync 0;", loads + "bar.sync 0;"}, {kRest, stores + kRest}}),
            "9 registers would have to be kept for each link");
}

}  // namespace
}  // namespace klap::test
