// The analyses: control flow, values, and the launch-site recogniser on the idioms' fixtures and on broken
// variants of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/facts/facts.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/facts/rejection.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "support/file.h"

namespace klap::analysis {
namespace {

std::string fixture(const std::string& idiom) {
  return read_file(std::string(KLAP_IDIOM_DIR) + "/" + idiom + ".ptx");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("fixture does not hold: " + from);
  return text.replace(at, from.size(), to);
}

// A parsed module with the facts of its kernel named like "...parent...".
struct Parsed {
  explicit Parsed(const std::string& text) : module(ptx::parse(text, "fixture")) {
    for (const ptx::Function& f : module.functions) {
      if (f.is_definition && f.name.find("parent") != std::string::npos) facts.emplace(module, f);
    }
  }
  ptx::Module module;
  std::optional<FunctionFacts> facts;
};

TEST(ControlFlow, KnowsLoopsScopesAndTargetLists) {
  const std::string text = R"(.version 9.0
.target sm_90
.visible .entry k() {
  .reg .pred %p<2>; .reg .b32 %r<4>;
  mov.u32 %r1, 0;
L: add.s32 %r1, %r1, 1;
  { @%p1 bra L; L: mov.u32 %r2, 1; }
  @%p1 bra DONE;
  ts: .branchtargets A, B;
  brx.idx %r1, ts;
A: mov.u32 %r3, 1;
  bra L;
B: mov.u32 %r3, 2;
DONE: ret;
})";
  const ptx::Module m = ptx::parse(text, "t");
  const ControlFlow flow(m, m.functions[0]);
  // 0 mov, 1 add, 2 bra (inner L), 3 mov, 4 bra DONE, 5 brx, 6 mov (A), 7 bra L (outer), 8 mov (B), 9 ret
  ASSERT_EQ(10u, flow.instructions().size());
  EXPECT_FALSE(flow.in_loop(0));
  EXPECT_TRUE(flow.in_loop(1));
  EXPECT_TRUE(flow.in_loop(6));
  EXPECT_FALSE(flow.in_loop(8));
  EXPECT_TRUE(flow.can_follow(5, 8));
  EXPECT_FALSE(flow.can_follow(8, 6));
  EXPECT_FALSE(flow.has_unknown_branch());
}

TEST(ControlFlow, NamesAnUnknownLabel) {
  const ptx::Module m = ptx::parse(".version 9.0\n.target sm_90\n.entry k() {\n bra NOWHERE;\n}", "t.ptx");
  try {
    ControlFlow(m, m.functions[0]);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(4, error.line());
    EXPECT_THAT(error.what(), testing::HasSubstr("NOWHERE"));
  }
}

TEST(DataFlow, FollowsSingleDefinitions) {
  const ptx::Module m = ptx::parse(R"(.version 9.0
.target sm_90
.global .u32 g;
.entry k() {
  .reg .b32 %r<9>, tmp; .reg .b64 %rd<3>;
  mov.u32 %r1, 7;
  mov.u32 %r2, %r1;
  mov.u32 %r3, -1;
  mov.u32 %r4, 1;
  @%p1 mov.u32 %r4, 2;
  mov.u32 %r5, %tid.x;
  mov.u64 %rd1, g;
  add.u32 tmp, %r1, %r2;
  st.global.v2.u32 [%rd1+4], {%r1, tmp};
  ret;
})",
                                   "t");
  const ControlFlow flow(m, m.functions[0]);
  const DataFlow data(m, m.functions[0], flow);
  EXPECT_EQ(7u, data.constant("%r2"));
  EXPECT_EQ(~uint64_t{0}, data.constant("%r3"));
  EXPECT_EQ(std::nullopt, data.constant("%r4"));
  EXPECT_EQ(std::nullopt, data.constant("%r5"));
  EXPECT_EQ("g", data.symbol("%rd1"));
  EXPECT_EQ(std::nullopt, data.symbol("%r1"));
  EXPECT_TRUE(data.names().is_register("tmp"));
  EXPECT_FALSE(data.names().is_register("%r9"));
  EXPECT_THAT(data.uses("tmp"), testing::SizeIs(1));
  EXPECT_THAT(data.definitions("%r4"), testing::SizeIs(2));
}

// Found by the fuzzer: `sub.u32 %r1, {}, 1` had an operand without a first component.
TEST(DataFlow, AnEmptyVectorHasOneEmptyComponent) {
  const ptx::Module m = ptx::parse(".version 9.0 .entry k() { sub.u32 %r1, {}, 1; }", "m");
  const ptx::Statement& sub = m.functions.at(0).body.body[0];
  EXPECT_EQ(std::vector<std::string>{""}, components(m, sub.operands[1]));
  EXPECT_EQ(std::vector<std::string>{"1"}, components(m, sub.operands[2]));
}

// Offsets add up over several terms; one that no address can have makes the address unknown, not another one.
TEST(DataFlow, RefusesOffsetsThatOverflow) {
  const auto offset = [](const std::string& operand) {
    const ptx::Module m = ptx::parse(".version 9.0 .entry k() { ld.u32 %r1, [" + operand + "]; }", "m");
    const auto address = parse_address(m, m.functions.at(0).body.body[0].operands[1]);
    return address ? std::optional(address->offset) : std::nullopt;
  };
  EXPECT_EQ(-12, offset("%rd1+4+-16"));
  EXPECT_EQ(INT64_MAX, offset("%rd1+9223372036854775807"));
  EXPECT_EQ(std::nullopt, offset("%rd1+9223372036854775807+1"));
  EXPECT_EQ(std::nullopt, offset("%rd1+-9223372036854775807+-2"));
  EXPECT_EQ(std::nullopt, offset("%rd1+18446744073709551615"));
}

TEST(Sites, AreRecognisedInEveryFixture) {
  ASSERT_FALSE(idioms().idioms.empty());
  for (const Idiom& idiom : idioms().idioms) {
    const Parsed p(fixture(idiom.name));
    ASSERT_EQ(1u, p.facts->sites.size()) << idiom.name;
    const Site& site = p.facts->sites[0];
    EXPECT_EQ("", site.problem);
    ASSERT_NE(nullptr, site.idiom);
    EXPECT_EQ(idiom.name, site.idiom->name);
    EXPECT_EQ("_Z5childPii", site.callee);
    EXPECT_EQ("32", site.block[0]);
    EXPECT_EQ("1", site.grid[1]);
    EXPECT_EQ("0", site.shared);
    ASSERT_EQ(2u, site.arguments.size());
    EXPECT_EQ(0u, site.arguments[0].offset);
    EXPECT_EQ(8u, site.arguments[0].bytes);
    EXPECT_EQ(8u, site.arguments[1].offset);
    EXPECT_EQ(4u, site.arguments[1].bytes);
    EXPECT_EQ(idiom.stream_zero_is_per_thread ? StreamKind::PerThread : StreamKind::Null, stream_kind(site));
  }
}

TEST(Sites, TakeVectorStoresAndStoresInAnyOrder) {
  const std::string text = fixture("cdp2");
  const size_t first = text.find("\tst.u64 \t[%rd2]");
  ASSERT_NE(std::string::npos, first);
  const std::string store = text.substr(first, text.find('\n', first) - first);
  const Parsed p(replaced(text, store, "\tst.v2.u32 [%rd2+16], {%r1, %r1};\n" + store));
  ASSERT_EQ("", p.facts->sites[0].problem);
  ASSERT_EQ(4u, p.facts->sites[0].arguments.size());
  EXPECT_EQ(16u, p.facts->sites[0].arguments[2].offset);
  EXPECT_EQ(20u, p.facts->sites[0].arguments[3].offset);
  EXPECT_EQ("%r1", p.facts->sites[0].arguments[3].source);
}

TEST(Sites, AreRecognisedWholeOrNotAtAll) {
  const std::string text = fixture("cdp2");
  const std::pair<std::string, std::pair<std::string, std::string>> cases[] = {
      {"tested for null in the known way", {"setp.eq.s64", "setp.ne.s64"}},
      {"another call stands between", {"\tst.u64 \t[%rd2]", "\tcall.uni other;\n\tst.u64 \t[%rd2]"}},
      {"label stands between", {"\tst.u64 \t[%rd2]", "$L__between:\n\tst.u64 \t[%rd2]"}},
      {"is predicated", {"\tst.u64 \t[%rd2]", "\t@%p1 st.u64 \t[%rd2]"}},
      {"used for something else", {"\tst.u64 \t[%rd2]", "\tadd.s64 %rd9, %rd2, 8;\n\tst.u64 \t[%rd2]"}},
      {"passed on", {"\tst.u64 \t[%rd2]", "\tst.u64 \t[%rd2+64], %rd2;\n\tst.u64 \t[%rd2]"}},
      {"of unknown width", {"\tst.u64 \t[%rd2]", "\tst.u64 \t[%rd2+-8], %rd9;\n\tst.u64 \t[%rd2]"}},
      {"an unknown form", {"\tst.u64 \t[%rd2]", "\tst.volatile.u64 \t[%rd2]"}},
      {"holds another instruction",
       {"\tst.param.b64 \t[param0+0], %rd2;", "\tadd.s32 %r1, %r1, 1;\n\tst.param.b64 \t[param0+0], %rd2;"}},
      {"not set by a 32-bit store", {"\tst.param.b32 \t[param2+8], 1;", ""}},
      {"uses another buffer", {"\tst.param.b64 \t[param0+0], %rd2;", "\tst.param.b64 \t[param0+0], %rd9;"}},
  };
  for (const auto& [problem, change] : cases) {
    const Parsed p(replaced(text, change.first, change.second));
    ASSERT_FALSE(p.facts->sites.empty()) << problem;
    EXPECT_THAT(p.facts->sites[0].problem, testing::HasSubstr(problem));
    const auto rejection = check_parent(*p.facts, p.facts->sites[0]);
    ASSERT_TRUE(rejection);
    EXPECT_EQ(Reason::NotUnderstood, rejection->reason);
  }
}

TEST(Legality, LeavesACalleeThatIsNotASymbol) {
  const std::string text = fixture("cdp2");
  const Parsed p(replaced(text, "mov.u64 \t%rd7, _Z5childPii;", "add.s64 %rd7, %rd3, 8;"));
  EXPECT_EQ(Reason::CalleeUnknown, check_parent(*p.facts, p.facts->sites[0])->reason);
}

TEST(Legality, LeavesClusters) {
  const std::string text = fixture("cdp2");
  const size_t parent = text.find(".visible .entry _Z6parent");
  ASSERT_NE(std::string::npos, parent);
  const size_t brace = text.find("\n{", parent);
  const Parsed p(std::string(text).insert(brace, "\n.explicitcluster\n"));
  EXPECT_EQ(Reason::ParentCluster, check_parent(*p.facts, p.facts->sites[0])->reason);
  const size_t child_brace = text.find("\n{", text.find(".visible .entry _Z5child"));
  const Parsed c(std::string(text).insert(child_brace, "\n.reqnctapercluster 2, 1, 1\n"));
  const auto rejection =
      check_child(c.module, *c.module.find_function("_Z5childPii"), *c.facts, c.facts->sites[0]);
  ASSERT_TRUE(rejection);
  EXPECT_EQ(Reason::ChildCluster, rejection->reason);
}

TEST(Legality, ChecksArgumentsAgainstTheChildsParameters) {
  const Parsed p(
      replaced(fixture("cdp2"), "\tst.u64 \t[%rd2]", "\tst.u64 \t[%rd2+16], %rd9;\n\tst.u64 \t[%rd2]"));
  ASSERT_EQ("", p.facts->sites[0].problem);
  const auto rejection =
      check_child(p.module, *p.module.find_function("_Z5childPii"), *p.facts, p.facts->sites[0]);
  ASSERT_TRUE(rejection);
  EXPECT_EQ(Reason::ArgumentMismatch, rejection->reason);
}

TEST(Reasons, HaveUniqueNamesAndMeanings) {
  std::set<std::string> names;
  int count = 0;
#define KLAP_REASON(name, text, meaning_text)                \
  EXPECT_TRUE(names.insert(to_string(Reason::name)).second); \
  EXPECT_STREQ(meaning_text, meaning(Reason::name));         \
  ++count;
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  EXPECT_EQ(static_cast<size_t>(count), names.size());
}

}  // namespace
}  // namespace klap::analysis
