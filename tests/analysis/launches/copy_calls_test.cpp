// Calls that copy or fill memory are taken apart, whichever of the functions they call.
#include "analysis/launches/copy_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::analysis {
namespace {

std::vector<CopyCall> copy_calls_of(const Parsed& p) {
  return find_copy_calls(p.module, p.facts->function, p.facts->flow, p.facts->data);
}

TEST(CopyCalls, HaveTheOperandsOfTheirFunctions) {
  const Parsed p(kernel(
      call("__cudaCDP2MemcpyAsync",
           {{"b64", "%rd1"}, {"b64", "%rd2"}, {"b64", "40"}, {"b32", "3"}, {"b64", "%rd3"}}) +
      call("__cudaCDP2MemsetAsync_ptsz", {{"b64", "%rd1"}, {"b32", "%r1"}, {"b64", "%rd2"}, {"b64", "0"}},
           "") +
      call("__cudaCDP2Memcpy2DAsync", {{"b64", "%rd1"},
                                       {"b64", "%rd2"},
                                       {"b64", "%rd3"},
                                       {"b64", "%rd4"},
                                       {"b64", "%rd5"},
                                       {"b64", "%rd6"},
                                       {"b32", "4"},
                                       {"b64", "3"}}) +
      call(
          "__cudaCDP2Memset2DAsync",
          {{"b64", "%rd1"}, {"b64", "%rd2"}, {"b32", "7"}, {"b64", "%rd3"}, {"b64", "%rd4"}, {"b64", "2"}})));
  const std::vector<CopyCall> calls = copy_calls_of(p);
  ASSERT_EQ(4u, calls.size());
  EXPECT_THAT((std::vector{calls[0].to, calls[0].from, calls[0].width, calls[0].height, calls[0].kind,
                           calls[0].stream, calls[0].result}),
              testing::ElementsAre("%rd1", "%rd2", "40", "1", "3", "%rd3", "%r9"));
  EXPECT_FALSE(calls[0].fills || calls[0].stream_zero_is_per_thread);
  EXPECT_THAT((std::vector{calls[1].to, calls[1].value, calls[1].width, calls[1].stream, calls[1].result}),
              testing::ElementsAre("%rd1", "%r1", "%rd2", "0", ""));
  EXPECT_TRUE(calls[1].fills && calls[1].stream_zero_is_per_thread);
  EXPECT_THAT((std::vector{calls[2].to, calls[2].to_pitch, calls[2].from, calls[2].from_pitch, calls[2].width,
                           calls[2].height, calls[2].kind, calls[2].stream}),
              testing::ElementsAre("%rd1", "%rd2", "%rd3", "%rd4", "%rd5", "%rd6", "4", "3"));
  EXPECT_THAT((std::vector{calls[3].to, calls[3].to_pitch, calls[3].value, calls[3].width, calls[3].height,
                           calls[3].stream}),
              testing::ElementsAre("%rd1", "%rd2", "7", "%rd3", "%rd4", "2"));
}

TEST(CopyCalls, OfSlicesPassStructures) {
  const Parsed p(kernel(call("__cudaCDP2Memcpy3DAsync", {{"b64", "%rd1"}, {"b64", "%rd2"}}) + R"({
	.param .align 8 .b8 param0[32];
	st.param.v2.b64 [param0], {%rd1, %rd2};
	st.param.b64 [param0+16], %rd2;
	st.param.b64 [param0+24], %rd3;
	.param .b32 param1;
	st.param.b32 [param1], 7;
	.param .align 8 .b8 param2[24];
	st.param.b64 [param2], %rd4;
	st.param.b64 [param2+8], %rd5;
	st.param.b64 [param2+16], %rd6;
	.param .b64 param3;
	st.param.b64 [param3], 3;
	.param .b32 retval0;
	call.uni (retval0), __cudaCDP2Memset3DAsync, (param0, param1, param2, param3);
	}
)"));
  const std::vector<CopyCall> calls = copy_calls_of(p);
  ASSERT_EQ(2u, calls.size());
  EXPECT_TRUE(calls[0].has_slices && !calls[0].fills);
  EXPECT_THAT((std::vector{calls[0].parameters, calls[0].stream}), testing::ElementsAre("%rd1", "%rd2"));
  EXPECT_TRUE(calls[1].has_slices && calls[1].fills);
  EXPECT_THAT((std::vector{calls[1].to, calls[1].to_pitch, calls[1].slice_rows, calls[1].value,
                           calls[1].width, calls[1].height, calls[1].depth, calls[1].stream}),
              testing::ElementsAre("%rd1", "%rd2", "%rd3", "7", "%rd4", "%rd5", "%rd6", "3"));
}

TEST(CopyCalls, OfOtherFormsAreNotUnderstood) {
  const std::vector<std::pair<std::string, std::string>> fill = {
      {"b64", "%rd1"}, {"b32", "%r1"}, {"b64", "%rd2"}, {"b64", "0"}};
  for (const std::string& text : {
           call("__cudaCDP2Memset3DAsync", fill),                                 // no structures
           call("__cudaCDP2MemcpyAsync", fill),                                   // too few parameters
           call("__cudaCDP2MemsetAsync", fill, "", "@%p1 "),                      // made by some threads
           call("__cudaCDP2MemsetAsync", fill, "ld.param.b8 %r9, [retval0];\n"),  // a part of the code
           call("__cudaCDP2MemsetAsync", fill, "mov.u32 %r9, 1;\n"),  // something else in the scope
           call("__cudaCDP2GetDevice", {{"b64", "%rd1"}}),
       })
    EXPECT_TRUE(copy_calls_of(Parsed(kernel(text))).empty()) << text;
}

TEST(CopyCalls, AreFoundByName) {
  const Parsed p(kernel("",
                        ".extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 a);\n"
                        ".extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 a);\n"));
  EXPECT_THAT(copy_names(p.module), testing::ElementsAre("__cudaCDP2MemsetAsync"));
}

}  // namespace
}  // namespace klap::analysis
