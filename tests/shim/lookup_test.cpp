// How programs find driver functions, and whose they get.
#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "run_program.h"

namespace klap::shim_test {
namespace {

constexpr char kShim[] = "libklap_jit.so";
constexpr char kDriver[] = "libcuda.so.1";

const std::vector<std::string> kHooks = {"cuGetProcAddress",
                                         "cuGetProcAddress_v2",
                                         "cuModuleLoad",
                                         "cuModuleLoadData",
                                         "cuModuleLoadDataEx",
                                         "cuModuleLoadFatBinary",
                                         "cuModuleUnload",
                                         "cuModuleGetFunction",
                                         "cuLinkCreate",
                                         "cuLinkCreate_v2",
                                         "cuLinkAddData",
                                         "cuLinkAddData_v2",
                                         "cuLinkAddFile",
                                         "cuLinkAddFile_v2",
                                         "cuLinkComplete",
                                         "cuLinkDestroy",
                                         "cuLibraryLoadData",
                                         "cuLibraryLoadFromFile",
                                         "cuLibraryUnload",
                                         "cuLibraryGetKernel",
                                         "cuLibraryGetKernelCount",
                                         "cuLibraryEnumerateKernels",
                                         "cuModuleGetFunctionCount",
                                         "cuModuleEnumerateFunctions",
                                         "cuLibraryGetModule",
                                         "cuKernelGetFunction",
                                         "cuKernelSetAttribute",
                                         "cuKernelSetCacheConfig",
                                         "cuFuncSetAttribute",
                                         "cuFuncSetCacheConfig",
                                         "cuLaunchKernel",
                                         "cuLaunchKernel_ptsz",
                                         "cuLaunchKernelEx",
                                         "cuLaunchKernelEx_ptsz",
                                         "cuCtxDestroy",
                                         "cuCtxDestroy_v2",
                                         "cuCtxGetLimit",
                                         "cuCtxSetLimit",
                                         "cuDevicePrimaryCtxRelease",
                                         "cuDevicePrimaryCtxRelease_v2",
                                         "cuDevicePrimaryCtxReset",
                                         "cuDevicePrimaryCtxReset_v2",
                                         "cuGreenCtxDestroy",
                                         "cuStreamDestroy",
                                         "cuStreamDestroy_v2",
                                         "cuArray3DCreate_v2",
                                         "cuArrayCreate_v2",
                                         "cuMemAlloc_v2",
                                         "cuMemAllocAsync",
                                         "cuMemAllocAsync_ptsz",
                                         "cuMemAllocFromPoolAsync",
                                         "cuMemAllocFromPoolAsync_ptsz",
                                         "cuMemAllocManaged",
                                         "cuMemAllocPitch_v2",
                                         "cuMemCreate",
                                         "cuMemFree_v2",
                                         "cuMemFreeAsync",
                                         "cuMemFreeAsync_ptsz",
                                         "cuMipmappedArrayCreate"};

// The fake driver has no graphs.
const std::vector<std::string> kGraphHooks = {"cuGraphInstantiate",
                                              "cuGraphInstantiate_v2",
                                              "cuGraphInstantiateWithFlags",
                                              "cuGraphInstantiateWithParams",
                                              "cuGraphInstantiateWithParams_ptsz",
                                              "cuGraphLaunch",
                                              "cuGraphLaunch_ptsz",
                                              "cuGraphExecDestroy",
                                              "cuGraphExecUpdate",
                                              "cuGraphExecUpdate_v2",
                                              "cuGraphExecKernelNodeSetParams",
                                              "cuGraphExecKernelNodeSetParams_v2",
                                              "cuGraphExecNodeSetParams",
                                              "cuGraphExecChildGraphNodeSetParams",
                                              "cuGraphExecMemcpyNodeSetParams",
                                              "cuGraphExecMemsetNodeSetParams",
                                              "cuGraphExecHostNodeSetParams",
                                              "cuGraphExecEventRecordNodeSetEvent",
                                              "cuGraphExecEventWaitNodeSetEvent",
                                              "cuGraphExecExternalSemaphoresSignalNodeSetParams",
                                              "cuGraphExecExternalSemaphoresWaitNodeSetParams",
                                              "cuGraphExecBatchMemOpNodeSetParams",
                                              "cuGraphNodeSetEnabled",
                                              "cuGraphNodeGetEnabled"};

struct Owner {
  std::string object, symbol;
};

// "ROUTE NAME" -> owner, from the program `addresses`.
std::map<std::string, Owner> owners(const Outcome& run) {
  std::map<std::string, Owner> found;
  std::istringstream in(run.out);
  for (std::string route, name, object, symbol; in >> route >> name >> object >> symbol;) {
    route += " ";
    route += name;
    found[route] = {object, symbol};
  }
  return found;
}

class LookupTest : public testing::Test {
 protected:
  explicit LookupTest(const Options& options = {})
      : run_(run_program("addresses", {}, options)), owners_(owners(run_)) {
    EXPECT_EQ(0, run_.status) << run_.error;
  }
  void expect(const std::string& query, const std::string& object, const std::string& symbol) {
    ASSERT_TRUE(owners_.count(query)) << query << " in:\n" << run_.out;
    EXPECT_EQ(object, owners_[query].object) << query;
    EXPECT_EQ(symbol, owners_[query].symbol) << query;
  }
  Outcome run_;
  std::map<std::string, Owner> owners_;
};

TEST_F(LookupTest, DlsymGivesTheHooks) {
  for (const std::string& name : kHooks) {
    expect("dlsym " + name, kShim, name);
  }
}

// Whatever version the driver has, the program gets something of the shim's that calls that one.
TEST_F(LookupTest, WhatEnqueuesTakesItsTurn) {
  for (const std::string query :
       {"dlsym cuStreamSynchronize", "dlsym cuMemcpyDtoHAsync_v2", "dlsym cuEventRecord",
        "proc:12000:0 cuStreamSynchronize", "proc:12000:0 cuEventRecord"}) {
    ASSERT_TRUE(owners_.count(query)) << query << " in:\n" << run_.out;
    EXPECT_EQ(kShim, owners_[query].object) << query;
  }
}

// Programs compare functions, and ask again. The default stream of a function is part of what it does.
TEST_F(LookupTest, WhatEnqueuesIsOneFunctionForEachDefaultStream) {
  expect("one twice", "yes", "-");
  expect("one by_symbol", "yes", "-");
  expect("one per_thread", "no", "-");
  expect("one older_than_per_thread", "yes", "-");
}

TEST_F(LookupTest, DlsymGivesEverythingElseAsItIs) {
  for (const std::string name : {"cuInit", "cuGetExportTable", "cuMemAlloc"}) {
    expect("dlsym " + name, kDriver, name);
  }
  expect("dlsym cuNoSuchFunction", "null", "-");
  expect("dlsym curl_easy_init", "null", "-");
  if (!kIsSanitized) {
    EXPECT_EQ("libc.so.6", owners_["libc malloc"].object);
  }
}

TEST_F(LookupTest, WithoutLibcudaNothingIsFound) {
  expect("before cuLaunchKernel", "null", "-");
  expect("before error", "set", "-");
  expect("default cuLaunchKernel", kShim, "cuLaunchKernel");  // once it is loaded
}

TEST_F(LookupTest, VersionAndFlagsChooseTheFunction) {
  expect("proc:12000:0 cuInit", kDriver, "cuInit");
  expect("proc:12000:0 cuGetExportTable", kDriver, "cuGetExportTable");
  expect("proc:12000:0 cuNoSuchFunction", "null", "-");
  expect("proc:3000:0 cuLaunchKernel", "null", "-");
  expect("proc:4000:0 cuLaunchKernel", kShim, "cuLaunchKernel");
  expect("proc:12000:1 cuLaunchKernel", kShim, "cuLaunchKernel");
  expect("proc:5000:2 cuLaunchKernel", kShim, "cuLaunchKernel");  // older than the per-thread convention
  expect("proc:7000:2 cuLaunchKernel", kShim, "cuLaunchKernel_ptsz");
  expect("proc:12000:0 cuLaunchKernelEx", kShim, "cuLaunchKernelEx");
  expect("proc:12000:2 cuLaunchKernelEx", kShim, "cuLaunchKernelEx_ptsz");
  expect("proc:12000:2 cuLibraryLoadData", kShim, "cuLibraryLoadData");
  expect("proc:2000:0 cuMemAlloc", kDriver, "cuMemAlloc");  // addresses of 32 bits
  expect("proc:3020:0 cuMemAlloc", kShim, "cuMemAlloc_v2");
  expect("proc:12000:0 cuMemAllocAsync", kShim, "cuMemAllocAsync");
  expect("proc:12000:2 cuMemAllocAsync", kShim, "cuMemAllocAsync_ptsz");
  expect("proc:2000:0 cuMemFree", kDriver, "cuMemFree");
  expect("proc:3020:0 cuMemFree", kShim, "cuMemFree_v2");
  expect("proc:12000:2 cuMemFreeAsync", kShim, "cuMemFreeAsync_ptsz");
  expect("proc:12000:0 cuCtxDestroy", kShim, "cuCtxDestroy_v2");
  expect("proc:3000:0 cuCtxDestroy", kShim, "cuCtxDestroy");
  expect("proc:6000:0 cuLinkCreate", kShim, "cuLinkCreate");
  expect("proc:12000:0 cuLinkCreate", kShim, "cuLinkCreate_v2");
  expect("proc:12040:0 cuGreenCtxDestroy", kShim, "cuGreenCtxDestroy");
  expect("proc:12000:0 cuDevicePrimaryCtxReset", kShim, "cuDevicePrimaryCtxReset_v2");
  expect("proc:12000:0 cuDevicePrimaryCtxRelease", kShim, "cuDevicePrimaryCtxRelease_v2");
  expect("proc:3000:0 cuStreamDestroy", kShim, "cuStreamDestroy");
  expect("proc:4000:0 cuStreamDestroy", kShim, "cuStreamDestroy_v2");
}

TEST_F(LookupTest, TheLookUpItselfComesInTheVersionAskedFor) {
  expect("proc:11000:0 cuGetProcAddress", "null", "-");
  expect("proc:11030:0 cuGetProcAddress", kShim, "cuGetProcAddress");
  expect("proc:12000:0 cuGetProcAddress", kShim, "cuGetProcAddress_v2");
  expect("older cuLaunchKernel", kShim, "cuLaunchKernel");
}

Options disabled() {
  Options options;
  options.environment = {{"KLAP_DISABLE", "1"}};
  return options;
}
class DisabledLookupTest : public LookupTest {
 protected:
  DisabledLookupTest() : LookupTest(disabled()) {}
};

TEST_F(DisabledLookupTest, NothingIsReplaced) {
  expect("dlsym cuLaunchKernel", kDriver, "cuLaunchKernel");
  for (const auto& [query, owner] : owners_) {
    if (query.rfind("default ", 0) == 0) continue;  // the exported name comes first, and only forwards
    EXPECT_NE(kShim, owner.object) << query;
  }
}

TEST(Disabled, HooksOnlyForward) {
  for (const char* program : {"launching", "linked"}) {
    const Outcome run = run_program(program, {"launch"}, disabled());
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_EQ("O", roles(run));
    EXPECT_EQ("", run.error);
  }
}

TEST(Lookup, ExportTablesPassThrough) {
  const Outcome run = run_program("launching", {"export_table"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ(run.said("table"), run.called("cuGetExportTable")[0]["table"]);
}

// Another interposer that passes launches on by RTLD_NEXT, on either side of the shim.
TEST(Lookup, OtherInterposersKeepTheirPlace) {
  const std::string wrapper = std::string(KLAP_PROGRAMS) + "/libnext_wrapper.so";
  Options before;
  before.preload_before = wrapper;
  const Outcome first = run_program("linked", {}, before);
  EXPECT_EQ(0, first.status) << first.error;
  EXPECT_EQ("CVC", roles(first));
  EXPECT_THAT(first.error, testing::HasSubstr("wrapper saw 1 launches"));

  Options behind;
  behind.preload_behind = wrapper;
  const Outcome second = run_program("linked", {}, behind);
  EXPECT_EQ(0, second.status) << second.error;
  EXPECT_EQ("CVC", roles(second));
}

// The output of a command, one line each.
std::vector<std::string> lines_of_command(const std::string& command) {
  std::vector<std::string> lines;
  FILE* const pipe = popen(command.c_str(), "r");
  char line[1024];
  while (pipe && fgets(line, sizeof line, pipe)) {
    lines.emplace_back(line);
    lines.back().erase(lines.back().find_last_not_of('\n') + 1);
  }
  if (pipe) pclose(pipe);
  return lines;
}

TEST(Library, ExportsTheInterposedNamesAlone) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of_command("nm -D --defined-only --format=posix " KLAP_SHIM)) {
    names.push_back(line.substr(0, line.find(' ')));
  }
  std::vector<std::string> expected = kHooks;
  expected.insert(expected.end(), kGraphHooks.begin(), kGraphHooks.end());
  expected.emplace_back("dlsym");
  expected.emplace_back("__cxa_atexit");
  expected.emplace_back("nvrtcGetCUBIN");
  // nvJitLink's, which have the version of the toolkit that a program was built with.
  for (const char* const release : {"12_", "13_"}) {
    for (int minor = 0; minor < 10; ++minor) {
      for (const char* const name : {"Create", "Destroy", "AddData", "AddFile", "GetLinkedCubin"})
        expected.push_back("__nvJitLink" + std::string(name) + "_" + release + std::to_string(minor));
    }
  }
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(expected));
}

// Anything else might clash with what the program brings.
TEST(Library, NeedsTheCLibraryAlone) {
  if (kIsSanitized) GTEST_SKIP() << "the sanitizer's library is another one";
  std::vector<std::string> needed;
  for (const std::string& line : lines_of_command("readelf -dW " KLAP_SHIM)) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const size_t begin = line.find('[') + 1;
    needed.push_back(line.substr(begin, line.find(']') - begin));
  }
  EXPECT_THAT(needed, testing::Contains("libc.so.6"));
  EXPECT_THAT(needed,
              testing::Each(testing::AnyOf("libc.so.6", "libm.so.6", testing::StartsWith("ld-linux"))));
}

}  // namespace
}  // namespace klap::shim_test
