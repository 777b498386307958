// Whether a block may begin several links side by side, what each keeps, and where all meet.
#include "analysis/promotion/batching.h"

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

// "2 words; again ld.param..., ...; meets at bar.sync 0; shares hall", or the rejection.
std::string batching(const Changes& changes) {
  const Kernel kernel = chain_kernel(changes);
  const analysis::ChainVerdict chain = analysis::judge_promotion(*kernel.facts, false);
  if (!chain.facts || chain.facts->boundary == nullptr) return "no chain that overlaps";
  const analysis::BatchingVerdict verdict = analysis::judge_batching(*kernel.facts, *chain.facts);
  if (!verdict.batching) return verdict.rejection;
  const ptx::Module& m = kernel.facts->module;
  std::string text = fmt::format("{} words; again", verdict.batching->words);
  for (const ptx::Statement* s : verdict.batching->again) text += " " + m.compact(s->tokens);
  text += "; meets at";
  for (const ptx::Statement* s : verdict.batching->barriers) text += " " + m.compact(s->tokens);
  text += "; shares";
  for (const ptx::Variable* v : verdict.batching->shared) text += " " + v->name;
  return text;
}

constexpr const char* kRest = "st.global.u32 [%rd7], %r9;";

TEST(Batching, KeepsWhatCannotBeComputedAgain) {
  EXPECT_THAT(batching({}), AllOf(StartsWith("1 words; again "), HasSubstr("ld.param.u64 %rd2, [q];"),
                                  HasSubstr("add.s64 %rd7, %rd4, %rd5;"), Not(HasSubstr("ld.global")),
                                  Not(HasSubstr("[sum]"))));
}

TEST(Batching, KeepsPredicatesOfWhatIsGone) {
  // Of a loaded value that nothing else needs behind the boundary.
  EXPECT_THAT(
      batching({{"bar.sync 0;", "ld.global.u32 %r20, [%rd6+4]; setp.gt.u32 %p9, %r20, 3; bar.sync 0;"},
                {kRest, "@%p9 st.global.u32 [%rd7], %r9;"}}),
      StartsWith("2 words; again "));
  // Of one that is kept anyway.
  EXPECT_THAT(batching({{"bar.sync 0;", "setp.gt.u32 %p9, %r5, 3; bar.sync 0;"},
                        {kRest, "@%p9 st.global.u32 [%rd7], %r9;"}}),
              AllOf(StartsWith("1 words; again "), HasSubstr("setp.gt.u32 %p9, %r5, 3;")));
}

TEST(Batching, WhatItWasComputedFromIsAnotherValueNow) {
  const Changes once = {{"bar.sync 0;", "ld.global.u32 %r20, [%rd6+4]; add.s32 %r21, %r20, %r4; bar.sync 0;"},
                        {kRest, "st.global.u32 [%rd7], %r21; st.global.u32 [%rd7+4], %r20;"}};
  EXPECT_THAT(batching(once), AllOf(StartsWith("2 words"), HasSubstr("add.s32 %r21, %r20, %r4;")));
  const Changes twice = {
      {"bar.sync 0;",
       "ld.global.u32 %r20, [%rd6+4]; add.s32 %r21, %r20, %r4; ld.global.u32 %r20, [%rd6+8]; bar.sync 0;"},
      {kRest, "st.global.u32 [%rd7], %r21; st.global.u32 [%rd7+4], %r20;"}};
  EXPECT_THAT(batching(twice), AllOf(StartsWith("3 words"), Not(HasSubstr("add.s32 %r21"))));
}

TEST(Batching, LinksMeetWhereAllThreadsPassOneAfterTheOther) {
  EXPECT_THAT(batching({}), HasSubstr("; meets at bar.sync 0;; shares"));
  EXPECT_THAT(batching({{"bar.sync 0;", "bar.sync 0; st.shared.u32 [room], %r5; barrier.cta.sync 1;"}}),
              HasSubstr("; meets at bar.sync 0; barrier.cta.sync 1;; shares"));
  // Jumped over; in a loop; with a result.
  EXPECT_THAT(batching({{"bar.sync 0;", "setp.eq.u32 %p9, %r1, 7; @%p9 bra OVER; bar.sync 0; OVER:"}}),
              HasSubstr("; meets at; shares"));
  EXPECT_THAT(batching({{"bar.sync 0;",
                         "mov.u32 %r30, 0; AGAIN: bar.sync 0; add.s32 %r30, %r30, 1; setp.lt.u32 %p9, %r30, "
                         "7; @%p9 bra AGAIN; bar.sync 2;"}}),
              HasSubstr("; meets at bar.sync 2;; shares"));
  EXPECT_THAT(batching({{"bar.sync 0;", "setp.eq.u32 %p9, %r1, 7; bar.red.popc.u32 %r8, 0, %p9;"}}),
              HasSubstr("; meets at; shares"));
}

TEST(Batching, TheBeginningsTextIsInOnePiece) {
  EXPECT_THAT(
      batching({{"ld.param.u64 %rd1, [p];",
                 "bra.uni BEGIN; REST: st.global.u32 [%rd7+64], %r5; bra.uni OUT; BEGIN: ld.param.u64 "
                 "%rd1, [p];"},
                {kRest, "bra.uni REST; OUT: st.global.u32 [%rd7], %r9;"}}),
      StartsWith("the text of its beginning is not in one piece: bra (line "));
}

TEST(Batching, SharedVariablesAreEachLinksOwn) {
  const auto with = [](const std::string& declaration) {
    return batching({{".global .u32 table[64];", ".global .u32 table[64]; " + declaration},
                     {"bar.sync 0;", "st.shared.u32 [hall], %r5; bar.sync 0;"},
                     {kRest, "ld.shared.u32 %r9, [hall]; st.global.u32 [%rd7], %r9;"}});
  };
  EXPECT_THAT(with(".shared .align 4 .b8 hall[64];"), HasSubstr("; shares hall"));
  EXPECT_EQ(with(".extern .shared .align 4 .b8 hall[];"), "it has dynamic shared memory: hall");
  EXPECT_EQ(with(".shared .b32 nook, hall;"), "variable hall is declared together with others");
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
            "9 registers would have to stay for each link");
}

}  // namespace
}  // namespace klap::test
