// Programs of dynamic parallelism version 1: which are run as ones of version 2, and which stay.
#include "jit/plan/newer_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "analysis/effects/idle_waits.h"
#include "jit/module.h"
#include "ptx/tree.h"
#include "support/file.h"

namespace klap::jit {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kHopper = 90, kAmpere = 80;

Program program_of(const std::filesystem::path& file) { return program_from_ptx(read_file(file), "unit 0"); }
Program older(const std::string& name) {
  return program_of(std::filesystem::path(KLAP_OLDER_DIR) / (name + ".ptx"));
}
// What nvcc makes of version 2.
Program newer() { return program_of(std::filesystem::path(KLAP_IDIOM_DIR) / "cdp2.ptx"); }

// A kernel whose body is this, with the wait and a launch declared.
std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b32 r) "
         "cudaDeviceSynchronize\n()\n;\n"
         ".extern .func (.param .b32 r) cudaLaunchDeviceV2\n(.param .b64 a, .param .b64 b)\n;\n"
         ".func helper()\n{\n\tret;\n}\n"
         ".visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n\t.reg .pred %p;\n" +
         body + "}\n";
}
const std::string kLaunch =
    "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], 0; st.param.b64 [b], 0;\n"
    "call.uni (r), cudaLaunchDeviceV2, (a, b); }\n";
const std::string kWait =
    "{ .param .b32 w; call.uni (w), cudaDeviceSynchronize, (); ld.param.b32 %r1, [w]; }\n";

bool matters(const std::string& body) {
  return analysis::wait_that_matters(ptx::parse(kernel(body), "k")).has_value();
}

TEST(IdleWaits, HaveNothingBehindThem) {
  EXPECT_FALSE(matters(kLaunch + kWait + "\tret;\n"));
  EXPECT_FALSE(matters(kLaunch + kWait + "\tadd.s32 %r2, %r1, 1;\n\tsetp.eq.s32 %p, %r2, 1;\n\t@%p exit;\n"));
  EXPECT_FALSE(matters(kLaunch + "\t@%p bra $end;\n" + kWait + "$end:\n\tret;\n"));
}

TEST(IdleWaits, HaveNothingToWaitFor) {
  EXPECT_FALSE(matters(kWait + "\tst.global.u32 [%rd1], 1;\n\tret;\n"));
  EXPECT_TRUE(matters("\tcall.uni helper, ();\n" + kWait + "\tst.global.u32 [%rd1], 1;\n\tret;\n"))
      << "the function might launch";
}

TEST(IdleWaits, AreNoneWhereAThreadGoesOn) {
  for (const char* const next :
       {"\tst.global.u32 [%rd1], 1;\n", "\tld.global.u32 %r2, [%rd1];\n",
        "\tatom.global.add.u32 %r2, [%rd1], 1;\n", "\tbar.sync 0;\n", "\tcall.uni helper, ();\n",
        "\tmembar.gl;\n", "\tred.global.add.u32 [%rd1], 1;\n", "\ttrap;\n", "\tst.shared.u32 [%r1], 1;\n"})
    EXPECT_TRUE(matters(kLaunch + kWait + next + "\tret;\n")) << next;
}

TEST(IdleWaits, AreNoneInLoopsThatLaunchAgain) {
  EXPECT_TRUE(matters("$again:\n" + kLaunch + kWait + "\t@%p bra $again;\n\tret;\n"));
}

TEST(NewerVersion, IsForDevicesThatRefuseTheOlderOne) {
  const Program program = older("waits");
  EXPECT_FALSE(in_newer_version(program, kAmpere).program.has_value());
  const auto newer = in_newer_version(program, kHopper).program;
  ASSERT_TRUE(newer.has_value());
  const std::string& ptx = newer->units[0].ptx;
  EXPECT_THAT(ptx, HasSubstr("__cudaCDP2LaunchDeviceV2"));
  EXPECT_THAT(ptx, HasSubstr("__cudaCDP2StreamCreateWithFlags"));
  EXPECT_THAT(ptx, Not(HasSubstr("\tcudaStreamCreateWithFlags,")));
  EXPECT_THAT(ptx, Not(HasSubstr("\tcudaDeviceSynchronize,")));
  const auto line_of_last = [](const std::string& text) {
    return std::ranges::count(text.substr(0, text.rfind('}')), '\n');
  };
  EXPECT_EQ(line_of_last(program.units[0].ptx), line_of_last(ptx)) << "messages name lines";
}

TEST(NewerVersion, ComesWithANewerRuntimeAndWithoutMachineCode) {
  Program program = older("runtime");
  program.units[0].cubin = "code for another version";
  program.units.emplace_back().is_device_runtime = true;
  const auto newer = in_newer_version(program, kHopper).program;
  ASSERT_TRUE(newer.has_value());
  ASSERT_EQ(1u, newer->units.size());
  EXPECT_EQ("", newer->units[0].cubin);
}

TEST(NewerVersion, IsNoneForProgramsThatCannotChange) {
  Program waiting = older("runtime");
  waiting.units[0].ptx =
      kernel(kLaunch + kWait + "\tactivemask.b32 %r2;\n\tst.global.u32 [%rd1], 1;\n\tret;\n");
  const NewerVersion stays = in_newer_version(waiting, kHopper);
  EXPECT_FALSE(stays.program.has_value()) << "a wait where the kernel cannot be split";
  EXPECT_THAT(stays.problem, HasSubstr("k: 'activemask.b32' of several threads"));
  EXPECT_FALSE(in_newer_version(newer(), kHopper).program.has_value()) << "version 2";
  Program both = older("runtime");
  both.units.push_back(newer().units[0]);
  EXPECT_FALSE(in_newer_version(both, kHopper).program.has_value()) << "a unit of either version";
  Program machine_code = older("runtime");
  machine_code.units.emplace_back().launches = true;
  EXPECT_FALSE(in_newer_version(machine_code, kHopper).program.has_value()) << "a unit without PTX";
}

TEST(NewerVersion, SaysWhereKernelsWait) {
  Program waiting = older("runtime");
  waiting.units[0].ptx = kernel(kLaunch + kWait + "\tst.global.u32 [%rd1], 1;\n\tret;\n");
  const NewerVersion version = in_newer_version(waiting, kHopper);
  ASSERT_TRUE(version.program.has_value()) << version.problem;
  EXPECT_THAT(version.waits, testing::ElementsAre(testing::Field(
                                 &KernelWait::text, HasSubstr("k waits for its children (line "))));
}

TEST(NewerVersion, SaysWhereKernelsWaitInTheSource) {
  Program waiting = older("runtime");
  waiting.units[0].ptx =
      kernel(kLaunch + "\t.loc 1 12 3\n" + kWait + "\tst.global.u32 [%rd1], 1;\n\tret;\n") +
      "\t.file 1 \"/home/someone/kernels.cu\"\n";
  const NewerVersion version = in_newer_version(waiting, kHopper);
  ASSERT_TRUE(version.program.has_value()) << version.problem;
  EXPECT_THAT(version.waits, testing::ElementsAre(
                                 testing::Field(&KernelWait::text, HasSubstr("children (kernels.cu:12:3)"))));
}

// The loop ends when the child has written, which it may not do before the block makes room for it.
constexpr char kPoll[] =
    "$poll:\n\tld.volatile.global.u32 %r1, [%rd1];\n\tsetp.eq.s32 %p, %r1, 0;\n\t@%p bra $poll;\n";

TEST(NewerVersion, StopsAtPollsIfItIsToldTo) {
  Program polling = older("runtime");
  polling.units[0].ptx = kernel(kLaunch + kPoll + "\tret;\n");
  EXPECT_TRUE(in_newer_version(polling, kHopper).waits.empty());
  const NewerVersion version = in_newer_version(polling, kHopper, Polls::AreWaits);
  ASSERT_TRUE(version.program.has_value()) << version.problem;
  EXPECT_EQ(1u, version.waits.size());
  // Each look is made by a grid of its own.
  EXPECT_THAT(version.program->units[0].ptx, HasSubstr("resumed"));
}

// Nobody else needs the place of a block that runs alone, so a kernel that has no children polls as it does.
TEST(NewerVersion, DoesNotStopAtPollsOfKernelsWithoutChildren) {
  Program polling = older("runtime");
  polling.units[0].ptx = kernel(std::string(kPoll) + "\tret;\n");
  EXPECT_TRUE(in_newer_version(polling, kHopper, Polls::AreWaits).waits.empty());
}

TEST(NewerVersion, StopsAtPollsBesideWaits) {
  Program both = older("runtime");
  both.units[0].ptx = kernel(kLaunch + kWait + kPoll + "\tret;\n");
  const NewerVersion version = in_newer_version(both, kHopper, Polls::AreWaits);
  ASSERT_TRUE(version.program.has_value()) << version.problem;
  EXPECT_EQ(2u, version.waits.size());
  ptx::parse(version.program->units[0].ptx, "k");  // no function is there twice
}

// The function could stop in no other unit either.
TEST(NewerVersion, IsNoneIfAnotherUnitCallsAFunctionThatWaits) {
  Program waiting = older("runtime");
  const std::string unit = kernel("\tret;\n") +
                           ".visible .func waits()\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n" + kLaunch +
                           kWait + "\tst.global.u32 [%rd1], 1;\n\tret;\n}\n";
  waiting.units[0].ptx = unit;
  EXPECT_TRUE(in_newer_version(waiting, kHopper).program.has_value());
  waiting.units.push_back(waiting.units[0]);
  waiting.units[1].name = "another";
  waiting.units[1].ptx = kernel("\tret;\n") + ".extern .func waits()\n;\n";
  const NewerVersion stays = in_newer_version(waiting, kHopper);
  EXPECT_FALSE(stays.program.has_value());
  EXPECT_THAT(stays.problem, HasSubstr("waits waits or launches, and another unit may call it"));
}

// Such a program cannot run otherwise, so settings by which launches would be left do not hold.
TEST(NewerVersion, ChoosesFreelyWhereSettingsWouldLeaveALaunch) {
  Request request;
  request.setting = [](std::string_view key, const std::string&,
                       const std::string&) -> std::optional<settings::Given> {
    if (key == "launcher") return settings::Given{"device", "the test"};
    if (key == "granularity") return settings::Given{"block", "the test"};
    return std::nullopt;
  };
  const std::vector<SiteRemark> remarks = explain_module(older("tree"), request);
  EXPECT_FALSE(remarks.empty());
  EXPECT_TRUE(std::ranges::all_of(remarks, &SiteRemark::rewritten));
}

// klap::device_synchronize() of include/klap/annotate.cuh, for any device.
TEST(NewerVersion, SplitsProgramsOfVersion2ThatWait) {
  const std::string wait_function =
      ".weak .func (.param .b32 r) __klap_device_synchronize()\n{\n\ttrap;\n\tst.param.b32 [r], "
      "0;\n\tret;\n}\n";
  const std::string wait =
      "{ .param .b32 w; call.uni (w), __klap_device_synchronize, (); ld.param.b32 %r1, [w]; }\n";
  Program waiting = newer();
  std::string& ptx = waiting.units[0].ptx;
  const size_t launch = ptx.find("__cudaCDP2LaunchDeviceV2,"), behind = ptx.find("}", launch);
  ASSERT_NE(std::string::npos, behind);
  const size_t line = ptx.find('\n', behind);
  std::string call = wait;
  call.replace(call.find("%r1"), 3, "%klap_test_r");
  ptx.insert(line + 1, ".reg .b32 %klap_test_r;\n" + call + "st.global.u32 [%rd1], %klap_test_r;\n");
  const size_t kernel_at = ptx.find(".visible .entry");
  ptx.insert(kernel_at, wait_function);
  for (const uint32_t sm : {kAmpere, kHopper}) {
    const NewerVersion version = in_newer_version(waiting, sm);
    ASSERT_TRUE(version.program.has_value()) << version.problem;
    EXPECT_FALSE(version.is_changed);
    EXPECT_EQ(1u, version.waits.size());
    EXPECT_THAT(version.program->units[0].ptx, Not(HasSubstr("trap;\n\tst.param")));
    EXPECT_THAT(version.program->units[0].ptx, Not(HasSubstr(" cudaLaunchDeviceV2")));
  }
}

TEST(NewerVersion, Links) {
  for (const char* const name : {"runtime", "waits", "tree"}) {
    const RewrittenModule module = rewrite_module(older(name), Request{});
    EXPECT_FALSE(module.cubin.empty()) << name;
    EXPECT_TRUE(std::ranges::all_of(module.remarks, &SiteRemark::rewritten)) << name;
  }
}

// Each unit has its own memory for blocks that stop, and all of them count it in the same place.
TEST(NewerVersion, LinksUnitsThatCountInOnePlace) {
  Program program = older("waits");
  program.units.push_back(older("tree").units.at(0));
  const RewrittenModule module = rewrite_module(program, Request{});
  EXPECT_THAT(module.cubin, HasSubstr("__klap_frame_counts"));
  const size_t name = module.cubin.find("__klap_frame_counts");
  EXPECT_EQ(std::string::npos, module.cubin.find("__klap_frame_counts", name + 1));
}

// Version 2 would lose launches beyond its limit, which version 1 has not.
TEST(NewerVersion, IsNoneWhereALaunchWouldBeLeft) {
  Program program = older("runtime");
  Request request;
  request.setting = [](std::string_view key, const std::string&,
                       const std::string&) -> std::optional<settings::Given> {
    if (key != "granularity") return std::nullopt;
    return settings::Given{"none", "the test"};
  };
  const std::vector<SiteRemark> remarks = explain_module(program, request);
  ASSERT_EQ(1u, remarks.size());
  EXPECT_FALSE(remarks[0].rewritten);
  EXPECT_THAT(remarks[0].notes, testing::Contains(HasSubstr("would be left: config-none")));
}

}  // namespace
}  // namespace klap::jit
