// klap doctor: on the emulated driver, without a driver, and where something is broken.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Doctor : public OnEmulator {
 protected:
  // The findings by what they are about; the last one if there are several.
  std::map<std::string, json> look(const std::vector<std::string>& environment, int exit_code,
                                   std::vector<std::string> words = {}) {
    words.insert(words.begin(), {KLAP, "doctor", "--json"});
    const Result result = command(words, environment);
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    const json out = result.json();
    EXPECT_EQ(out["broken"], exit_code == 1);
    std::map<std::string, json> findings;
    for (const json& finding : out["findings"]) findings[finding["what"]] = finding;
    return findings;
  }
  [[nodiscard]] std::vector<std::string> driver_and(const std::string& setting) const {
    std::vector<std::string> all = driver();
    all.push_back(setting);
    return all;
  }
  void expect_broken(const std::string& setting, const std::string& what, const std::string& text) {
    const json finding = look(driver_and(setting), 1)[what];
    EXPECT_EQ(finding["state"], "broken") << setting;
    EXPECT_THAT(finding["text"].get<std::string>() + finding["fix"].get<std::string>(), HasSubstr(text));
  }
};

TEST_F(Doctor, AllIsFineOnTheEmulatedDriver) {
  const auto findings = look(driver(), 0);
  for (const char* const what :
       {"driver", "GPU", "NVRTC", "nvJitLink", "settings", "cache", "library", "run"}) {
    ASSERT_TRUE(findings.contains(what)) << what;
    EXPECT_EQ(findings.at(what)["state"], "fine") << findings.at(what);
  }
  EXPECT_THAT(findings.at("GPU")["text"].get<std::string>(), HasSubstr("compute capability 9.0"));
  EXPECT_THAT(findings.at("library")["text"].get<std::string>(), HasSubstr(KLAP_SHIM));
  EXPECT_THAT(findings.at("run")["text"].get<std::string>(), HasSubstr("its 200 children together"));
  const Result text = klap({"doctor"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("\nall that could be checked is fine; 1 not checked\n"));
}

TEST_F(Doctor, SettingsOfTheUserDoNotSpoilTheSmallProgram) {
  EXPECT_EQ(look(driver_and("KLAP_GRANULARITY=none"), 0)["run"]["state"], "fine");
}

TEST_F(Doctor, WithoutADriverItSaysWhatItCouldNotCheck) {
  if (std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "this machine has a driver";
  auto findings = look(tools(), 0);
  EXPECT_EQ(findings["driver"]["state"], "not checked");
  EXPECT_EQ(findings["run"]["state"], "not checked");
  EXPECT_EQ(findings["rewriting"]["state"], "fine") << "that needs no GPU";
  EXPECT_FALSE(findings.contains("GPU"));
}

TEST_F(Doctor, ADriverWithoutWhatIsNeededIsTooOld) {
  std::filesystem::copy_file(KLAP_FAKE_CUPTI, path("libcuda.so.1"));
  std::vector<std::string> environment = tools();
  environment.push_back("LD_LIBRARY_PATH=" + path(""));
  const json finding = look(environment, 1)["driver"];
  EXPECT_EQ(finding["state"], "broken");
  EXPECT_THAT(finding["text"].get<std::string>(), HasSubstr("too old"));
  EXPECT_THAT(finding["fix"].get<std::string>(), HasSubstr("CUDA 12.0 or newer"));
}

TEST_F(Doctor, WhatIsBrokenHasAFix) {
  expect_broken("KLAP_NVRTC=/nowhere", "NVRTC", "KLAP_NVRTC");
  expect_broken("KLAP_CACHE_DIR=/proc/none", "cache", "KLAP_CACHE_DIR");
  expect_broken("KLAP_DISABLE=1", "settings", "unset it");
  expect_broken("KLAP_GRANULARTY=grid", "settings", "did you mean KLAP_GRANULARITY?");
  expect_broken("KLAP_GRANULARITY=gird", "settings", "did you mean 'grid'?");
  const Result text = klap({"doctor"}, {"KLAP_DISABLE=1"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr("fix: unset it\n"));
  EXPECT_THAT(text.out, HasSubstr("\n1 broken; 1 not checked\n"));
}

TEST_F(Doctor, ALibraryThatTheLoaderDoesNotTake) {
  auto findings = look(driver(), 1, {"--library", path("absent.so")});
  EXPECT_EQ(findings["library"]["state"], "broken");
  EXPECT_EQ(findings["run"]["state"], "not checked");
  const std::string bytes = read(KLAP_SHIM);
  const std::string cut = write("libklap_jit.so", bytes.substr(0, bytes.size() / 2));
  findings = look(driver(), 1, {"--library", cut});
  EXPECT_EQ(findings["library"]["state"], "broken") << findings["library"];
}

TEST_F(Doctor, TheCacheIsDescribed) {
  EXPECT_EQ(klap_on_micro({"run", "--quiet"}).exit_code, 0);
  const json finding = look(driver(), 0)["cache"];
  EXPECT_THAT(finding["text"].get<std::string>(), HasSubstr(path("cache") + ": 1 modules"));
  EXPECT_THAT(look(driver_and("KLAP_CACHE_DISABLE=1"), 0)["cache"]["text"].get<std::string>(),
              HasSubstr("off"));
}

}  // namespace
}  // namespace klap::cli_test
