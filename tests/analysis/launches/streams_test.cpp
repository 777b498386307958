// What a stream operand can be: literals are certain, everything else is named and never taken for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<StreamValue> streams(const std::string& body, const std::string& operand,
                                 const std::string& idiom = "cdp2", const std::string& before = "") {
  const Parsed p(kernel(body, before));
  return stream_values(p.query(), operand, *idioms().by_name(idiom));
}

std::vector<StreamClass> kinds(const std::vector<StreamValue>& values) {
  std::vector<StreamClass> out;
  out.reserve(values.size());
  for (const StreamValue& v : values) out.push_back(v.kind);
  return out;
}

TEST(Streams, LiteralsAreCertain) {
  const std::tuple<const char*, const char*, StreamClass> cases[] = {
      {"0", "cdp2", StreamClass::Null},
      {"0", "cdp2-ptsz", StreamClass::PerThread},
      {"0", "cdp1-documented", StreamClass::Null},
      {"0", "cdp1-documented-ptsz", StreamClass::PerThread},
      {"1", "cdp2", StreamClass::Illegal},
      {"2", "cdp2", StreamClass::PerThread},
      {"2", "cdp2-ptsz", StreamClass::PerThread},
      {"3", "cdp2", StreamClass::TailLaunch},
      {"4", "cdp2-documented", StreamClass::FireAndForget},
      {"3", "cdp1", StreamClass::Illegal},
      {"4", "cdp1", StreamClass::Illegal},
      {"5", "cdp2", StreamClass::Illegal},
      {"-1", "cdp2", StreamClass::Illegal},
      {"72057594037927936", "cdp2", StreamClass::Illegal},
  };
  for (const auto& [operand, idiom, kind] : cases)
    EXPECT_THAT(kinds(streams("", operand, idiom)), ElementsAre(kind)) << operand << " " << idiom;
  EXPECT_EQ("5, which is no stream", print(streams("", "5")));
  EXPECT_EQ("-1, which is no stream", print(streams("mov.u64 %rd1, -1;\n", "%rd1")));
  EXPECT_EQ("4, which is no stream of dynamic parallelism version 1", print(streams("", "4", "cdp1")));
  EXPECT_THAT(print(streams("", "72057594037927936")), HasSubstr("graphs"));
}

TEST(Streams, ConditionalOnesAreAllNamed) {
  EXPECT_THAT(kinds(streams("selp.b64 %rd1, 0, 4, %p1;\n", "%rd1")),
              ElementsAre(StreamClass::Null, StreamClass::FireAndForget));
  EXPECT_THAT(kinds(streams("mov.u64 %rd1, 2;\n@%p1 bra L;\nmov.u64 %rd1, 3;\nL:\n", "%rd1")),
              ElementsAre(StreamClass::PerThread, StreamClass::TailLaunch));
  EXPECT_THAT(kinds(streams("ld.param.u64 %rd2, [p];\nselp.b64 %rd1, 0, %rd2, %p1;\n", "%rd1")),
              ElementsAre(StreamClass::Null, StreamClass::Passed));
  EXPECT_EQ("the NULL stream or the fire-and-forget stream",
            print(streams("selp.b64 %rd1, 0, 4, %p1;\n", "%rd1")));
}

constexpr char kCreate[] =
    "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd1;\n.param .b32 param1;\n"
    "st.param.b32 [param1+0], 1;\n.param .b32 retval0;\n"
    "call.uni (retval0), __cudaCDP2StreamCreateWithFlags, (param0, param1);\n}\n";
constexpr char kFrame[] = "mov.u64 %rd8, frame;\ncvta.local.u64 %rd9, %rd8;\nadd.u64 %rd1, %rd9, 8;\n";

TEST(Streams, CreatedOnesAreFoundThroughTheFrame) {
  const std::string head = std::string(kFrame) + kCreate;
  const auto created = streams(head + "add.u64 %rd2, %rd8, 8;\nld.local.u64 %rd3, [%rd2];\n", "%rd3");
  EXPECT_THAT(kinds(created), ElementsAre(StreamClass::Created));
  EXPECT_EQ("created by the same function (line 20:1)", print(created));
  EXPECT_THAT(kinds(streams(head + "ld.local.u64 %rd3, [%rd8+8];\n", "%rd3")),
              ElementsAre(StreamClass::Created));
  // Another word of the frame.
  EXPECT_THAT(kinds(streams(head + "ld.local.u64 %rd3, [%rd8+16];\n", "%rd3")),
              ElementsAre(StreamClass::Loaded));
}

TEST(Streams, ArraysIndexedByThreadAreNamed) {
  const std::string index = "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd4, %r1, 8;\n";
  const auto own = streams(
      std::string(kFrame) + kCreate + index + "add.s64 %rd5, %rd8, %rd4;\nld.local.u64 %rd3, [%rd5];\n",
      "%rd3");
  EXPECT_THAT(kinds(own), ElementsAre(StreamClass::Array));
  EXPECT_EQ("one of an array of streams created by the same function (line 20:1), chosen by thread index",
            print(own));
  const std::string given =
      "ld.param.u64 %rd6, [p];\nadd.s64 %rd5, %rd6, %rd4;\nld.global.u64 %rd3, [%rd5];\n";
  const auto foreign = streams(index + given, "%rd3");
  EXPECT_THAT(kinds(foreign), ElementsAre(StreamClass::Array));
  EXPECT_THAT(print(foreign), HasSubstr("an array in global memory, chosen by thread index"));
  const auto block = streams(replaced(index, "%tid", "%ctaid") + given, "%rd3");
  EXPECT_THAT(print(block), HasSubstr("chosen by block index"));
}

// Nothing that comes from memory is ever taken for a literal stream, even if only zero was stored there.
TEST(Streams, FromMemoryAreUnknown) {
  const std::string zero = std::string(kFrame) + "st.local.u64 [%rd8+8], 0;\n";
  EXPECT_THAT(kinds(streams(zero + "ld.local.u64 %rd3, [%rd8+8];\n", "%rd3")),
              ElementsAre(StreamClass::Loaded));
  EXPECT_THAT(kinds(streams("ld.global.u64 %rd3, [%rd1];\n", "%rd3")), ElementsAre(StreamClass::Loaded));
  EXPECT_THAT(kinds(streams("add.s64 %rd3, %rd1, 0;\n", "%rd3")), ElementsAre(StreamClass::Unknown));
  EXPECT_THAT(kinds(streams("", "%rd3")), ElementsAre(StreamClass::Unknown));
  EXPECT_THAT(kinds(streams("", "table")), ElementsAre(StreamClass::Unknown));
}

// A site is judged by the strictest of its streams.
TEST(Streams, TheStrictestDecides) {
  const auto kind = [](const std::string& selection) {
    const std::string text =
        replaced(fixture("cdp2"), "\tst.param.b64 \t[param1+0], 0;", "\tst.param.b64 \t[param1+0], %rd1;");
    const std::string at = "\tst.u64 \t[%rd2], %rd3;";
    return stream_kind(
        Parsed(replaced(replaced(text, "add.s64 \t%rd1, %rd5, %rd6;", ""), at, selection + at)).site());
  };
  EXPECT_EQ(StreamKind::Null, kind("selp.b64 %rd1, 0, 4, %p1;\n"));
  EXPECT_EQ(StreamKind::Null, kind("selp.b64 %rd1, 2, 0, %p1;\n"));
  EXPECT_EQ(StreamKind::PerThread, kind("selp.b64 %rd1, 4, 2, %p1;\n"));
  EXPECT_EQ(StreamKind::FireAndForget, kind("selp.b64 %rd1, 4, 4, %p1;\n"));
  EXPECT_EQ(StreamKind::Other, kind("selp.b64 %rd1, 0, 3, %p1;\n"));
  EXPECT_EQ(StreamKind::Other, kind("selp.b64 %rd1, 0, 5, %p1;\n"));
  EXPECT_EQ(StreamKind::Other, kind("selp.b64 %rd1, 0, %rd3, %p1;\n"));
  EXPECT_EQ(StreamKind::Other, stream_kind(Site()));
}

}  // namespace
}  // namespace klap::analysis
