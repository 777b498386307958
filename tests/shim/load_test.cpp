// Loading: what is replaced, what is passed on untouched, through every path that loads device code.
#include <cuda.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "run_program.h"
#include "support/file.h"

namespace klap::shim_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Ran well, without complaint, and the launch became variant and consumer on one queue.
void expect_redirected(const Outcome& run) {
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_THAT(run.complaints(), IsEmpty());
  ASSERT_EQ("CVC", roles(run)) << run.error;
  const auto launches = run.launches();
  EXPECT_EQ("0010000000000000:05000000:" + added_parameters(launches[1], launches[2]), launches[1]["params"]);
}

TEST(Load, LibraryWithLaunchesIsReplaced) {
  const Outcome run = run_program("launching", {"launch"});
  expect_redirected(run);
  const auto loads = run.called("cuLibraryLoadData");
  ASSERT_EQ(1u, loads.size());
  EXPECT_NE(run.said("image"), loads[0]["image"]);
}

TEST(Load, CompressedLibraryIsReplaced) { expect_redirected(run_program("compressed", {"launch"})); }

TEST(Load, ModuleIsReplaced) { expect_redirected(run_program("launching", {"module"})); }

TEST(Load, ModuleKeepsItsOptions) {
  const Outcome run = run_program("launching", {"module_options"});
  expect_redirected(run);
  const auto options = run.called("jit_option");
  ASSERT_EQ(2u, options.size());
  EXPECT_EQ("0x28", options[1]["value"]);
}

TEST(Load, ADriverThatRefusesIsAskedAgainWithTheProgramsOptions) {
  const auto sizes = [](const Outcome& run) {
    std::vector<std::string> seen;
    for (const Call& call : run.called("jit_option")) {
      if (call["option"] == std::to_string(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)) seen.push_back(call["value"]);
    }
    return seen;
  };
  Options refusing;
  refusing.environment = {{"FAKE_CUDA_FAIL", "cuModuleLoadDataEx=2@1,cuLibraryLoadData=2@1"}};
  const Outcome refused = run_program("launching", {"log_options"}, refusing);
  EXPECT_EQ("0 7", refused.said("module")) << refused.error;
  EXPECT_EQ("0 7", refused.said("library"));
  EXPECT_THAT(sizes(refused), testing::AllOf(testing::SizeIs(4), testing::Each("0x40")));
  const Outcome taken = run_program("launching", {"log_options"});
  EXPECT_EQ("0 7", taken.said("module"));
  EXPECT_EQ("0 7", taken.said("library"));
  EXPECT_THAT(sizes(taken), testing::SizeIs(2));
}

TEST(Load, LibraryKeepsItsOptions) {
  const Outcome run = run_program("launching", {"library_options"});
  expect_redirected(run);
  EXPECT_EQ(1u, run.called("jit_option").size());
  ASSERT_EQ(1u, run.called("library_option").size());
  EXPECT_EQ("1", run.called("library_option")[0]["option"]);
}

TEST(Load, FunctionOfAKernelIsKnown) { expect_redirected(run_program("launching", {"function_of_kernel"})); }
TEST(Load, FunctionOfALibrarysModuleIsKnown) {
  expect_redirected(run_program("launching", {"function_of_module"}));
}

TEST(Load, LinkedProgram) { expect_redirected(run_program("linked")); }

TEST(Load, BarePtxThatTheDriverRefusesLoads) {
  const std::string ptx = kObjects + "/launching.ptx";
  Options native;
  native.preload = false;
  EXPECT_EQ("218", run_program("plain", {"bytes", ptx}, native).said("result"));
  const Outcome run = run_program("plain", {"bytes", ptx});
  EXPECT_EQ("0", run.said("result"));
  expect_redirected(run);
}

TEST(Load, Files) {
  for (const char* file : {"/launching.ptx", "/launching.fatbin"}) {
    expect_redirected(run_program("plain", {"module_file", kObjects + file}));
    expect_redirected(run_program("plain", {"library_file", kObjects + file}));
  }
}

TEST(Load, FinishedMachineCodeIsLeftToTheDriver) {
  const Outcome run = run_program("plain", {"module_file", kObjects + "/plain.cubin"});
  EXPECT_EQ(0, run.status) << run.error;
  ASSERT_EQ(1u, run.called("cuModuleLoad").size());
  EXPECT_EQ("O", roles(run));
}

TEST(Load, FinishedMachineCodeThatLaunchesIsSaidToStayAsItIs) {
  for (const char* const file : {"/finished.cubin", "/finished.fatbin"}) {
    for (const char* const scenario : {"module_file", "library_file", "bytes"}) {
      const Outcome run = run_program("plain", {scenario, kObjects + file});
      EXPECT_EQ(0, run.status) << run.error;
      EXPECT_EQ("O", roles(run));
      ASSERT_EQ(1u, run.complaints().size()) << run.error;
      EXPECT_THAT(run.complaints()[0], HasSubstr("finished machine code without PTX"));
    }
  }
}

// A process without a driver, where no search for a symbol sees nvJitLink, links into that file.
Outcome link_into(const TemporaryFile& file, const Options& options,
                  const std::vector<std::string>& libraries = {"/libnvjitlink_user.so"}) {
  std::vector<std::string> arguments = {kObjects + "/launching.ptx", KLAP_CUDADEVRT, file.path().string()};
  for (const std::string& library : libraries) arguments.push_back(KLAP_PROGRAMS + library);
  return run_program("local_linker", arguments, options);
}

TEST(Load, ALibraryOfTheProgramFindsItsOwnLinker) {
  const TemporaryFile file("linked.cubin");
  std::filesystem::create_directories(file.path().parent_path());
  Options native;
  native.preload = false;
  const Outcome expected = link_into(file, native);
  EXPECT_EQ("1", expected.said("written"));
  EXPECT_EQ("0", expected.said("behind"));
  EXPECT_EQ("1", expected.said("plain"));
  for (const char* const disabled : {"0", "1"}) {
    Options options;
    options.environment = {{"KLAP_DISABLE", disabled}};
    const Outcome run = link_into(file, options);
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_THAT(run.complaints(), IsEmpty());
    EXPECT_EQ(expected.out, run.out);
  }
}

// Whichever of them comes first.
TEST(Load, ALinkerInsideALibraryIsThatLibrarys) {
  const TemporaryFile file("linked.cubin");
  std::filesystem::create_directories(file.path().parent_path());
  Options native;
  native.preload = false;
  const std::string user = "/libnvjitlink_user.so", own = "/libown_linker.so";
  for (const auto& libraries : {std::vector{own}, std::vector{own, user}, std::vector{user, own, user}}) {
    const Outcome run = link_into(file, {}, libraries);
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_THAT(run.out, HasSubstr("create 42\ndestroy 43\n"));
    EXPECT_EQ(link_into(file, native, libraries).out, run.out);
  }
  const Outcome jumped = link_into(file, {}, {"/liblink_caller.so"});
  EXPECT_EQ("42", jumped.said("jumped")) << jumped.error;
}

TEST(Load, AnotherProcessKnowsFromWhatCodeWasLinked) {
  const TemporaryFile file("linked.cubin"), cache("cache"), other("other");
  std::filesystem::create_directories(file.path().parent_path());
  Options options;
  options.environment = {
      {"KLAP_CACHE_DISABLE", "0"}, {"KLAP_CACHE_DIR", cache.path()}, {"KLAP_GUARD", "off"}};
  EXPECT_EQ("1", link_into(file, options).said("written"));
  for (int i = 0; i < 2; ++i) {
    for (const char* const scenario : {"bytes", "module_file", "library_file"})
      expect_redirected(run_program("plain", {scenario, file.path().string()}, options));
  }
  options.environment["KLAP_CACHE_DIR"] = other.path();
  const Outcome run = run_program("plain", {"bytes", file.path().string()}, options);
  EXPECT_EQ("O", roles(run));
  EXPECT_EQ(1u, run.complaints().size()) << run.error;
}

TEST(Load, MissingFileIsTheDriversToReport) {
  const Outcome run = run_program("plain", {"module_file", "/no/such/file"});
  EXPECT_THAT(run.error, HasSubstr("gives 301"));
  EXPECT_THAT(run.complaints(), IsEmpty());
}

// Neither kind of program without launches is touched: the driver sees the very pointer.
TEST(Load, ProgramsWithoutLaunchesGetTheirPointers) {
  for (const char* program : {"plain", "quiet"}) {
    const TemporaryFile stats("stats.json");
    Options options;
    options.environment = {{"KLAP_STATS", stats.path()}, {"KLAP_LOG", "info"}};
    const Outcome run = run_program(program, {"launch"}, options);
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_EQ("", run.error);
    const auto loads = run.called("cuLibraryLoadData");
    ASSERT_EQ(1u, loads.size());
    EXPECT_EQ(run.said("image"), loads[0]["image"]);
    EXPECT_EQ("O", roles(run));
    const auto json = nlohmann::json::parse(read_file(stats.path()));
    EXPECT_EQ(1, json["modules_passed_through"]) << json;
    EXPECT_TRUE(json["modules"].empty());
  }
}

TEST(Load, ProgramsWithoutLaunchesLoseLessThanAMillisecond) {
  for (const char* program : {"plain", "quiet"}) {
    const Outcome run = run_program(program, {"load_time"});
    ASSERT_NE("", run.said("microseconds")) << run.error;
    EXPECT_LT(std::stod(run.said("microseconds")), 1000) << program;
  }
}

TEST(Load, UnloadedHandlesAreForgotten) {
  const Outcome run = run_program("launching", {"reload"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("1", run.said("recycled"));
  // Proof and pair; the recycled handle's original; a fresh library proves its consumer again.
  EXPECT_EQ("CVCOCVC", roles(run));
}

TEST(Load, PlacesOfUnloadedModulesAreUsedAgain) {
  Options options;
  options.environment = {{"KLAP_GUARD", "off"}};  // so that the first launch is looked at
  const Outcome run = run_program("launching", {"reload"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ(2u, run.called("cuMemcpyDtoHAsync_v2").size());
  EXPECT_EQ(1u, run.called("cuMemHostRegister_v2").size());
}

TEST(Load, LibraryOutlivesItsContext) {
  const Outcome run = run_program("launching", {"context_reset"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("CVCCVC", roles(run));
  EXPECT_EQ(2u, run.called("cuMemAlloc_v2").size());  // nothing of the dead context is used
}

TEST(Load, StagesAreDumped) {
  const TemporaryFile marker("dump/marker");
  Options options;
  options.environment = {{"KLAP_DUMP_DIR", marker.path().parent_path()}};
  expect_redirected(run_program("launching", {"launch"}, options));
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(marker.path().parent_path())) {
    files += entry.is_regular_file();
  }
  EXPECT_GT(files, 0);
}

TEST(Load, SummaryIsLoggedOnRequest) {
  Options options;
  options.environment = {{"KLAP_LOG", "info"}};
  const Outcome run = run_program("launching", {"launch"}, options);
  EXPECT_THAT(run.error, HasSubstr("klap: info: cuLibraryLoadData: rewritten, 1 of 1 launch sites"));
  EXPECT_THAT(run.error,
              HasSubstr("launch of child from parent rewritten: granularity grid, launched by the host"));
}

}  // namespace
}  // namespace klap::shim_test
