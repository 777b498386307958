// Which entry counts for a device, which unit launches, which is the device runtime.
#include <gtest/gtest.h>

#include <cstring>

#include "synthetic.h"

namespace klap::container {
namespace {

SyntheticEntry entry_for(uint16_t kind, uint32_t arch, char suffix = '\0') {
  SyntheticEntry entry = raw_entry("x");
  entry.kind = kind;
  entry.arch = arch;
  if (suffix == 'a') entry.flags |= kFlagArchSpecific;
  if (suffix == 'f') entry.flags |= kFlagFamilySpecific;
  return entry;
}

int chosen(const FatbinEntry* entry) { return entry == nullptr ? -1 : static_cast<int>(entry->index); }

TEST(BestEntry, CubinsAreForOneMajorVersionAndItsLaterMinors) {
  const std::string bytes =
      fatbin_of({entry_for(2, 80), entry_for(2, 86), entry_for(1, 80), entry_for(2, 90)});
  const Fatbin fatbin = parse(bytes);
  EXPECT_EQ(chosen(best_cubin(fatbin, 80)), 0);
  EXPECT_EQ(chosen(best_cubin(fatbin, 86)), 1);
  EXPECT_EQ(chosen(best_cubin(fatbin, 89)), 1);
  EXPECT_EQ(chosen(best_cubin(fatbin, 90)), 3);
  EXPECT_EQ(chosen(best_cubin(fatbin, 75)), -1);
  EXPECT_EQ(chosen(best_cubin(fatbin, 100)), -1);
}

TEST(BestEntry, PtxIsForAllLaterDevices) {
  const std::string bytes =
      fatbin_of({entry_for(1, 70), entry_for(64, 80), entry_for(2, 90), entry_for(1, 100)});
  const Fatbin fatbin = parse(bytes);
  EXPECT_EQ(chosen(best_ptx(fatbin, 60)), -1);
  EXPECT_EQ(chosen(best_ptx(fatbin, 75)), 0);
  EXPECT_EQ(chosen(best_ptx(fatbin, 90)), 1);
  EXPECT_EQ(chosen(best_ptx(fatbin, 121)), 3);
}

TEST(BestEntry, SuffixesNarrowTheDevices) {
  const std::string bytes =
      fatbin_of({entry_for(1, 90), entry_for(1, 90, 'a'), entry_for(2, 90, 'a'), entry_for(2, 100, 'f'),
                 entry_for(2, 100), entry_for(2, 103, 'a'), entry_for(1, 100, 'f')});
  const Fatbin fatbin = parse(bytes);
  EXPECT_EQ(chosen(best_ptx(fatbin, 90)), 1);
  EXPECT_EQ(chosen(best_cubin(fatbin, 90)), 2);
  EXPECT_EQ(chosen(best_cubin(fatbin, 100)), 3);
  EXPECT_EQ(chosen(best_cubin(fatbin, 103)), 5);
  EXPECT_EQ(chosen(best_cubin(fatbin, 104)), 3);
  EXPECT_EQ(chosen(best_ptx(fatbin, 103)), 6);
  EXPECT_EQ(chosen(best_ptx(fatbin, 120)), 0);
}

// Units of fixture objects and programs, kept with the bytes they point into.
const Fatbin& unit_of(const File& file, size_t index = 0) { return file.images.at(0).units.at(index); }

TEST(DeviceRuntime, IsTheUnitThatDefinesTheLaunchFunctions) {
  const File program = open_file(fixture("program"));
  EXPECT_FALSE(is_device_runtime(unit_of(program, 0)));
  EXPECT_FALSE(is_device_runtime(unit_of(program, 1)));
  EXPECT_TRUE(is_device_runtime(unit_of(program, 2)));
}

TEST(MachineCode, EndsWithTheLaterOfItsTables) {
  std::string bytes(
      "\x7f"
      "ELF\x02",
      5);
  bytes.resize(64);
  EXPECT_EQ(64u, machine_code_bytes(bytes.data()));
  const auto set = [&](size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  set(32, uint64_t{1000}), set(54, uint16_t{56}), set(56, uint16_t{4});
  EXPECT_EQ(1224u, machine_code_bytes(bytes.data()));
  set(40, uint64_t{900}), set(58, uint16_t{64}), set(60, uint16_t{10});
  EXPECT_EQ(1540u, machine_code_bytes(bytes.data()));
  set(40, ~uint64_t{0} - 100);
  EXPECT_EQ(0u, machine_code_bytes(bytes.data())) << "a sum that wraps around";
  set(40, uint64_t{1} << 40);
  EXPECT_EQ(0u, machine_code_bytes(bytes.data())) << "longer than any image";
  bytes[4] = 1;
  EXPECT_EQ(0u, machine_code_bytes(bytes.data())) << "of 32 bits";
  EXPECT_EQ(0u, machine_code_bytes("//"));
}

TEST(DeviceLaunch, IsMentionedByTheUnitThatLaunches) {
  const File program = open_file(fixture("program"));
  for (const uint32_t sm : {0, 90, 100}) {
    EXPECT_TRUE(mentions_device_launch(unit_of(program, 0), sm)) << sm;
    EXPECT_FALSE(mentions_device_launch(unit_of(program, 1), sm)) << sm;
    EXPECT_FALSE(mentions_device_launch(unit_of(program, 2), sm)) << sm;
  }
  EXPECT_FALSE(mentions_device_launch(unit_of(program, 0), 80)) << "nothing in the unit runs there";
}

// The PTX of real units, alone in a fatbin, must give the answers that their machine code gives.
TEST(DeviceLaunch, PtxAloneTellsTheSame) {
  const File program = open_file(fixture("program"));
  const std::vector<bool> launches = {true, false, false};
  const std::vector<bool> runtime = {false, false, true};
  for (size_t i = 0; i < 3; ++i) {
    const FatbinEntry* ptx = best_ptx(unit_of(program, i), 999);
    ASSERT_NE(ptx, nullptr) << i;
    const std::string bytes = fatbin_of({raw_entry(ptx->payload())});
    EXPECT_EQ(mentions_device_launch(parse(bytes)), launches[i]) << i;
    EXPECT_EQ(is_device_runtime(parse(bytes)), runtime[i]) << i;
  }
}

bool ptx_launches(const std::string& declarations) {
  const std::string bytes =
      fatbin_of({raw_entry(".version 9.0\n.target sm_90\n.address_size 64\n" + declarations)});
  return mentions_device_launch(parse(bytes));
}

TEST(DeviceLaunch, EveryGenerationOfLaunchFunctionsCounts) {
  for (const std::string name :
       {"__cudaCDP2LaunchDeviceV2", "__cudaCDP2LaunchDeviceV2_ptsz", "__cudaCDP2GetParameterBufferV2",
        "__cudaCDP2LaunchDevice", "cudaLaunchDeviceV2", "cudaGetParameterBufferV2", "cudaGetParameterBuffer",
        "cudaLaunchDevice"}) {
    EXPECT_TRUE(
        ptx_launches(".extern .func (.param .b32 func_retval0) " + name + "\n(\n.param .b64 a\n)\n;\n"))
        << name;
  }
}

TEST(DeviceLaunch, NamesAreComparedWhole) {
  EXPECT_FALSE(ptx_launches(".extern .func (.param .b32 r) mycudaLaunchDevice(.param .b64 a);\n"));
  EXPECT_FALSE(ptx_launches(".extern .func (.param .b32 r) cudaLaunchDeviceV2X(.param .b64 a);\n"));
  EXPECT_FALSE(ptx_launches(".extern .func (.param .b32 r) f(.param .b64 cudaLaunchDevice_param_0);\n"));
  EXPECT_FALSE(ptx_launches(".extern .global .u32 cudaLaunchDevice;\n"));
  // What -G makes: a local function with the runtime's name inside its own, and no launch unless it calls the
  // runtime.
  EXPECT_FALSE(ptx_launches(
      ".func (.param .b32 r) _ZN1x18cudaLaunchDeviceV2EPvP11CUstream_st(.param .b64 a){\nret;\n}\n"));
}

TEST(DeviceLaunch, ADefinitionIsNoMention) {
  EXPECT_FALSE(ptx_launches(
      ".extern .func f;\n.visible .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a){\nret;\n}\n"));
}

TEST(DeviceLaunch, OneArchitectureIsEnough) {
  const std::string plain = ".version 9.0\n.target sm_80\n";
  const std::string launching = ".version 9.0\n.target sm_90\n.extern .func cudaLaunchDeviceV2;\n";
  SyntheticEntry old = raw_entry(plain);
  old.arch = 80;
  const std::string bytes = fatbin_of({old, raw_entry(launching)});
  EXPECT_TRUE(mentions_device_launch(parse(bytes)));
  EXPECT_TRUE(mentions_device_launch(parse(bytes), 90));
  EXPECT_FALSE(mentions_device_launch(parse(bytes), 86));
}

TEST(DeviceLaunch, DamagedMachineCodeIsAnErrorThatNamesTheEntry) {
  SyntheticEntry cubin =
      raw_entry("not an ELF file, but long enough to hold the header of one: 64 bytes and more");
  cubin.kind = 2;
  const std::string bytes = fatbin_of({cubin});
  EXPECT_EQ(container_error([&] { mentions_device_launch(parse(bytes)); }),
            "fatbin entry 0 (cubin for sm_90): not an ELF file");
  EXPECT_EQ(container_error([&] { is_device_runtime(parse(bytes)); }),
            "fatbin entry 0 (cubin for sm_90): not an ELF file");
}

TEST(DeviceLaunch, FatbinsWithoutCodeHaveNone) {
  const std::string empty = fatbin_of({});
  EXPECT_FALSE(mentions_device_launch(parse(empty)));
  EXPECT_FALSE(is_device_runtime(parse(empty)));
  SyntheticEntry lto = raw_entry("BC");
  lto.kind = 8;
  const std::string bytes = fatbin_of({lto});
  EXPECT_FALSE(mentions_device_launch(parse(bytes)));
  EXPECT_FALSE(is_device_runtime(parse(bytes)));
}

}  // namespace
}  // namespace klap::container
