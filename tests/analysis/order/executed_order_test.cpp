// Which launches the executor may run without the order of their stream, and what stands against it.
#include <gtest/gtest.h>

#include "analysis/executed/order.h"
#include "launches.h"

namespace klap::test {
namespace {

using analysis::WithoutOrder;

constexpr analysis::KnownExtents kAnyBlock = {};

using Asked = analysis::ExecutedKernel;

// "always", "in one row", "in one layer", or why the order is kept. The lines of places are left out.
std::string answer(const Launches& l, const Asked& asked = {.block = kOneRow}, size_t site = 0) {
  const Kernel parent(text_of(l), "parent");
  const auto child =
      std::make_shared<const analysis::FunctionFacts>(parent.module, *parent.module.find_function("child"));
  std::vector<analysis::LaunchedChild> children;
  for (const analysis::Site& s : parent.facts->sites) children.push_back({&s, child});
  const analysis::ExecutedOrder order = analysis::executed_orders(*parent.facts, children, asked).at(site);
  switch (order.without) {
    case WithoutOrder::Always:
      return "always";
    case WithoutOrder::InOneRow:
      return "in one row";
    case WithoutOrder::InOneLayer:
      return "in one layer";
    case WithoutOrder::Never:
      break;
  }
  return std::regex_replace(order.why_kept, std::regex(R"( \(line \d+:\d+\))"), "");
}

// A launch into the stream with that handle, a number or a register.
std::string launch_into(const std::string& stream, const std::string& name) {
  return std::regex_replace(launch(name), std::regex(R"(\[param1\+0\], 0;)"), "[param1+0], " + stream + ";");
}
Launches two(const std::string& child, const std::string& second) {
  return {child, "mov.u32 %r4, %r1;", launch("0") + second};
}

TEST(ExecutedOrder, IsLostWhereLaunchesAreApart) {
  EXPECT_EQ("always", answer({kOwnWord}));
  EXPECT_EQ("always", answer({"red.global.add.u32 [%rd1], 1;"}));
  EXPECT_EQ("always", answer({"ld.global.u32 %r4, [%rd3]; add.s32 %r4, %r4, 1; st.global.u32 [%rd3], %r4;"}));
  EXPECT_EQ("st.global.u32 may conflict between launches", answer({"st.global.u32 [%rd1], %r3;"}));
}

TEST(ExecutedOrder, AsksForTheBlockWhereThatIsAllowed) {
  EXPECT_EQ("st.global.u32 may conflict between launches", answer({kOwnWord}, {.block = kAnyBlock}));
  EXPECT_EQ("in one row", answer({kOwnWord}, {.block = kAnyBlock, .asks_block = true}));
  const std::string of_rows = "mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.y; mad.lo.u32 %r4, %r5, %r6, %r1;";
  EXPECT_EQ("in one layer", answer({kOwnWord, of_rows}, {.block = kAnyBlock, .asks_block = true}));
  EXPECT_EQ("in one layer",
            answer({kOwnWord, of_rows}, {.block = {std::nullopt, 4, std::nullopt}, .asks_block = true}));
  EXPECT_EQ("st.global.u32 may conflict between launches",
            answer({kOwnWord}, {.block = {std::nullopt, 4, std::nullopt}, .asks_block = true}));
  EXPECT_EQ("st.global.u32 may conflict between launches",
            answer({kOwnWord}, {.block = {std::nullopt, std::nullopt, 2}, .asks_block = true}));
  EXPECT_EQ("always", answer({"red.global.add.u32 [%rd1], 1;"}, {.block = kAnyBlock, .asks_block = true}));
}

TEST(ExecutedOrder, IsKeptBetweenLaunchesOfOneThread) {
  const std::string again = launch("1");
  EXPECT_EQ("st.global.u32 may conflict between launches", answer(two(kOwnWord, again)));
  EXPECT_EQ("st.global.u32 may conflict between launches",
            answer(two(kOwnWord, again), {.block = kOneRow}, 1));
  EXPECT_EQ("always", answer(two("red.global.add.u32 [%rd1], 1;", again)));
  EXPECT_EQ("red.global.add.f32 may conflict between launches",
            answer(two("red.global.add.f32 [%rd1], %f1;", again)));
  const Launches loop = {kOwnWord, "mov.u32 %r9, 0; mov.u32 %r4, %r1; AGAIN:",
                         launch() + "add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %r3; @%p2 bra AGAIN;\n"};
  EXPECT_EQ("st.global.u32 may conflict between launches", answer(loop));
  // Only one of them is reached.
  const Launches either = {kOwnWord, "mov.u32 %r4, %r1; setp.eq.u32 %p3, %r1, 7; @%p3 bra OTHER;",
                           launch("0") + "ret;\nOTHER:\n" + launch("1")};
  EXPECT_EQ("always", answer(either));
}

TEST(ExecutedOrder, OtherStreamsDoNotCount) {
  EXPECT_EQ("always", answer(two(kOwnWord, launch_into("4", "1"))));
  EXPECT_EQ("always", answer(two(kOwnWord, launch_into("3", "1"))));
  EXPECT_EQ("always", answer(two(kOwnWord, launch_into("2", "1"))));
  EXPECT_EQ("", answer(two(kOwnWord, launch_into("3", "1")), {.block = kOneRow}, 1));
}

TEST(ExecutedOrder, StreamsThatOnlyTheRunTellsCount) {
  const std::string loaded = "ld.global.u64 %rd9, [%rd2];\n" + launch_into("%rd9", "1");
  EXPECT_EQ("st.global.u32 may conflict between launches", answer(two(kOwnWord, loaded)));
  EXPECT_EQ("", answer(two(kOwnWord, loaded), {.block = kOneRow}, 1));
  EXPECT_EQ("always", answer(two("red.global.add.u32 [%rd1], 1;", loaded)));
}

TEST(ExecutedOrder, OneThreadsOwnStreamIsComparedByItself) {
  const auto of_thread = [](const std::string& child) {
    return Launches{child, "mov.u32 %r4, %r1;", launch_into("2", "0") + launch_into("2", "1")};
  };
  EXPECT_EQ("st.global.u32 may conflict between launches", answer(of_thread(kOwnWord)));
  EXPECT_EQ("always", answer(of_thread("red.global.add.u32 [%rd1], 1;")));
}

TEST(ExecutedOrder, PointersOfTheHostMayMeet) {
  EXPECT_EQ("the host may pass pointers to the same memory",
            answer({"ld.global.u32 %r4, [%rd4+4]; st.global.u32 [%rd3], %r4;"}));
}

TEST(ExecutedOrder, MessagesNeedIt) {
  for (const char* message : {"membar.gl;", "fence.acq_rel.gpu;", "membar.cta;"})
    EXPECT_EQ("child has " + std::string(message, strlen(message) - 1),
              answer({kOwnWord + std::string(message)}));
  EXPECT_EQ("child has st.release.gpu.global.u32", answer({"st.release.gpu.global.u32 [%rd3], %r3;"}));
  EXPECT_EQ("child has st.volatile.global.u32", answer({"st.volatile.global.u32 [%rd3], %r3;"}));
  EXPECT_EQ("child has ld.acquire.gpu.global.u32", answer({"ld.acquire.gpu.global.u32 %r4, [%rd4];"}));
  EXPECT_EQ("child has release.add.u32 global gpu", answer({"red.release.gpu.global.add.u32 [%rd1], 1;"}));
  EXPECT_EQ("child has acq_rel.add.u32 global gpu",
            answer({"atom.acq_rel.gpu.global.add.u32 %r4, [%rd1], 1;"}));
}

TEST(ExecutedOrder, SumsThatOthersLookAtNeedIt) {
  const Asked looks = {.block = kOneRow, .group_looks = true};
  EXPECT_EQ("child updates memory that some kernel may look at meanwhile",
            answer({"red.global.add.u32 [%rd1], 1;"}, looks));
  EXPECT_EQ("always", answer({kOwnWord}, looks));
  const auto looks_at = [](const std::string& child) {
    const Kernel kernel(text_of({child}), "child");
    return analysis::looks_at_changes(*kernel.facts);
  };
  EXPECT_FALSE(looks_at(kOwnWord));
  EXPECT_FALSE(looks_at("red.global.add.u32 [%rd1], 1;"));
  EXPECT_FALSE(looks_at("atom.global.add.u32 %r4, [%rd1], 1;"));
  EXPECT_TRUE(looks_at("atom.global.add.u32 %r4, [%rd1], 1; st.global.u32 [%rd3], %r4;"));
  EXPECT_TRUE(looks_at("ld.relaxed.gpu.global.u32 %r4, [%rd1];"));
}

TEST(ExecutedOrder, ChildrenThatLaunchKeepIt) {
  EXPECT_EQ("child launches in turn", answer({kOwnWord + launch("9")}));
}

TEST(ExecutedOrder, TheOnlyLaunchOfAStreamStaysInIt) {
  EXPECT_EQ("it is the only launch in its stream", answer({kOwnWord}, {.block = {1, 1, 1}}));
  const Launches of_first = {kOwnWord, "mov.u32 %r4, %r1; setp.ne.u32 %p3, %r1, 0; @%p3 bra BEHIND0;"};
  EXPECT_EQ("it is the only launch in its stream", answer(of_first));
}

}  // namespace
}  // namespace klap::test
