// Local wrappers of device-runtime functions: nvcc -G's are seen through, and a function that does anything
// but pass its parameters on is not one.
#include "analysis/launches/wrappers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/legality/parent_checks.h"
#include "analysis/legality/unit_checks.h"
#include "fixture.h"

namespace klap::analysis {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A module in which `wrap` stands for LaunchDeviceV2, with one place of it replaced.
std::string wrapper(const std::string& from = "", const std::string& to = "") {
  const std::string text = R"(.version 9.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.func (.param .b32 result) wrap(.param .b64 buffer, .param .b64 stream)
{
  .local .align 8 .b8 frame[16];
  .reg .b64 %SP, %SPL;
  .reg .b64 %rd<9>;
  .reg .b32 %r<9>;
  mov.u64 %SPL, frame;
  cvta.local.u64 %SP, %SPL;
  ld.param.u64 %rd1, [buffer];
  ld.param.u64 %rd2, [stream];
  st.u64 [%SP+8], %rd2;
  ld.u64 %rd3, [%SP+8];
  {
    .reg .b32 temp_param_reg;
    .param .b64 param0;
    st.param.b64 [param0+0], %rd1;
    .param .b64 param1;
    st.param.b64 [param1+0], %rd3;
    .param .b32 retval0;
    call.uni (retval0), __cudaCDP2LaunchDeviceV2, (param0, param1);
    ld.param.b32 %r1, [retval0+0];
  }
  st.param.b32 [result+0], %r1;
  ret;
}
)";
  return from.empty() ? text : replaced(text, from, to);
}

std::string_view wrapped(const ptx::Module& module) { return runtime_function(module, "wrap"); }

TEST(Wrappers, ArePassedThrough) {
  const ptx::Module m = ptx::parse(wrapper(), "t");
  EXPECT_EQ("__cudaCDP2LaunchDeviceV2", wrapped(m));
  EXPECT_EQ("__cudaCDP2LaunchDeviceV2", runtime_function(m, "__cudaCDP2LaunchDeviceV2"));
  EXPECT_THAT(runtime_function(m, "elsewhere"), IsEmpty());
}

TEST(Wrappers, MustPassEverythingOnAndDoNothingElse) {
  const std::pair<const char*, const char*> cases[] = {
      {"st.param.b64 [param1+0], %rd3;", "st.param.b64 [param1+0], %rd1;"},         // the wrong parameter
      {"st.param.b64 [param1+0], %rd3;", "st.param.b64 [param1+0], 4;"},            // a constant
      {"st.param.b64 [param1+0], %rd3;", "st.param.b32 [param1+0], %r2;"},          // half of one
      {"st.param.b64 [param1+0], %rd3;", ""},                                       // nothing
      {"st.u64 [%SP+8], %rd2;", "st.u64 [%SP+8], %rd2;\n  st.u64 [%SP+8], %rd1;"},  // overwritten
      {"st.u64 [%SP+8], %rd2;", "st.u64 [%SP+8], %rd2;\n  st.u32 [%SP+12], %r2;"},  // overwritten in part
      {"ld.u64 %rd3, [%SP+8];", "ld.u64 %rd3, [%SP+0];"},                           // another word
      {"ld.u64 %rd3, [%SP+8];", "ld.u64 %rd3, [%rd2];"},                            // the program's memory
      {"mov.u64 %SPL", "st.global.u32 [%rd1], 0;\n  mov.u64 %SPL"},                 // a side effect
      {"  {\n", "  setp.eq.u64 %p1, %rd1, 0;\n  {\n"},                              // anything unknown
      {"  {\n", "  @%p1 ret;\n  {\n"},                                              // a way around the call
      {"st.param.b32 [result+0], %r1;", "st.param.b32 [result+0], %r2;"},           // another result
      {"st.param.b32 [result+0], %r1;", ""},                                        // no result
      {"  ret;", "  call.uni __cudaCDP2GetLastError, ();\n  ret;"},                 // another call
      {".reg .b32 temp_param_reg;", ".reg .b64 %rd1;"},  // a register that hides one
      {"call.uni (retval0), __cudaCDP2LaunchDeviceV2", "call.uni (retval0), %rd1"},
      {"call.uni (retval0), __cudaCDP2LaunchDeviceV2", "call.uni (retval0), elsewhere"},
      {"(param0, param1)", "(param1, param0)"},
      {"(.param .b64 buffer, .param .b64 stream)", "(.param .b64 stream, .param .b64 buffer)"},
  };
  for (const auto& [from, to] : cases) {
    const ptx::Module m = ptx::parse(wrapper(from, to), "t");
    EXPECT_THAT(wrapped(m), IsEmpty()) << from << " -> " << to;
  }
}

constexpr char kCaller[] = R"(.visible .entry parent()
{
  .reg .b64 %rd<3>;
  { .param .b64 a; .param .b64 b; .param .b32 r; call.uni (r), wrap, (a, b); }
  ret;
}
)";

TEST(Wrappers, HideALaunchOnlyWhereEveryUseIsACall) {
  const auto is_hidden = [](const std::string& text) {
    const ptx::Module m = ptx::parse(text, "t");
    return is_wrapper_of_calls(m, *m.find_function("wrap"));
  };
  EXPECT_TRUE(is_hidden(wrapper() + kCaller));
  EXPECT_FALSE(is_hidden(wrapper())) << "nothing calls it";
  EXPECT_FALSE(is_hidden(wrapper() + replaced(kCaller, "  ret;", "  mov.u64 %rd1, wrap;\n  ret;")));
  EXPECT_FALSE(is_hidden(wrapper() + ".global .align 8 .u64 functions[1] = {wrap};\n" + kCaller));
  EXPECT_FALSE(is_hidden(
      wrapper(".func (.param .b32 result) wrap", ".visible .func (.param .b32 result) wrap") + kCaller))
      << "another unit may call it";
}

// The launch belongs to the kernel, with everything that it passes; the wrappers have no sites.
TEST(Wrappers, LeaveTheSiteToTheirCaller) {
  const std::string text = fixture("cdp2-wrapped");
  const Parsed p(text);
  ASSERT_EQ(1u, p.facts->sites.size());
  EXPECT_EQ("_Z5childPii", p.site().callee);
  EXPECT_EQ("32", p.site().block[0]);
  EXPECT_EQ("0", p.site().stream);
  size_t sites = 0;
  for (const ptx::Function& f : p.module.functions) {
    if (f.is_definition) sites += FunctionFacts(p.module, f).sites.size();
  }
  EXPECT_EQ(1u, sites);
  const LaunchNames names = launch_names(p.module);
  EXPECT_TRUE(names.contains(p.site().wrapper));
  EXPECT_TRUE(names.contains("__cudaCDP2LaunchDeviceV2"));
  EXPECT_FALSE(names.contains("_ZN4dim3C1Ejjj"));
}

// -G is a reason of its own; in a unit without it the site is judged like any other.
TEST(Wrappers, DoNotStandInTheWayOfARewrite) {
  const std::string text = fixture("cdp2-wrapped");
  const Parsed debug(text);
  EXPECT_EQ(Reason::DebugBuild, check_unit(debug.module, false)->reason);
  EXPECT_EQ(std::nullopt, check_unit(debug.module, true));
  EXPECT_EQ(std::nullopt, check_parent(*debug.facts, debug.site()));
  const Parsed plain(replaced(text, ".target sm_80, debug", ".target sm_80"));
  const auto rejection = check_parent(*plain.facts, plain.site());
  EXPECT_EQ(std::nullopt, rejection) << rejection->detail;
}

TEST(Callers, AreFoundWithTheirLines) {
  const ptx::Module m = ptx::parse(wrapper() + kCaller, "t");
  const Callers callers = callers_of(m, "wrap");
  ASSERT_EQ(1u, callers.calls.size());
  EXPECT_EQ("parent", callers.calls[0].function->name);
  EXPECT_EQ("", callers.address_place);
  EXPECT_EQ("parent (line 33:50)", print(callers));
  EXPECT_EQ("nothing in its unit", print(callers_of(m, "parent")));
  const ptx::Module address =
      ptx::parse(wrapper() + replaced(kCaller, "  ret;", "  mov.u64 %rd1, wrap;\n  ret;"), "t");
  EXPECT_EQ("parent (line 33:50), through its address (line 34:17)", print(callers_of(address, "wrap")));
}

}  // namespace
}  // namespace klap::analysis
