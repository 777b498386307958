// Retry loops on the pending limit are told from other loops around a launch.
#include "analysis/launches/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/legality/parent_checks.h"
#include "fixture.h"

namespace klap::analysis {
namespace {

// cdp2.ptx with code behind the launch; the launch's own label is $again.
std::string loop(const std::string& tail) {
  const std::string text = replaced(fixture("cdp2"), "\tmov.u64 \t%rd7", "$again:\n\tmov.u64 \t%rd7");
  const std::string declared =
      replaced(text, ".visible .entry _Z5child",
               ".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n.visible .entry _Z5child");
  return replaced(declared, "\t} // callseq 1\n", "\t} // callseq 1\n" + tail);
}

constexpr char kQuery[] =
    "{\n.param .b32 retval0;\ncall.uni (retval0), __cudaCDP2GetLastError, ();\nld.param.b32 %r9, "
    "[retval0+0];\n}\n";

std::string place_of(const Parsed& p) { return retry_place(p.query(), p.site()); }

TEST(Retry, OnTheLastErrorOrOnTheResult) {
  const Parsed query(loop(std::string(kQuery) + "setp.eq.s32 %p2, %r9, 69;\n@%p2 bra $again;\n"));
  ASSERT_EQ("", query.site().problem);
  const Parsed result(loop("setp.ne.s32 %p2, %r12, 69;\n@!%p2 bra $again;\n"));
  EXPECT_EQ("line 133:1", place_of(query));
  EXPECT_EQ("line 128:1", place_of(result));
  const auto rejection = check_parent(*result.facts, result.site());
  ASSERT_TRUE(rejection);
  EXPECT_EQ(Reason::SiteInLoop, rejection->reason);
  EXPECT_THAT(rejection->detail, testing::HasSubstr(print_retry(place_of(result))));
}

TEST(Retry, IsNotEveryLoopOrEveryComparison) {
  for (const char* tail : {
           "setp.eq.s32 %p2, %r12, 9;\n@%p2 bra $again;\n",    // another error
           "setp.eq.s32 %p2, %r1, 69;\n@%p2 bra $again;\n",    // another value
           "setp.eq.s32 %p2, %r12, %r1;\n@%p2 bra $again;\n",  // an unknown limit
           "@%p1 bra $again;\nsetp.eq.s32 %p2, %r12, 69;\n",   // behind the loop
           "setp.eq.s32 %p2, %r12, 69;\n",                     // no loop
           "",
       }) {
    const Parsed p(loop(tail));
    ASSERT_EQ("", p.site().problem);
    EXPECT_EQ("", place_of(p)) << tail;
  }
  EXPECT_EQ("", print_retry(""));
}

TEST(ErrorQueries, AreFoundUnderEveryName) {
  for (const auto& [name, clears] :
       {std::pair("__cudaCDP2GetLastError", true), std::pair("cudaGetLastError", true),
        std::pair("__cudaCDP2PeekAtLastError", false), std::pair("cudaPeekAtLastError", false)}) {
    std::string text = loop(kQuery);
    for (int i = 0; i < 2; ++i) text = replaced(text, "__cudaCDP2GetLastError", name);
    const Parsed p(text);
    ASSERT_EQ(1u, p.facts->error_queries.size()) << name;
    EXPECT_EQ(clears, p.facts->error_queries[0].clears);
    EXPECT_EQ("%r9", p.facts->error_queries[0].result);
    EXPECT_EQ("", p.facts->error_queries[0].problem);
  }
}

}  // namespace
}  // namespace klap::analysis
