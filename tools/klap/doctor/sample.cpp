#include "klap/doctor/sample.h"

#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "jit/compile/toolchain.h"
#include "jit/module.h"
#include "klap/commands.h"
#include "klap/statistics.h"
#include "klap_ptx/preload_library.h"
#include "klap_ptx/run_folder.h"
#include "klap_ptx/tune/program_run.h"
#include "support/error.h"
#include "support/file.h"
#include "support/toolkit_library.h"

namespace klap::tool {

extern const char kSamplePtx[];

namespace {

constexpr const char* kRewriting = "rewriting";
constexpr const char* kRun = "run";
// Each thread of the parent launches one child, whose threads add the number of that thread.
constexpr int kChildren = 200, kBlock = 64, kThreadsOfChild = 32;
constexpr int kSum = kChildren * (kChildren - 1) / 2;

// The few functions of the driver that the program calls. It finds them as any program does, so that the
// library stands in front of them.
struct SampleDriver {
  PFN_cuInit_v2000 init;
  PFN_cuDevicePrimaryCtxRetain_v7000 retain;
  PFN_cuCtxSetCurrent_v4000 set_current;
  PFN_cuModuleLoadData_v2000 load;
  PFN_cuModuleGetFunction_v2000 get_function;
  PFN_cuMemAlloc_v3020 allocate;
  PFN_cuMemsetD32_v3020 set;
  PFN_cuLaunchKernel_v4000 launch;
  PFN_cuCtxSynchronize_v2000 wait;
  PFN_cuMemcpyDtoH_v3020 copy;
};

SampleDriver open_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) throw Error(ErrorCode::Driver, dlerror());
  SampleDriver driver{};
  resolve(library, "cuInit", driver.init);
  resolve(library, "cuDevicePrimaryCtxRetain", driver.retain);
  resolve(library, "cuCtxSetCurrent", driver.set_current);
  resolve(library, "cuModuleLoadData", driver.load);
  resolve(library, "cuModuleGetFunction", driver.get_function);
  resolve(library, "cuMemAlloc_v2", driver.allocate);
  resolve(library, "cuMemsetD32_v2", driver.set);
  resolve(library, "cuLaunchKernel", driver.launch);
  resolve(library, "cuCtxSynchronize", driver.wait);
  resolve(library, "cuMemcpyDtoH_v2", driver.copy);
  return driver;
}

void require(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::Driver, fmt::format("{} fails with error {}", what, static_cast<int>(result)));
}

std::array<int, kThreadsOfChild> sums_of_sample() {
  const SampleDriver driver = open_driver();
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction parent = nullptr;
  CUdeviceptr sums = 0;
  require(driver.init(0), "cuInit");
  require(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(driver.set_current(context), "cuCtxSetCurrent");
  require(driver.load(&module, kSamplePtx), "cuModuleLoadData");
  require(driver.get_function(&parent, module, "parent"), "cuModuleGetFunction");
  std::array<int, kThreadsOfChild> out{};
  require(driver.allocate(&sums, sizeof out), "cuMemAlloc");
  require(driver.set(sums, 0, out.size()), "cuMemsetD32");
  int count = kChildren;
  void* arguments[] = {&sums, &count};
  constexpr unsigned kBlocks = (kChildren + kBlock - 1) / kBlock;
  require(driver.launch(parent, kBlocks, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr),
          "cuLaunchKernel");
  require(driver.wait(), "cuCtxSynchronize");
  require(driver.copy(out.data(), sums, sizeof out), "cuMemcpyDtoH");
  return out;
}

// Settings of the user that would keep the program from being rewritten are not what is asked here.
std::map<std::string, std::string> environment_of_sample(const std::string& library,
                                                         const std::string& statistics) {
  return {{"LD_PRELOAD", with_preloaded(library)},
          {"KLAP_STATS", statistics},
          {"KLAP_CACHE_DISABLE", "1"},
          {"KLAP_CONFIG", ""},
          {"KLAP_DISABLE", "0"},
          {"KLAP_GRANULARITY", "grid"},
          {"KLAP_GUARD", "off"},
          {"KLAP_LAUNCHER", "host"},
          {"KLAP_OPTIMISE", ""},
          {"KLAP_THRESHOLD", "auto"},
          {"KLAP_TUNE", "off"}};
}

// Returns the lines that a program has printed, without those in which the emulated GPU speaks of itself.
std::string without_emulator(const std::string& said) {
  std::istringstream lines(said);
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("klap emulator: ")) out += (out.empty() ? "" : "\n") + line;
  return out;
}

Finding judge_run(const RunOutcome& outcome, const std::string& said, const std::string& statistics) {
  constexpr const char* kTellMe = "run it with KLAP_LOG=info, and klap explain on your program";
  if (outcome.is_killed) return {kRun, State::Broken, "a small program does not end", kTellMe};
  if (outcome.exit_code != 0)
    return {kRun, State::Broken, fmt::format("a small program fails: {}", said), kTellMe};
  Statistics all;
  std::error_code error;
  if (std::filesystem::exists(statistics, error))
    for (const nlohmann::json& process : read_statistics(statistics)) all.add(process);
  if (all.rewritten() == 0 || all.children != kChildren)
    return {kRun, State::Broken,
            fmt::format("a small program runs right, but its launches stay as they are{}{}",
                        said.empty() ? "" : ": ", said),
            kTellMe};
  return {kRun, State::Fine,
          fmt::format("a small program ran right, its {} children together ({:.1f} s)", kChildren,
                      outcome.seconds),
          ""};
}

}  // namespace

Finding check_rewriting(const settings::Config& config, uint32_t sm) {
  const bool is_linked = config.linker != settings::LinkerChoice::Driver;
  if (!is_linked || !jit::nvjitlink_problem().empty())
    return {kRewriting, State::NotChecked, "without nvJitLink only a run with a GPU can tell", ""};
  jit::Request request;
  request.sm = sm;
  try {
    const jit::RewrittenModule module =
        jit::rewrite_module(jit::program_from_ptx(kSamplePtx, "sample"), request);
    if (module.variants.empty())
      return {kRewriting, State::Broken,
              fmt::format("a small program is not rewritten: {}",
                          module.remarks.empty() ? "no launch was found" : module.remarks.front().detail),
              "report it as a bug, with the output of klap doctor --json"};
    return {kRewriting, State::Fine, fmt::format("a small program is rewritten and linked for sm_{}", sm),
            ""};
  } catch (const Error& error) {
    return {kRewriting, State::Broken, error.what(),
            fmt::format("install a CUDA toolkit that knows sm_{}, 12.4 or newer", sm)};
  }
}

Findings without_nvrtc() {
  constexpr const char* kWhy = "nothing is rewritten without NVRTC";
  return {{kRewriting, State::NotChecked, kWhy, ""}, {kRun, State::NotChecked, kWhy, ""}};
}

Finding check_sample_run(const std::string& library, bool has_device) {
  if (!has_device) return {kRun, State::NotChecked, "there is no GPU to run a small program on", ""};
  if (library.empty())
    return {kRun, State::NotChecked, "there is no library to run a small program with", ""};
  const RunFolder folder;
  const std::string statistics = folder.file("stats.json"), output = folder.file("output");
  const ProgramRun run{{"/proc/self/exe", "run-sample"},
                       environment_of_sample(library, statistics),
                       output,
                       std::chrono::seconds(120)};
  const RunOutcome outcome = run_program(run);
  return judge_run(outcome, without_emulator(read_file(output)), statistics);
}

int run_sample() {
  const std::array<int, kThreadsOfChild> sums = sums_of_sample();
  const auto right = std::ranges::count(sums, kSum);
  if (right == kThreadsOfChild) return 0;
  fmt::print(stderr, "{} of {} sums are wrong\n", kThreadsOfChild - right, kThreadsOfChild);
  return 1;
}

}  // namespace klap::tool
