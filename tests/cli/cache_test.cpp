// klap-ptx cache: filling, listing and emptying the cache.
#include <gmock/gmock.h>

#include <filesystem>

#include "command.h"
#include "runtime/parents/guard_profiles.h"

namespace klap::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CacheCommand : public Command {
 protected:
  [[nodiscard]] std::string setting() const { return "KLAP_CACHE_DIR=" + path("cache"); }
  Result cache(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), "cache");
    environment.push_back(setting());
    return klap_ptx(arguments, environment);
  }
};

TEST_F(CacheCommand, WarmBuildsOnceAndNeedsNoToolchainAfterwards) {
  const json built = cache({"warm", program("program"), "--sm", "90,80", "--json"}).json();
  ASSERT_FALSE(built["images"].empty());
  for (const json& image : built["images"]) EXPECT_EQ(image["cache"], "miss") << image;
  const json again = cache({"warm", program("program"), "--sm", "90,80", "--json"},
                           {"KLAP_NVRTC=/nowhere", "KLAP_NVJITLINK=/nowhere"})
                         .json();
  ASSERT_EQ(again["images"].size(), built["images"].size());
  for (const json& image : again["images"]) EXPECT_EQ(image["cache"], "hit") << image;
  EXPECT_THAT(cache({"warm", program("program")}).out, HasSubstr("was in the cache"));
}

TEST_F(CacheCommand, OtherSettingsMakeOtherEntries) {
  EXPECT_EQ(cache({"warm", program("launches.ptx")}).exit_code, 0);
  const json other = cache({"warm", program("launches.ptx"), "--granularity", "none", "--json"}, {}).json();
  EXPECT_EQ(other["images"][0]["cache"], "miss");
  EXPECT_EQ(other["images"][0]["variants"], 0);
  EXPECT_EQ(cache({"ls", "--json"}).json()["entries"].size(), 2u);
}

TEST_F(CacheCommand, ATargetWithoutCodeIsNamed) {
  EXPECT_THAT(cache({"warm", program("program"), "--sm", "75"}).out,
              HasSubstr("sm 75: no code for this target launches kernels"));
}

TEST_F(CacheCommand, LsNamesKernelsVersionsAndDamage) {
  EXPECT_EQ(cache({"ls", "--json"}).json()["entries"], json::array());
  EXPECT_EQ(cache({"warm", program("launches.ptx")}).exit_code, 0);
  const json listed = cache({"ls", "--json"}).json();
  ASSERT_EQ(listed["entries"].size(), 1u);
  const json& entry = listed["entries"][0];
  EXPECT_EQ(entry["state"], "good");
  EXPECT_EQ(entry["sm"], 90);
  EXPECT_EQ(listed["bytes"], entry["bytes"]);
  EXPECT_EQ(listed["max_bytes"], 1 << 30);
  ASSERT_FALSE(entry["rewritten"].empty());
  EXPECT_TRUE(entry["tools"].contains("nvJitLink"));
  EXPECT_THAT(cache({"ls"}).out, HasSubstr(entry["rewritten"][0].get<std::string>()));
  std::filesystem::resize_file(path("cache/" + entry["file"].get<std::string>()), 100);
  EXPECT_EQ(cache({"ls", "--json"}).json()["entries"][0]["state"], "damaged");
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("damaged: has 100 bytes, not"));
}

TEST_F(CacheCommand, LsAndClearKnowProfilesOfEarlierRuns) {
  runtime::GuardTimes times;
  for (int i = 0; i < 3; ++i) times.variant.later.add(2), times.original.later.add(1);
  times.runs = 2, times.launches = 200, times.spent_ms = 300;
  runtime::GuardProfiles profiles(path("cache"), 1 << 20);
  profiles.found("module, device", {"__klap_parent", {1, 2}}, times, false);
  profiles.write(runtime::seconds_now());
  const json listed = cache({"ls", "--json"}).json();
  ASSERT_EQ(listed["profiles"].size(), 1u);
  const json& profile = listed["profiles"][0];
  EXPECT_EQ(profile["of"], "module, device");
  EXPECT_EQ(profile["bytes"], listed["bytes"]);
  EXPECT_EQ(profile["measured"][0]["choice"], "original");
  EXPECT_EQ(profile["measured"][0]["variant_ms"], 2);
  EXPECT_THAT(cache({"ls"}).out, HasSubstr("__klap_parent: variant 2.0000 ms, original 1.0000 ms, choice "
                                           "original, 200 launches in 2 runs"));
  std::filesystem::resize_file(path("cache/" + profile["file"].get<std::string>()), 30);
  EXPECT_EQ(cache({"ls", "--json"}).json()["profiles"][0]["state"], "damaged");
  EXPECT_EQ(cache({"clear", "--json"}).json()["profiles_removed"], 1);
  EXPECT_EQ(cache({"ls", "--json"}).json()["profiles"], json::array());
}

TEST_F(CacheCommand, ClearRemovesEntriesAndNothingElse) {
  EXPECT_EQ(cache({"warm", program("launches.ptx")}).exit_code, 0);
  write("cache/notes.txt", "mine");
  EXPECT_EQ(cache({"clear", "--json"}).json()["removed"], 1);
  EXPECT_EQ(cache({"ls", "--json"}).json()["entries"], json::array());
  EXPECT_EQ(read(path("cache/notes.txt")), "mine");
}

TEST_F(CacheCommand, AFolderThatCannotBeUsedIsAnError) {
  std::filesystem::create_directory(path("cache"));
  std::filesystem::permissions(path("cache"), std::filesystem::perms::all);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"ls"}, {"clear"}, {"warm", program("launches.ptx")}}) {
    const Result result = cache(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("others may write to the cache folder"));
  }
  EXPECT_THAT(cache({"ls"}, {"KLAP_CACHE_DISABLE=1"}).err, HasSubstr("KLAP_CACHE_DISABLE is set"));
}

TEST_F(CacheCommand, EverySubcommandHasHelp) {
  for (const char* const subcommand : {"ls", "clear", "warm"}) {
    const Result result = cache({subcommand, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("--json")) << subcommand;
  }
}

TEST_F(CacheCommand, ASubcommandIsNeeded) {
  EXPECT_EQ(cache({}).exit_code, 2);
  EXPECT_EQ(cache({"frobnicate"}).exit_code, 2);
  EXPECT_EQ(cache({"warm"}).exit_code, 2);
}

}  // namespace
}  // namespace klap::cli_test
