// Ownership of created streams, on what nvcc makes and on changes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/stream_ownership.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using testing::HasSubstr;

Finding of_site(const std::string& text, const std::string& kernel, size_t site = 0) {
  const Kernel k(text, kernel);
  return owns_stream(*k.facts, k.facts->sites.at(site).stream);
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("fixture does not hold: " + from);
  return text.replace(at, from.size(), to);
}
// The fixture's first kernel, changed.
Finding changed(const std::string& from, const std::string& to) {
  return of_site(replaced(fixture("streams.ptx"), from, to), "_Z3onePi");
}

TEST(StreamOwnership, OfOneLocalStream) {
  EXPECT_EQ("yes: created by its thread, kept in local memory",
            to_text(of_site(fixture("streams.ptx"), "_Z3onePi")));
}

TEST(StreamOwnership, OfAnArrayOfStreams) {
  const Kernel k(fixture("streams.ptx"), "_Z4manyPii");
  ASSERT_EQ(5u, k.facts->sites.size());
  for (const Site& site : k.facts->sites)
    EXPECT_EQ(Answer::Yes, owns_stream(*k.facts, site.stream).answer) << ptx::place(site.position);
}

TEST(StreamOwnership, IsLostThroughSharedAndGlobalMemory) {
  const Finding shared = of_site(fixture("streams.ptx"), "_Z9sharedonePi");
  EXPECT_EQ(Answer::No, shared.answer);
  EXPECT_THAT(shared.detail, HasSubstr("ld.shared.u64"));
  const Finding global = of_site(fixture("streams.ptx"), "_Z6globalPi");
  EXPECT_EQ(Answer::No, global.answer);
  EXPECT_THAT(global.detail, HasSubstr("st.global.u64"));
}

TEST(StreamOwnership, OfWhatMayBeAConstantIsUnknown) {
  const Finding finding = of_site(fixture("streams.ptx"), "_Z4condPii");
  EXPECT_EQ(Answer::Unknown, finding.answer);
  EXPECT_THAT(finding.detail, HasSubstr("may be the constant 0"));
}

TEST(StreamOwnership, IsLostByGivingTheHandleAway) {
  const std::string load = "ld.local.u64 \t%rd2, [%rd1];";
  EXPECT_EQ(Answer::No, changed(load, load + " atom.global.exch.b64 %rd9, [%rd4], %rd2;").answer);
  EXPECT_EQ(Answer::No, changed(load, load + " st.global.u64 [%rd4], %rd2;").answer);
  EXPECT_EQ(Answer::No, changed(load, load + " mov.u64 %rd9, %rd2; st.global.u64 [%rd4], %rd9;").answer);
  EXPECT_EQ(Answer::No,
            changed("st.u64 \t[%rd3], %rd8;", "st.u64 \t[%rd3], %rd8; st.u64 [%rd3+8], %rd2;").answer)
      << "an argument of the child";
  // Read again from local memory and then given away.
  EXPECT_EQ(Answer::No,
            changed(load, load + " ld.local.u64 %rd9, [%rd1]; st.global.u64 [%rd4], %rd9;").answer);
}

TEST(StreamOwnership, IsUnknownWhereTheValueOrItsMemoryIsLostFromSight) {
  const std::string load = "ld.local.u64 \t%rd2, [%rd1];";
  const std::pair<std::string, std::string> cases[] = {
      {"computed by add.s64", "ld.local.u64 %rd9, [%rd1]; add.s64 %rd2, %rd9, 0;"},
      {"is used by xor.b64", load + " xor.b64 %rd9, %rd2, 1;"},
      {"taken apart", load + " mov.b64 {%r2, %r3}, %rd2;"},
      {"stored by st.u64", load + " st.u64 [%rd4], %rd2;"},
      {"its address goes through st.global.u64", load + " st.global.u64 [%rd4], %rd5;"},
      {"its address goes through mul.lo.s64", load + " mul.lo.s64 %rd9, %rd5, 2;"},
      {"computed by atom.global.add.u64", "atom.global.add.u64 %rd2, [%rd4], 0;"},
      {"read by ld.u64", "ld.u64 %rd2, [%rd4];"},
      {"no stream is created where it is read", "ld.local.u64 %rd2, [%rd1+-8];"},
      {"may be the constant 2", load + " mov.u64 %rd2, 2;"},
      {"accessed by ld.local.v2.u64", load + " ld.local.v2.u64 {%rd8, %rd9}, [%rd1+-8];"},
      {"computed by ld.global",
       "st.local.u64 [%rd1], %rd9; ld.local.u64 %rd2, [%rd1]; ld.global.u64 %rd9, [%rd4];"},
  };
  for (const auto& [detail, code] : cases) {
    const Finding finding = changed(load, code);
    if (detail == "computed by ld.global") {
      EXPECT_EQ(Answer::No, finding.answer) << "another stream is put into the same variable";
      continue;
    }
    EXPECT_EQ(Answer::Unknown, finding.answer) << code;
    EXPECT_THAT(finding.detail, HasSubstr(detail));
  }
  EXPECT_EQ(Answer::Unknown, changed("\t__cudaCDP2StreamDestroy, ", "\tunknown_function, ").answer);
  EXPECT_EQ(Answer::Unknown, changed("\t__cudaCDP2StreamCreateWithFlags, ", "\tunknown_function, ").answer);
}

TEST(StreamOwnership, OfParametersIsNo) {
  EXPECT_EQ(Answer::No,
            changed("ld.local.u64 \t%rd2, [%rd1];", "ld.param.u64 %rd2, [_Z3onePi_param_0];").answer);
}

TEST(StreamOwnership, IsPrinted) {
  EXPECT_THAT(print_stream_ownership(*Kernel(fixture("streams.ptx"), "_Z9sharedonePi").facts),
              HasSubstr("stream %rd1 of the launch at line"));
}

}  // namespace
}  // namespace klap::test
