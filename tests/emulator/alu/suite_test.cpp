// The instruction suite: well formed, as the assembler takes it, known to the emulator, and in agreement with
// what was recorded on hardware.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "run_case.h"

namespace suite {
namespace {

constexpr size_t kFewest = 1500;  // cases that must have been recorded

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::ifstream file(KLAP_SUITE);
    return parse_suite(file);
  }();
  return cases;
}

TEST(Suite, HasManyCasesAndNoneTwice) {
  EXPECT_GE(all_cases().size(), kFewest);
  std::set<std::string> seen;
  for (const Case& each : all_cases()) EXPECT_TRUE(seen.insert(each.text).second) << each.text;
}

TEST(Suite, IsWhatItsProgramWrites) {
  EXPECT_EQ(std::system(KLAP_PYTHON " " KLAP_MAKE_SUITE " --check " KLAP_SUITE), 0);
}

// Every case with all lanes and with some: both ways through the loop over the lanes.
TEST(Suite, TheEmulatorKnowsEveryCase) {
  for (const Case& each : all_cases()) {
    try {
      EXPECT_EQ(run_case(each), run_case(each, 0x80000412)) << each.text;
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Suite, ResultsFitTheirRegisters) {
  for (const Case& each : all_cases()) {
    const std::vector<Value> results = run_case(each);
    const std::vector<Register> registers = all_registers(each.destinations);
    for (size_t i = 0; i < results.size(); ++i) {
      const int bits = registers[i].carry ? 1 : registers[i].bits;
      EXPECT_TRUE(bits >= 64 || results[i].low >> bits == 0) << each.text;
    }
  }
}

TEST(Suite, TheAssemblerTakesEveryCase) {
  constexpr size_t kBatch = 1000;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("klap_suite_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string ptx = folder / "cases.ptx", log = folder / "log";
  for (size_t first = 0; first < all_cases().size(); first += kBatch) {
    std::ofstream(ptx) << write_module(all_cases(), first, std::min(first + kBatch, all_cases().size()));
    const std::string command = KLAP_PTXAS " -arch=sm_90 -o " + ptx + ".cubin " + ptx + " > " + log + " 2>&1";
    if (std::system(command.c_str()) == 0) continue;
    std::ifstream file(log);
    ADD_FAILURE() << "cases from " << all_cases()[first].line
                  << " on: " << std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::filesystem::remove_all(folder);
}

// What is wrong with a case, "" for nothing.
std::string disagreement(const Case& each) {
  const std::vector<Value> got = run_case(each);
  const std::vector<Register> registers = all_registers(each.destinations);
  for (size_t i = 0; i < got.size(); ++i) {
    if (agrees(each, got[i], each.results[i])) continue;
    return each.text + ": " + print_value(got[i], registers[i].bits) + ", on hardware " +
           print_value(each.results[i], registers[i].bits);
  }
  return "";
}

TEST(Suite, AgreesWithHardware) {
  size_t recorded = 0;
  for (const Case& each : all_cases()) {
    if (each.results.empty()) continue;
    ++recorded;
    EXPECT_EQ(disagreement(each), "");
  }
  EXPECT_GE(recorded, kFewest);
}

TEST(Suite, SeesWrongResults) {
  Case exact = parse_case("add.u32 | 32 | 32 32 | 1 2 | 3", 1);
  EXPECT_EQ(disagreement(exact), "");
  exact.results[0].low = 4;
  EXPECT_THAT(disagreement(exact), testing::HasSubstr("00000003, on hardware 00000004"));
  // One unit away is within the error of a reciprocal, two are not.
  const std::string text = "rcp.approx.f32 | 32 | 32 | 40000000 | ";
  EXPECT_EQ(disagreement(parse_case(text + "3f000001", 1)), "");
  EXPECT_NE(disagreement(parse_case(text + "3f000003", 1)), "");
  EXPECT_NE(disagreement(parse_case(text + "7f800000", 1)), "");
}

TEST(Suite, RefusesDamagedLines) {
  EXPECT_THROW(parse_case("add.u32 | 32 | 32 32", 1), std::runtime_error);
  EXPECT_THROW(parse_case("add.u32 | 32 | 32 32 | 1", 1), std::runtime_error);
  EXPECT_THROW(parse_case("add.u32 | 32 | 32 32 | 1 2 | 3 4", 1), std::runtime_error);
}

}  // namespace
}  // namespace suite
