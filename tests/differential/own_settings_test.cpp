// Settings that cases are made for, where klap_case is run by hand: it begins with them.
#include "own_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "case.h"
#include "process.h"
#include "runs.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::differential {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Case made_for(const std::string& name, const std::map<std::string, std::string>& settings) {
  Case c;
  c.name = name;
  c.settings = settings;
  return c;
}

OwnSettings find(const std::vector<Case>& cases, const std::map<std::string, std::string>& environment = {}) {
  return find_own_settings(cases, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

const Case kPool = made_for("pool", {{"A", "4K"}, {"B", "on"}});
const Case kPlain = made_for("plain", {});

TEST(OwnSettings, AreMissingWhereNobodySetsThem) {
  EXPECT_EQ(kPool.settings, find({kPool, kPool}).missing);
  EXPECT_EQ((std::map<std::string, std::string>{{"B", "on"}}), find({kPool}, {{"A", "4K"}}).missing);
  EXPECT_TRUE(find({kPlain}).missing.empty());
}

TEST(OwnSettings, GiveWayToTheEnvironment) {
  const OwnSettings own = find({kPool, kPlain}, {{"A", "8K"}, {"B", "on"}});
  EXPECT_TRUE(own.missing.empty());
  EXPECT_THAT(own.notes, ElementsAre("pool is made for A=4K; it stays '8K'"));
}

TEST(OwnSettings, OfOneProcessAreTheSame) {
  for (const Case& other : {kPlain, made_for("other", {{"A", "8K"}, {"B", "on"}})}) {
    EXPECT_THROW(find({kPool, other}), Error) << other.name;
    EXPECT_THROW(find({other, kPool}), Error) << other.name;
    EXPECT_TRUE(find({kPool, other}, {{"A", "4K"}, {"B", "on"}}).missing.empty()) << other.name;
  }
}

// klap_case on the emulated driver, with nothing set that the case is about.
class ByHand : public testing::Test {
 protected:
  void SetUp() override {
    if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  }
  Outcome run(const std::vector<std::string>& cases, std::map<std::string, std::string> variables = {},
              bool is_preloaded = true) {
    const std::filesystem::path library = own_folder().parent_path() / "lib";
    std::vector<std::string> command{(own_folder() / "klap_case").string()};
    command.insert(command.end(), cases.begin(), cases.end());
    variables["LD_LIBRARY_PATH"] = (library / "emulator").string();
    variables["KLAP_EMULATOR_QUIET"] = "1";
    variables["KLAP_LINKER"] = "driver";
    variables["KLAP_CACHE_DISABLE"] = "1";
    variables["KLAP_STATS"] = statistics();
    if (is_preloaded) variables["LD_PRELOAD"] = (library / "libklap_jit.so").string();
    return Process(command, variables, std::chrono::seconds(60)).wait();
  }
  [[nodiscard]] std::string statistics() const { return (folder_.path() / "statistics").string(); }
  [[nodiscard]] bool ran_in_slices() const {
    const auto read = nlohmann::json::parse(read_file(statistics()));
    return !read.at("launches").at("sliced").empty();
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(ByHand, ACaseRunsWithItsSettings) {
  const Outcome outcome = run({"slices_line"});
  EXPECT_EQ(0, outcome.status) << outcome.out << outcome.error;
  EXPECT_EQ("", outcome.error);
  EXPECT_TRUE(ran_in_slices());
}

TEST_F(ByHand, WhatTheCallerSetsStays) {
  const Outcome outcome = run({"slices_line"}, {{"KLAP_POOL_BYTES", "64M"}});
  EXPECT_EQ(0, outcome.status) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("slices_line is made for KLAP_POOL_BYTES="));
  EXPECT_FALSE(ran_in_slices());
}

TEST_F(ByHand, CasesOfDifferentSettingsAreRefused) {
  const Outcome outcome = run({"slices_line", "memory_shuffled"});
  EXPECT_EQ(2, outcome.status);
  EXPECT_EQ("", outcome.out);
  EXPECT_THAT(outcome.error, HasSubstr("name them in calls of their own"));
  const Outcome natively = run({"slices_line", "memory_shuffled"}, {}, false);
  EXPECT_EQ(0, natively.status) << natively.out << natively.error;
}

}  // namespace
}  // namespace klap::differential
