// The forms of a launch: each idiom's fixture is recognised and taken apart, and what differs from the form
// in one point is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/facts/launch_shape.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/values/values.h"
#include "fixture.h"

namespace klap::analysis {
namespace {

using testing::HasSubstr;

struct Form {
  const char* file;
  const char* name;
  size_t arguments;
  StreamKind stream;
};

class Forms : public testing::TestWithParam<Form> {};

TEST_P(Forms, AreTakenApart) {
  const Parsed p(fixture(GetParam().file));
  ASSERT_EQ(1u, p.facts->sites.size());
  const Site& site = p.site();
  EXPECT_EQ("", site.problem);
  EXPECT_EQ(GetParam().name, form_name(site));
  EXPECT_EQ("_Z5childPii", site.callee);
  EXPECT_EQ(GetParam().stream, stream_kind(site));
  EXPECT_EQ(0u, p.facts->data.constant(site.shared));
  // The stores cover the child's 12 bytes of parameters, each byte once.
  ASSERT_EQ(GetParam().arguments, site.arguments.size());
  uint32_t at = 0;
  for (const Argument& argument : site.arguments) {
    EXPECT_EQ(at, argument.offset);
    EXPECT_NE(nullptr, argument.store);
    at += argument.bytes;
  }
  EXPECT_EQ(12u, at);
}

INSTANTIATE_TEST_SUITE_P(
    All, Forms,
    testing::Values(Form{"cdp2", "cdp2", 2, StreamKind::Null},
                    Form{"cdp2-ptsz", "cdp2-ptsz", 2, StreamKind::PerThread},
                    Form{"cdp2-documented", "cdp2-documented", 2, StreamKind::Null},
                    Form{"cdp2-documented-ptsz", "cdp2-documented-ptsz", 2, StreamKind::PerThread},
                    Form{"cdp2-documented-cub", "cdp2-documented", 12, StreamKind::Null},
                    Form{"cdp2-wrapped", "cdp2, through a local wrapper", 2, StreamKind::Null},
                    Form{"cdp1", "cdp1", 2, StreamKind::Null},
                    Form{"cdp1-ptsz", "cdp1-ptsz", 2, StreamKind::PerThread},
                    Form{"cdp1-documented", "cdp1-documented", 2, StreamKind::Null},
                    Form{"cdp1-documented-ptsz", "cdp1-documented-ptsz", 2, StreamKind::PerThread},
                    Form{"cdp1-documented-clang", "cdp1-documented", 2, StreamKind::Null}),
    [](const auto& form) {
      std::string name = form.param.file;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

TEST(Forms, EveryIdiomHasAFixtureOfItsName) {
  for (const Idiom& idiom : idioms().idioms) {
    const Parsed p(fixture(idiom.name));
    EXPECT_EQ(&idiom, p.site().idiom) << idiom.name;
    if (!idiom.is_version_1()) {
      const Idiom* rewriting = idioms().by_name(idiom.rewrite_with);
      ASSERT_NE(nullptr, rewriting) << idiom.name;
      EXPECT_EQ(LaunchForm::Described, rewriting->form) << idiom.name;
    }
  }
}

// Where a loop begins behind the launch, nvcc places the launch before the loop and the rest of it.
TEST(Forms, MayHaveTheLaunchBeforeTheRestInTheText) {
  const std::string text = fixture("cdp2");
  const size_t ask = text.find("\tadd.s32 \t%r6, %r1, 31;"),
               test = text.find("\tsetp.eq.s64 \t%p2, %rd2, 0;");
  const size_t fill = text.find("\tld.global.u32 \t%r11"), end = text.find("$L__BB1_3:");
  const auto moved = [&](const std::string& entry) {
    return text.substr(0, ask) + "\tbra.uni $ask;\n$fill:\n" + text.substr(fill, end - fill) +
           "\tbra.uni $L__BB1_3;\n$ask:\n" + entry + text.substr(ask, test - ask) +
           "\tsetp.eq.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$L__BB1_3;\n\tbra.uni $fill;\n" + text.substr(end);
  };
  const Parsed p(moved(""));
  ASSERT_EQ(1u, p.facts->sites.size());
  EXPECT_EQ("", p.site().problem);
  EXPECT_EQ(2u, p.site().arguments.size());
  const SiteValues values = site_values(p.facts->values(), p.site());
  EXPECT_EQ(32u, values.block[0].value.constant());
  EXPECT_TRUE(values.grid[0].value.known());
  EXPECT_TRUE(values.arguments.at(0).operand.value.known());

  // Another way to the launch has no buffer, or another one.
  const Parsed joined(moved("\t@%p1 bra $fill;\n"));
  ASSERT_EQ(2u, joined.facts->sites.size());
  EXPECT_FALSE(joined.facts->sites[0].understood());
  EXPECT_FALSE(joined.facts->sites[1].understood());
}

// Without optimisation clang keeps the buffer's address in memory, where it is not followed.
TEST(Forms, ThatKeepTheBufferInMemoryAreNamedButNotUnderstood) {
  const Parsed p(fixture("cdp1-documented-clang-unoptimised"));
  ASSERT_EQ(1u, p.facts->sites.size()) << "one launch is one site";
  EXPECT_FALSE(p.site().understood());
  EXPECT_EQ("cdp1-documented", form_name(p.facts->sites.back()));
  EXPECT_EQ("_Z5childPii", p.facts->sites.back().callee);
  EXPECT_THAT(p.facts->sites.back().problem, HasSubstr("loaded from generic memory"));
}

TEST(DocumentedForm, IsRecognisedWholeOrNotAtAll) {
  const std::string text = fixture("cdp2-documented");
  const std::string store = "\tst.u64 \t[%rd2], %rd3;";
  const std::pair<std::string, std::pair<std::string, std::string>> cases[] = {
      {"%rd3 changes between", {store, store + "\n\tadd.s64 %rd3, %rd3, 8;"}},
      {"%rd3 changes between", {store, store + "\n\t@%p1 mov.u64 %rd3, 8;"}},
      {"a scope of its own", {store, "\t{ .reg .b64 %t; mov.u64 %t, %rd3; st.u64 [%rd2], %t; }"}},
      {"label stands between", {store, "$L__between:\n" + store}},
      {"another call stands between", {store, "\tcall.uni other;\n" + store}},
      {"is predicated", {store, "\t@%p1" + store}},
      {"control flow between", {store, "\t@%p1 bra $L__BB1_3;\n" + store}},
      {"control flow between", {store, "\t@%p1 ret;\n\tret;\n" + store}},
      {"used for something else", {store, "\tld.u64 %rd7, [%rd2];\n" + store}},
      {"passed on", {store, "\tst.u64 \t[%rd2+64], %rd2;\n" + store}},
      {"tested for null in the known way", {"setp.eq.s64 \t%p2", "setp.gt.s64 \t%p2"}},
      {"another buffer", {"st.param.b64 \t[param1+0], %rd2;", "st.param.b64 \t[param1+0], %rd3;"}},
      {"not set by a 32-bit store", {"st.param.b32 \t[param3+8], 1;", ""}},
      {"unexpected form", {"\tparam4, \n\tparam5\n", "\tparam5\n"}},
      {"different forms", {"\t__cudaCDP2LaunchDevice, ", "\t__cudaCDP2LaunchDeviceV2, "}},
  };
  for (const auto& [problem, change] : cases) {
    const Parsed p(replaced(text, change.first, change.second));
    ASSERT_FALSE(p.facts->sites.empty()) << problem;
    EXPECT_THAT(p.site().problem, HasSubstr(problem));
    EXPECT_EQ(Reason::NotUnderstood, check_parent(*p.facts, p.site())->reason);
  }
}

// What changes after a store matters only if it is what was stored.
TEST(DocumentedForm, AllowsOtherValuesToChange) {
  const std::string store = "\tst.u64 \t[%rd2], %rd3;";
  const Parsed p(replaced(fixture("cdp2-documented"), store, store + "\n\tmov.u32 %r1, 8;"));
  EXPECT_EQ("", p.site().problem);
}

TEST(DocumentedForm, AcceptsANullTestEitherWayRound) {
  const std::string text = fixture("cdp2-documented");
  const std::string test = "\tsetp.eq.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$L__BB1_3;\n";
  for (const char* other : {
           "\tsetp.ne.s64 \t%p2, %rd2, 0;\n\t@!%p2 bra \t$L__BB1_3;\n",
           "\tsetp.ne.s64 \t%p2, %rd2, 0;\n\tnot.pred \t%p2, %p2;\n\t@%p2 bra \t$L__BB1_3;\n",
           "\tsetp.ne.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$fill;\n\tbra.uni $L__BB1_3;\n$fill:\n",
           "\tsetp.eq.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$L__BB1_3;\n\tbra.uni $fill;\n$fill:\n",
           "",
       }) {
    EXPECT_EQ("", Parsed(replaced(text, test, other)).site().problem) << other;
  }
  // The same, with the sense of the test lost or another way to the fill.
  for (const char* other : {
           "\tsetp.ne.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$L__BB1_3;\n",
           "\tsetp.eq.s64 \t%p2, %rd2, 0;\n\tsetp.lt.s32 \t%p2, %r5, 1;\n\t@%p2 bra \t$L__BB1_3;\n",
           "\tsetp.ne.s64 \t%p2, %rd2, 0;\n\t@%p2 bra \t$fill;\n\t@%p1 bra $fill;\n\tret;\n$fill:\n",
       }) {
    EXPECT_NE("", Parsed(replaced(text, test, other)).site().problem) << other;
  }
}

TEST(Legality, LeavesADocumentedLaunchWithTooSmallABuffer) {
  const std::string text = fixture("cdp2-documented");
  const auto judged = [](const Parsed& p) {
    return check_child(p.module, *p.module.find_function("_Z5childPii"), *p.facts, p.site());
  };
  EXPECT_EQ(std::nullopt, judged(Parsed(text)));
  const std::string size = "st.param.b64 \t[param1+0], 16;";
  for (const char* other : {"st.param.b64 \t[param1+0], 8;", "st.param.b64 \t[param1+0], %rd1;"}) {
    const auto rejection = judged(Parsed(replaced(text, size, other)));
    ASSERT_TRUE(rejection);
    EXPECT_EQ(Reason::ArgumentMismatch, rejection->reason);
  }
}

TEST(Legality, LeavesVersion1) {
  for (const char* file : {"cdp1", "cdp1-ptsz", "cdp1-documented", "cdp1-documented-ptsz"}) {
    const Parsed p(fixture(file));
    const auto rejection = check_parent(*p.facts, p.site());
    ASSERT_TRUE(rejection) << file;
    EXPECT_EQ(Reason::OldRuntime, rejection->reason) << file;
    EXPECT_THAT(rejection->detail, HasSubstr(p.site().idiom->launch));
  }
}

TEST(Sites, SayWhereABufferComesFromThatTheyDidNotGet) {
  const std::string text = fixture("cdp2");
  const size_t from = text.find("\t{ // callseq 0, 0"), to = text.find("\t} // callseq 0\n");
  const Parsed p(std::string(text).replace(from, to - from + 16, "\tld.global.u64 %rd2, [%rd1];\n"));
  ASSERT_EQ(1u, p.facts->sites.size());
  EXPECT_THAT(p.site().problem, HasSubstr("comes from elsewhere: loaded from global memory"));
  EXPECT_EQ("cdp2", form_name(p.site()));
}

TEST(Callees, AreKnownWherePathsAgree) {
  const std::string mov = "mov.u64 \t%rd7, _Z5childPii;";
  const std::string text = fixture("cdp2");
  const Parsed same(replaced(text, mov, mov + "\n\t@%p1 mov.u64 %rd7, _Z5childPii;"));
  EXPECT_EQ("_Z5childPii", same.site().callee);
  const Parsed differ(replaced(text, mov, mov + "\n\t@%p1 mov.u64 %rd7, _Z6parentPiPKi;"));
  EXPECT_EQ("", differ.site().callee);
  EXPECT_THAT(check_parent(*differ.facts, differ.site())->detail,
              HasSubstr("selected: the address of _Z5childPii or the address of _Z6parentPiPKi"));
  const Parsed partly(replaced(text, mov, mov + "\n\t@%p1 ld.global.u64 %rd7, [%rd1];"));
  EXPECT_EQ("", partly.site().callee);
}

}  // namespace
}  // namespace klap::analysis
