// Failures: the program runs natively, exactly as it would alone, and one line says why.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "run_program.h"
#include "support/file.h"

namespace klap::shim_test {
namespace {

using testing::HasSubstr;

// The original ran from the program's own image, and one complaint holds `why`.
void expect_native(const Outcome& run, const std::string& why) {
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("O", roles(run));
  ASSERT_EQ(1u, run.complaints().size()) << run.error;
  EXPECT_THAT(run.complaints()[0], HasSubstr(why));
  for (const Call& load : run.called("cuLibraryLoadData")) {
    if (load["result"] == "0") {
      EXPECT_EQ(run.said("image"), load["image"]);
    }
  }
}

Options with(const std::string& name, const std::string& value) {
  Options options;
  options.environment = {{name, value}};
  return options;
}

TEST(Failure, NvrtcMissing) {
  expect_native(run_program("launching", {"launch"}, with("KLAP_NVRTC", "/no/such/libnvrtc.so")),
                "/no/such/libnvrtc.so");
}

TEST(Failure, NvJitLinkMissing) {
  Options options = with("KLAP_NVJITLINK", "/no/such/libnvJitLink.so");
  options.environment["KLAP_LINKER"] = "nvjitlink";
  expect_native(run_program("launching", {"launch"}, options), "/no/such/libnvJitLink.so");
}

// Then the driver is asked, and this one cannot link either.
TEST(Failure, NeitherNvJitLinkNorTheDriverLinks) {
  expect_native(run_program("launching", {"launch"}, with("KLAP_NVJITLINK", "/no/such/libnvJitLink.so")),
                "the driver's linker: CUDA_ERROR_JIT_COMPILER_NOT_FOUND");
}

TEST(Failure, DriverChosenButDoesNotLink) {
  expect_native(run_program("launching", {"launch"}, with("KLAP_LINKER", "driver")),
                "the driver's linker: CUDA_ERROR_JIT_COMPILER_NOT_FOUND");
}

TEST(Failure, KernelOutsideTheAllowList) {
  const TemporaryFile stats("stats.json");
  Options options = with("KLAP_STATS", stats.path());
  options.environment["KLAP_LOG"] = "info";
  const Outcome run = run_program("left", {"launch"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("O", roles(run));
  EXPECT_EQ(run.said("image"), run.called("cuLibraryLoadData")[0]["image"]);
  EXPECT_THAT(run.error, HasSubstr("launch of child from parent left: "));
  const auto json = nlohmann::json::parse(read_file(stats.path()));
  EXPECT_EQ("nothing to rewrite", json["modules"][0]["how"]);
}

TEST(Failure, ConfiguredAway) {
  const Outcome run = run_program("launching", {"launch"}, with("KLAP_GRANULARITY", "none"));
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("O", roles(run));
  EXPECT_EQ(run.said("image"), run.called("cuLibraryLoadData")[0]["image"]);
}

TEST(Failure, TruncatedFatbin) {
  const TemporaryFile file("truncated.fatbin");
  const std::string whole = read_file(kObjects + "/launching.fatbin");
  write_file(file.path(), whole.substr(0, whole.size() / 2));
  expect_native(run_program("plain", {"module_file", file.path()}), "cuModuleLoad: loaded unchanged");
}

TEST(Failure, BrokenPtx) {
  const TemporaryFile file("broken.ptx");
  std::string ptx = read_file(kObjects + "/launching.ptx");
  ptx.resize(ptx.rfind('}'));  // the last kernel never ends
  write_file(file.path(), ptx);
  const Outcome run = run_program("plain", {"bytes", file.path()});
  EXPECT_EQ("218", run.said("result"));  // the driver's own verdict reaches the program
  ASSERT_EQ(1u, run.complaints().size()) << run.error;
  EXPECT_THAT(run.complaints()[0], HasSubstr("cuModuleLoadData: loaded unchanged"));
}

TEST(Failure, DriverRefusesTheRewrittenImage) {
  const Outcome run = run_program("launching", {"launch"}, with("FAKE_CUDA_FAIL", "cuLibraryLoadData=2@1"));
  expect_native(run, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(2u, run.called("cuLibraryLoadData").size());
}

TEST(Failure, DevicesOfDifferentCapability) {
  expect_native(run_program("launching", {"launch"}, with("FAKE_CUDA_SM", "90,80")),
                "the devices differ in compute capability");
}

TEST(Failure, DifferentDevicesDoNotConcernModules) {
  EXPECT_EQ("CVC", roles(run_program("launching", {"module"}, with("FAKE_CUDA_SM", "90,80"))));
}

TEST(Failure, WrongSettingsAreReportedAndIgnored) {
  const Outcome run = run_program("launching", {"launch"}, with("KLAP_GRANULARITY", "gird"));
  EXPECT_EQ("CVC", roles(run));
  ASSERT_EQ(1u, run.complaints().size()) << run.error;
  EXPECT_THAT(run.complaints()[0], HasSubstr("gird"));
}

TEST(Failure, WithoutDeviceMemoryTheOriginalRuns) {
  const Outcome run = run_program("launching", {"launch"}, with("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2"));
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("O", roles(run));
  ASSERT_EQ(1u, run.complaints().size()) << run.error;
}

// The variants run, thread by thread, and one line says that nobody chooses between them.
TEST(Failure, WhereSizesCannotBeCopiedTheVariantRuns) {
  for (const char* const failing :
       {"cuMemcpyDtoHAsync_v2=700", "cuMemHostRegister_v2=1", "cuEventRecord=2"}) {
    Options options = with("FAKE_CUDA_FAIL", failing);
    options.environment.insert({{"KLAP_GUARD", "off"}, {"KLAP_LOG", "info"}});
    const Outcome run = run_program("launching", {"streams"}, options);
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_EQ("CVCVCVC", roles(run)) << failing;
    const std::string said = "sizes of children are not looked at";
    EXPECT_NE(run.error.find(said), std::string::npos) << failing << run.error;
    EXPECT_EQ(run.error.find(said), run.error.rfind(said)) << failing << ": it is said once";
  }
}

// The last launches are one kernel where looks find that there are no children.
TEST(Failure, ChildrenThatCannotBeCountedHaveAConsumer) {
  Options options = with("FAKE_CUDA_MEMORY", "8388608");
  options.environment.insert({{"KLAP_GUARD", "off"}, {"KLAP_LOG", "info"}});
  EXPECT_THAT(roles(run_program("launching", {"memory"}, options)), testing::ContainsRegex("(VC){6}V{6,}$"));
  for (const char* const failing : {"cuMemcpyDtoHAsync_v2=700", "cuMemHostRegister_v2=1"}) {
    options.environment["FAKE_CUDA_FAIL"] = failing;
    const Outcome run = run_program("launching", {"memory"}, options);
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_THAT(roles(run), testing::EndsWith("CVCVCVC")) << failing;
    const std::string said = "children are not counted";
    EXPECT_NE(run.error.find(said), std::string::npos) << failing << run.error;
    EXPECT_EQ(run.error.find(said), run.error.rfind(said)) << failing << ": it is said once";
  }
}

// Natively it has all memory, so it has it here, and its launches are still rewritten.
TEST(Failure, MemoryIsTheProgramsFirst) {
  Options little = with("FAKE_CUDA_MEMORY", "8388608");
  const Outcome guarded = run_program("launching", {"memory"}, little);
  EXPECT_EQ(0, guarded.status) << guarded.error;
  EXPECT_THAT(guarded.complaints(), testing::IsEmpty());
  little.environment["KLAP_GUARD"] = "off";      // so that the originals are not tried
  little.environment["KLAP_LAUNCHER"] = "host";  // so that few children have a consumer, too
  const Outcome run = run_program("launching", {"memory"}, little);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_THAT(run.complaints(), testing::IsEmpty());
  std::string expected = "C";
  for (int i = 0; i < 18; ++i) expected += "VC";
  EXPECT_EQ(expected, roles(run));
}

// With lazy loading the driver waits for running kernels when one is first used, which is not to be at a
// launch.
TEST(Failure, KernelsAreLoadedWithTheirModule) {
  const auto variants_loaded_before = [](const Outcome& run, const char* name) {
    int loaded = 0;
    for (const Call& call : run.calls) {
      if (call.name() == name) return loaded;
      if (call.name() == "load" && call["kernel"].find("klap") != std::string::npos) ++loaded;
    }
    return 0;
  };
  const Options lazy = with("FAKE_CUDA_LAZY", "1");
  // What the program asks for first, once it has loaded the image.
  // Parents and consumers of two variants, and a parent without: children run thread by thread, in blocks, or
  // in the parent's own kernel.
  EXPECT_EQ(5, variants_loaded_before(run_program("launching", {"module_options"}, lazy), "cuLaunchKernel"));
  const Outcome run = run_program("launching", {"launch"}, lazy);
  EXPECT_EQ(5, variants_loaded_before(run, "cuLaunchKernel"));
  EXPECT_EQ(5, variants_loaded_before(run, "cuMemAlloc_v2")) << "not only when a launch is prepared";
}

}  // namespace
}  // namespace klap::shim_test
