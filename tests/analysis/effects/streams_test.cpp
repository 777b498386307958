// Ownership of created streams, on what nvcc makes and on changes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/facts/launch_shape.h"
#include "analysis/facts/stream_order.h"
#include "analysis/facts/stream_ownership.h"
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

// ---- kernels that create streams, put together ----

// The stream in the variable at `place` of the thread's local memory.
std::string create(int place) {
  return "{ .param .b64 a; .param .b32 f; .param .b32 e; st.param.b64 [a], %rd" + std::to_string(10 + place) +
         "; st.param.b32 [f], 1;\n"
         "call (e), __cudaCDP2StreamCreateWithFlags, (a, f); ld.param.b32 %r30, [e]; }\n";
}
std::string load(const std::string& reg, int place) {
  return "ld.local.u64 " + reg + ", [%rd2+" + std::to_string(place) + "];\n";
}
// Every launch has a register of its own for its buffer, as nvcc gives it one.
std::string launch(const std::string& stream) {
  static int launches = 0;
  const std::string buffer = "%rd" + std::to_string(21 + ++launches % 16);
  return "mov.u64 %rd20, k;\n"
         "{ .param .b64 k; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s;\n"
         ".param .b64 r; st.param.b64 [k], %rd20;\n"
         "st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"
         "st.param.b32 [b], 1; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; st.param.b32 [s], 0;\n"
         "call (r), __cudaCDP2GetParameterBufferV2, (k, g, b, s); ld.param.b64 " +
         buffer + ", [r]; }\nsetp.eq.s64 %p10, " + buffer + ", 0;\n@%p10 bra E;\n" +
         "{ .param .b64 p; .param .b64 t; .param .b32 e; st.param.b64 [p], " + buffer +
         "; st.param.b64 [t], " + stream +
         ";\ncall (e), __cudaCDP2LaunchDeviceV2, (p, t); ld.param.b32 %r21, [e]; }\n";
}
Kernel streams_kernel(const std::string& body) {
  return kernel(
      ".local .align 8 .b8 depot[32];\nmov.u64 %rd2, depot;\ncvta.local.u64 %rd1, %rd2;\n"
      "add.u64 %rd10, %rd1, 0;\nadd.u64 %rd18, %rd1, 8;\n"
      "ld.param.u32 %r1, [n];\nsetp.eq.s32 %p1, %r1, 0;\n" +
      body + "E: ret;\n");
}
std::string problem_of(const std::string& body) {
  return streams_kernel(body).facts->private_streams.problem;
}
// For each site.
std::vector<bool> orders_of(const Kernel& k) {
  std::vector<bool> out;
  for (const Site& site : k.facts->sites) {
    EXPECT_EQ(StreamKind::Private, stream_kind(site)) << site.problem << k.facts->private_streams.problem;
    out.push_back(has_order_within_thread(*k.facts, site));
  }
  return out;
}
std::vector<bool> orders(const std::string& body) { return orders_of(streams_kernel(body)); }

TEST(PrivateStreams, MayHoldNullBeforeTheyAreCreated) {
  const std::string null = "st.local.u64 [%rd2], 0;\n";
  EXPECT_EQ("", problem_of(null + create(0) + load("%rd3", 0) + launch("%rd3")));
  EXPECT_EQ("",
            problem_of("st.local.v2.u64 [%rd2], {0, 0};\n" + create(0) + load("%rd3", 0) + launch("%rd3")));
  const std::string may = "may be the constant 0";
  EXPECT_THAT(problem_of(create(0) + null + load("%rd3", 0) + launch("%rd3")), HasSubstr(may));
  EXPECT_THAT(problem_of(null + "@%p1 bra L;\n" + create(0) + "L:\n" + load("%rd3", 0) + launch("%rd3")),
              HasSubstr(may));
  EXPECT_THAT(problem_of(null + create(8) + load("%rd3", 0) + create(0) + launch("%rd3")), HasSubstr(may));
}

TEST(PrivateStreams, AreToldFromNullOnly) {
  const std::string begin = create(0) + load("%rd3", 0), end = launch("%rd3");
  EXPECT_EQ("", problem_of(begin + "setp.ne.s64 %p2, %rd3, 0;\n@%p2 bra E;\n" + end));
  for (const char* test :
       {"setp.eq.s64 %p2, %rd3, 4;\n", "setp.gt.s64 %p2, %rd3, 0;\n", "setp.eq.s64 %p2, %rd3, %rd4;\n"}) {
    EXPECT_THAT(problem_of(begin + test + "@%p2 bra E;\n" + end), HasSubstr("compared by setp")) << test;
  }
}

TEST(PrivateStreams, OfOneLaunchEachGiveNoOrder) {
  using testing::ElementsAre;
  EXPECT_THAT(orders(create(0) + load("%rd3", 0) + launch("%rd3")), ElementsAre(false));
  // Two streams in two variables, and one behind the other in the same.
  EXPECT_THAT(
      orders(create(0) + load("%rd3", 0) + launch("%rd3") + create(8) + load("%rd4", 8) + launch("%rd4")),
      ElementsAre(false, false));
  EXPECT_THAT(
      orders(create(0) + load("%rd3", 0) + launch("%rd3") + create(0) + load("%rd4", 0) + launch("%rd4")),
      ElementsAre(false, false));
  // Both there before either is launched into, in any order.
  const std::string both = create(0) + create(8);
  EXPECT_THAT(orders(both + load("%rd3", 0) + load("%rd4", 8) + launch("%rd3") + launch("%rd4")),
              ElementsAre(false, false));
  EXPECT_THAT(orders(both + load("%rd3", 8) + launch("%rd3") + load("%rd4", 0) + launch("%rd4")),
              ElementsAre(false, false));
  // Both read from the same variable, one behind the other.
  EXPECT_THAT(
      orders(create(0) + load("%rd3", 0) + create(0) + load("%rd4", 0) + launch("%rd3") + launch("%rd4")),
      ElementsAre(false, false));
  // In a loop, created anew in every round.
  EXPECT_THAT(orders("L:\n" + create(0) + load("%rd3", 0) + launch("%rd3") + "@%p1 bra L;\n"),
              ElementsAre(false));
}

TEST(PrivateStreams, OfSeveralLaunchesGiveOrder) {
  using testing::ElementsAre;
  EXPECT_THAT(orders(create(0) + load("%rd3", 0) + launch("%rd3") + launch("%rd3")), ElementsAre(true, true));
  EXPECT_THAT(orders(create(0) + load("%rd3", 0) + launch("%rd3") + load("%rd4", 0) + launch("%rd4")),
              ElementsAre(true, true));
  EXPECT_THAT(orders(create(0) + "L:\n" + load("%rd3", 0) + launch("%rd3") + "@%p1 bra L;\n"),
              ElementsAre(true));
  // The handle was read before the variable was filled anew, and filled anew on one way only.
  EXPECT_THAT(
      orders(create(0) + load("%rd3", 0) + load("%rd4", 0) + launch("%rd3") + create(0) + launch("%rd4")),
      ElementsAre(true, true));
  EXPECT_THAT(orders(create(0) + load("%rd3", 0) + launch("%rd3") + "@%p1 bra L;\n" + create(0) + "L:\n" +
                     load("%rd4", 0) + launch("%rd4")),
              ElementsAre(true, true));
  // Of two streams that are there, one is launched into twice; one in every round.
  const std::string both = create(0) + create(8) + load("%rd3", 0) + load("%rd4", 8);
  EXPECT_THAT(orders(both + launch("%rd3") + launch("%rd4") + launch("%rd3")),
              ElementsAre(true, false, true));
  EXPECT_THAT(orders(both + "L:\n" + launch("%rd3") + launch("%rd4") + "@%p1 bra L;\n"),
              ElementsAre(true, true));
  // Which of the two it is, the thread chooses.
  EXPECT_THAT(orders(both + "selp.b64 %rd5, %rd3, %rd4, %p1;\n" + launch("%rd3") + launch("%rd5")),
              ElementsAre(true, true));
  EXPECT_THAT(orders(both + "@%p1 mov.u64 %rd4, %rd3;\n" + launch("%rd3") + launch("%rd4")),
              ElementsAre(true, true));
  // One handle was put where the other's was, or is where another creation may have put one.
  EXPECT_THAT(orders(create(0) + create(8) + load("%rd3", 0) + "st.local.u64 [%rd2+8], %rd3;\n" +
                     load("%rd4", 8) + launch("%rd3") + launch("%rd4")),
              ElementsAre(true, true));
  EXPECT_THAT(orders("cvt.u64.u32 %rd12, %r1; add.u64 %rd14, %rd1, %rd12;\n" + create(0) + create(4) +
                     create(8) + load("%rd3", 0) + load("%rd4", 8) + launch("%rd3") + launch("%rd4")),
              ElementsAre(true, true));
  // The second creation is not made by all.
  EXPECT_THAT(orders(create(0) + load("%rd3", 0) + "@%p1 bra L;\n" + create(0) + "L:\n" + load("%rd4", 0) +
                     launch("%rd3") + launch("%rd4")),
              ElementsAre(true, true));
  // A third that is apart from both.
  EXPECT_THAT(orders(create(0) + load("%rd3", 0) + launch("%rd3") + launch("%rd3") + create(8) +
                     load("%rd4", 8) + launch("%rd4")),
              ElementsAre(true, true, false));
}

// The address is written twice, so that the call does not name the variable.
TEST(PrivateStreams, AreKnownByTheMemoryThatTheyAreReadFrom) {
  EXPECT_THAT(orders("add.u64 %rd10, %rd1, 0;\n" + create(0) + load("%rd3", 0) + launch("%rd3")),
              testing::ElementsAre(false));
}

TEST(PrivateStreams, StandInKeepsTheirOrder) {
  const std::string begin = create(0) + load("%rd3", 0) + launch("%rd3");
  EXPECT_EQ(4u, private_stream_stand_in(*streams_kernel(begin).facts)) << "fire-and-forget";
  EXPECT_EQ(2u, private_stream_stand_in(*streams_kernel(begin + launch("%rd3")).facts)) << "per-thread";
  const std::string both = create(0) + create(8) + load("%rd3", 0) + load("%rd4", 8);
  EXPECT_EQ(4u, private_stream_stand_in(*streams_kernel(both + launch("%rd3") + launch("%rd4")).facts));
}

// An address that lies where the alignment leaves bits to the offset.
TEST(PrivateStreams, AreFoundInArrays) {
  const auto two = [](const std::string& address) {
    return orders_of(
        kernel(".local .align 16 .b8 depot[32];\nmov.u64 %rd2, depot;\ncvta.local.u64 %rd1, %rd2;\n"
               "add.u64 %rd10, %rd1, 0;\n" +
               address + create(0) + create(8) + load("%rd3", 0) + load("%rd4", 8) + launch("%rd3") +
               launch("%rd4") + "E: ret;\n"));
  };
  EXPECT_THAT(two("or.b64 %rd18, %rd10, 8;\n"), testing::ElementsAre(false, false));
  EXPECT_THAT(two("add.u64 %rd7, %rd1, 8;\nor.b64 %rd18, %rd7, 8;\n"), testing::ElementsAre(true, true))
      << "the same bit";
  EXPECT_THAT(two("or.b64 %rd18, %rd10, 24;\n"), testing::ElementsAre(true, true)) << "not known to be 0";
}

// ---- addresses of other variables ----

// Passes the address that many bytes behind the stream's to a function of this body, then launches.
std::string passing(int64_t distance, const std::string& function_body,
                    const std::string& parameters = ".param .b64 a") {
  const std::string body =
      ".local .align 8 .b8 depot[32];\nmov.u64 %rd2, depot;\ncvta.local.u64 %rd1, %rd2;\n"
      "add.u64 %rd10, %rd1, 0;\nadd.u64 %rd18, %rd1, 8;\nadd.u64 %rd19, %rd1, " +
      std::to_string(distance) + ";\n{ .param .b64 a; st.param.b64 [a], %rd19; call f, (a); }\n" + create(0) +
      load("%rd3", 0) + launch("%rd3") + "E: ret;\n";
  const std::string text = kernel_text(body);
  const size_t kernel = text.find(".visible");
  return text.substr(0, kernel) + ".func f(" + parameters +
         ") {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n" + function_body + "\nret;\n}\n" +
         text.substr(kernel);
}
std::string problem_in(const std::string& text) { return Kernel(text, "k").facts->private_streams.problem; }

TEST(PrivateStreams, StayOwnBesideVariablesWhoseAddressesArePassed) {
  const std::string store = "ld.param.u64 %rd1, [a]; st.u32 [%rd1], 5;";
  EXPECT_EQ("", problem_in(passing(8, store)));
  EXPECT_EQ("", problem_in(passing(12, "ld.param.u64 %rd1, [a]; st.u32 [%rd1+-4], 5;")));
  const std::string passed = "its address is passed to f";
  EXPECT_THAT(problem_in(passing(0, store)), HasSubstr(passed)) << "the stream's own";
  EXPECT_THAT(problem_in(passing(4, store)), HasSubstr(passed)) << "its second half";
  EXPECT_THAT(problem_in(passing(8, "ld.param.u64 %rd1, [a]; st.u32 [%rd1+-4], 5;")), HasSubstr(passed));
  EXPECT_THAT(
      problem_in(passing(8, "ld.param.u64 %rd1, [a]; mov.u64 %rd2, %rd1; st.global.u64 [%rd2], %rd1;")),
      HasSubstr(passed));
}

TEST(StreamOwnership, IsPrinted) {
  EXPECT_THAT(print_stream_ownership(*Kernel(fixture("streams.ptx"), "_Z9sharedonePi").facts),
              HasSubstr("stream %rd1 of the launch at line"));
}

}  // namespace
}  // namespace klap::test
