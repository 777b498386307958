// Programmatic dependent launches: a kernel that begins when the blocks of the one ahead of it have exited,
// and griddepcontrol.wait, which is what it sees their work through.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "program.h"
#include "tests/emulator/streams/recorder.h"

namespace klap::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `primary` stores n at each of 64 words, `secondary` copies them, with or without waiting before.
constexpr char kSource[] = R"(.version 8.4
.target sm_90
.address_size 64
.visible .entry primary(.param .u64 out, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %d<9>;
  ld.param.u64 %d0, [out];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r1, %r2, 32, %r1;
  mul.wide.u32 %d1, %r1, 4;
  add.u64 %d1, %d0, %d1;
  st.global.u32 [%d1], %r0;
  ret;
}
.visible .entry secondary(.param .u64 in, .param .u64 out, .param .u32 waits) {
  .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<2>;
  ld.param.u64 %d0, [in];
  ld.param.u64 %d2, [out];
  ld.param.u32 %r0, [waits];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r1, %r2, 32, %r1;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 griddepcontrol.wait;
  griddepcontrol.launch_dependents;
  mul.wide.u32 %d1, %r1, 4;
  add.u64 %d3, %d0, %d1;
  ld.global.u32 %r3, [%d3];
  add.u64 %d3, %d2, %d1;
  st.global.u32 [%d3], %r3;
  ret;
}
)";

constexpr uint32_t kGridBlocks = 2, kBlockThreads = 32, kGridWords = kGridBlocks * kBlockThreads;

struct Copies {
  int error = 0;
  std::vector<std::string> findings;
  std::vector<uint32_t> copied, copied_again;
};

class Kernels {
 public:
  explicit Kernels(MachineOptions options) : machine_(with_sink(std::move(options))) {
    image_ = machine_.load({{"dependent.ptx", kSource}});
  }

  uint32_t* words() {
    const uint64_t address = machine_.memory().allocate(kGridWords * 4, Owner::Host).value();
    auto* const data = reinterpret_cast<uint32_t*>(pointer_to(address));
    std::fill_n(data, kGridWords, 0u);
    machine_.order().initialised(address, kGridWords * 4);
    return data;
  }

  template <typename... Arguments>
  void launch(const std::string& kernel, bool dependent, Arguments... arguments) {
    Launch launch;
    launch.image = image_;
    launch.kernel = image_->functions.at(image_->kernels.at(kernel)).get();
    launch.grid = {kGridBlocks, 1, 1};
    launch.block = {kBlockThreads, 1, 1};
    launch.parameters.resize(launch.kernel->parameter_bytes);
    size_t index = 0;
    const auto put = [&](const auto& value) {
      std::memcpy(launch.parameters.data() + launch.kernel->parameter_offsets.at(index++), &value,
                  sizeof value);
    };
    (put(arguments), ...);
    EXPECT_EQ(machine_.launch(kLegacyStream, std::move(launch), dependent), 0);
  }

  // All of it, by waiting for the stream.
  Copies run(uint32_t* first, uint32_t* second) {
    Copies out;
    out.error = machine_.synchronise(kLegacyStream);
    out.findings = findings_;
    out.copied.assign(first, first + kGridWords);
    out.copied_again.assign(second, second + kGridWords);
    return out;
  }

 private:
  MachineOptions with_sink(MachineOptions options) {
    options.finding = [this](const std::string& finding) { findings_.push_back(finding); };
    return options;
  }
  std::vector<std::string> findings_;
  Machine machine_;
  std::shared_ptr<const Image> image_;
};

// A primary, its dependent, and the dependent of that.
Copies run_three(const MachineOptions& options, bool dependent, uint32_t waits) {
  Kernels kernels(options);
  uint32_t *const made = kernels.words(), *const copied = kernels.words(), *const again = kernels.words();
  kernels.launch("primary", false, made, 7u);
  kernels.launch("secondary", dependent, made, copied, waits);
  kernels.launch("secondary", dependent, copied, again, waits);
  return kernels.run(copied, again);
}

bool all_seven(const std::vector<uint32_t>& words) {
  return std::ranges::all_of(words, [](uint32_t word) { return word == 7; });
}

TEST(Dependent, WhoWaitsSeesAllOfThePrimary) {
  for (const MachineOptions& options : many_options(true)) {
    const Copies run = run_three(options, true, 1);
    EXPECT_EQ(run.error, 0) << describe(options);
    EXPECT_THAT(run.findings, IsEmpty()) << describe(options);
    EXPECT_TRUE(all_seven(run.copied) && all_seven(run.copied_again)) << describe(options);
  }
}

TEST(Dependent, WhoDoesNotWaitIsCaught) {
  int races = 0, stale = 0;
  for (const MachineOptions& options : many_options(true)) {
    const Copies run = run_three(options, true, 0);
    races += run.findings.empty() ? 0 : 1;
    stale += all_seven(run.copied) && all_seven(run.copied_again) ? 0 : 1;
  }
  EXPECT_EQ(races, static_cast<int>(many_options(true).size()));
  EXPECT_GT(stale, 0);
}

TEST(Dependent, AnOrdinaryLaunchNeedsNoWait) {
  for (const MachineOptions& options : many_options(true)) {
    const Copies run = run_three(options, false, 0);
    EXPECT_THAT(run.findings, IsEmpty()) << describe(options);
    EXPECT_TRUE(all_seven(run.copied) && all_seven(run.copied_again)) << describe(options);
  }
}

// What comes behind it in the stream, and the host, wait for the primary as well.
TEST(Dependent, IsNotFinishedBeforeItsPrimary) {
  GridRecorder recorder;
  const auto primary = recorder.grid("primary"), dependent = recorder.grid("dependent");
  recorder.operations.add(primary, {});
  begin_all(recorder.operations);
  recorder.operations.add(dependent, std::array{recorder.grids.make_dependent(*dependent, primary)});
  begin_all(recorder.operations);
  EXPECT_THAT(recorder.started, ElementsAre("primary"));
  recorder.grids.exited(*primary);
  recorder.operations.begin_one();
  EXPECT_THAT(recorder.started, ElementsAre("primary", "dependent"));
  EXPECT_FALSE(primary->is_finished());
  recorder.grids.exited(*dependent);
  EXPECT_FALSE(dependent->is_finished());
  begin_all(recorder.operations);
  EXPECT_TRUE(primary->is_finished());
  EXPECT_TRUE(dependent->is_finished());
}

// The blocks have exited, what they launched has not: the dependent begins, and its primary is not finished.
TEST(Dependent, BeginsWhileThePrimarysChildrenRun) {
  GridRecorder recorder;
  const auto primary = recorder.grid("primary"), dependent = recorder.grid("dependent");
  const auto child = recorder.grid("child", primary.get());
  recorder.operations.add(primary, {});
  begin_all(recorder.operations);
  recorder.grids.add_child(child, *primary, {});
  recorder.grids.exited(*primary);
  recorder.operations.add(dependent, std::array{recorder.grids.make_dependent(*dependent, primary)});
  begin_all(recorder.operations);
  EXPECT_THAT(recorder.started, ElementsAre("primary", "child", "dependent"));
  EXPECT_FALSE(primary->is_finished());
  recorder.grids.exited(*child);
  begin_all(recorder.operations);
  EXPECT_TRUE(primary->is_finished());
}

}  // namespace
}  // namespace klap::emulator
