// The table of device-runtime functions: complete for the toolkit at hand, and what is not in it is unknown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "analysis/legality/parent_checks.h"
#include "fixture.h"

namespace klap::analysis {
namespace {

using testing::HasSubstr;

// Every function that the toolkit's header declares for device code.
std::set<std::string> declared_functions() {
  const std::string header = read_file(KLAP_RUNTIME_HEADER);
  const std::regex declaration(R"(__device__ __cudart_builtin__[^;{(]*CUDARTAPI ([A-Za-z0-9_]+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator i(header.begin(), header.end(), declaration), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

TEST(RuntimeTable, KnowsEveryFunctionOfTheToolkit) {
  const std::set<std::string> names = declared_functions();
  ASSERT_GT(names.size(), 80u);
  // These are inline: what they do stands in the program's own PTX.
  const std::set<std::string> in_line = {"cudaGetCurrentGraphExec", "cudaTriggerProgrammaticLaunchCompletion",
                                         "cudaGridDependencySynchronize"};
  for (const std::string& name : names) {
    if (in_line.contains(name)) continue;
    EXPECT_NE(nullptr, idioms().kind(name)) << name;
    EXPECT_TRUE(idioms().is_device_runtime(name)) << name;
  }
}

TEST(RuntimeTable, TellsKindsApart) {
  const std::pair<const char*, const char*> cases[] = {
      {"__cudaCDP2MemcpyAsync", "copy"},
      {"cudaMemcpy2DAsync_ptsz", "copy"},
      {"__cudaCDP2Memcpy3DAsync_ptsz", "copy"},
      {"__cudaCDP2Memset3DAsync", "fill"},
      {"__cudaCDP2StreamCreateWithFlags", "stream-create"},
      {"cudaStreamDestroy", "stream-destroy"},
      {"__cudaCDP2StreamWaitEvent_ptsz", "stream-wait"},
      {"__cudaCDP2EventRecord", "event"},
      {"cudaGraphLaunch", "graph"},
      {"__cudaCDP2Malloc", "allocation"},
      {"cudaFree", "allocation"},
      {"__cudaCDP2DeviceGetAttribute", "query"},
      {"__cudaCDP2FuncGetAttributes", "function-query"},
      {"__cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessor", "occupancy"},
      {"cudaDeviceSynchronize", "wait"},
      {"__cudaDeviceSynchronizeDeprecationAvoidance", "wait"},
      {"__cudaCDP2GetLastError", "last-error"},
      {"cudaPeekAtLastError", "peek-last-error"},
      {"__cudaCDP2GetErrorString", "error-text"},
      {"cudaGetErrorName", "error-text"},
      {"cudaCGSynchronizeGrid", "group"},
      {"cudaLaunchDevice_ptsz", "launch"},
  };
  for (const auto& [function, kind] : cases) {
    ASSERT_NE(nullptr, idioms().kind(function)) << function;
    EXPECT_EQ(kind, idioms().kind(function)->name) << function;
    EXPECT_THAT(idioms().describe(function), HasSubstr(function));
  }
}

TEST(RuntimeTable, DoesNotClaimWhatItDoesNotKnow) {
  // A runtime function that a later toolkit may add.
  EXPECT_EQ(nullptr, idioms().kind("__cudaCDP2StreamAdopt"));
  EXPECT_TRUE(idioms().is_device_runtime("__cudaCDP2StreamAdopt"));
  EXPECT_THAT(idioms().describe("__cudaCDP2StreamAdopt"), HasSubstr("unknown"));
  // The program's own functions.
  for (const char* own :
       {"Malloc", "malloc", "GetLastError", "DeviceSynchronize", "_Z6parentPi", "vprintf", ""})
    EXPECT_FALSE(idioms().is_device_runtime(own)) << own;
}

// The reason tells which call it was, whether in the parent or in what it calls.
TEST(Legality, NamesOtherRuntimeCallsByKind) {
  const std::string call = "\t{ .param .b32 retval0; call.uni (retval0), NAME, (); }\n$L__BB1_3:";
  int line = 0;  // of the call that was put in
  const auto judged = [&](const std::string& name) {
    const std::string declaration = ".extern .func (.param .b32 r) " + name + "();\n.visible .entry _Z5child";
    std::string text = replaced(fixture("cdp2"), "$L__BB1_3:", replaced(call, "NAME", name));
    text = replaced(text, ".visible .entry _Z5child", declaration);
    line = static_cast<int>(
        1 + std::count(text.begin(), text.begin() + text.find("call.uni (retval0), " + name), '\n'));
    const Parsed p(text);
    return *check_parent(*p.facts, p.site());
  };
  const Rejection copy = judged("__cudaCDP2MemcpyAsync");
  EXPECT_EQ(Reason::RuntimeCall, copy.reason);
  EXPECT_EQ("copies memory in a stream (__cudaCDP2MemcpyAsync), line " + std::to_string(line) + ":25",
            copy.detail);
  const Rejection later = judged("__cudaCDP2StreamAdopt");
  EXPECT_EQ(Reason::RuntimeCall, later.reason);
  EXPECT_THAT(later.detail, HasSubstr("unknown device-runtime call"));
  for (const char* wait : {"cudaDeviceSynchronize", "__cudaDeviceSynchronizeDeprecationAvoidance"}) {
    const Rejection waits = judged(wait);
    EXPECT_EQ(Reason::ParentWaits, waits.reason);
    EXPECT_THAT(waits.detail, HasSubstr("sm_90"));
    EXPECT_THAT(waits.detail, HasSubstr(wait));
  }
  EXPECT_EQ(Reason::ParentCallsUnknown, judged("elsewhere").reason);
}

}  // namespace
}  // namespace klap::analysis
