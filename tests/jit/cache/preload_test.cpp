// The cache as a program meets it: with the library preloaded, over the stand-in for the driver.
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "support/file.h"

namespace klap::jit {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PreloadedCache : public Cache {
 protected:
  // The statistics of one run with VARIABLE=VALUE settings; the library's messages end in messages_.
  json run(const std::string& settings) {
    const std::string stats = (base_ / "stats.json").string(), messages = (base_ / "messages").string();
    std::filesystem::remove(stats);
    const std::string command = "env LD_LIBRARY_PATH=" KLAP_FAKE_CUDA_DIR " LD_PRELOAD=" KLAP_LIBRARY
                                " KLAP_CACHE_DIR=" +
                                folder().string() + " KLAP_LOG=info KLAP_STATS=" + stats + " " + settings +
                                " " KLAP_LOAD_MODULE " " KLAP_IDIOM_DIR "/cdp2.ptx >/dev/null 2>" + messages;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    messages_ = read_file(messages);
    return json::parse(read_file(stats));
  }

  static constexpr const char* kNoToolchain = "KLAP_NVRTC=/nowhere KLAP_NVJITLINK=/nowhere";
  std::string messages_;
};

TEST_F(PreloadedCache, TheSecondStartCallsNeitherNvrtcNorNvjitlink) {
  const json cold = run("");
  ASSERT_EQ(cold["modules"].size(), 2u);
  EXPECT_EQ(cold["modules"][0]["cache"], "miss");
  EXPECT_EQ(cold["modules"][1]["cache"], "hit");
  EXPECT_GT(cold["toolchain_calls"]["nvrtc"], 0);
  EXPECT_EQ(cold["toolchain_calls"]["nvjitlink"], 1);
  EXPECT_THAT(messages_, HasSubstr("cache: miss"));
  const json warm = run(kNoToolchain);
  EXPECT_EQ(warm["toolchain_calls"], json({{"nvrtc", 0}, {"nvjitlink", 0}}));
  for (const json& module : warm["modules"]) {
    EXPECT_EQ(module["cache"], "hit");
    EXPECT_EQ(module["how"], "rewritten");
  }
  EXPECT_EQ(warm["modules"][0]["sites"], cold["modules"][0]["sites"]);
  EXPECT_EQ(warm["modules"][0]["variants"], cold["modules"][0]["variants"]);
}

TEST_F(PreloadedCache, WithoutTheCacheTheSameIsCompiled) {
  const json off = run("KLAP_CACHE_DISABLE=1");
  EXPECT_EQ(off["modules"][0]["cache"], "off");
  EXPECT_EQ(off["modules"][0]["how"], "rewritten");
  EXPECT_FALSE(std::filesystem::exists(folder()));
  const json homeless = run("HOME= XDG_CACHE_HOME= KLAP_CACHE_DIR=");
  EXPECT_EQ(homeless["modules"][0]["cache"], "off");
  EXPECT_EQ(homeless["modules"][0]["how"], "rewritten");
}

TEST_F(PreloadedCache, ADumpShowsEveryStage) {
  run("");
  const json dumped = run("KLAP_DUMP_DIR=" + (base_ / "dump").string());
  EXPECT_EQ(dumped["modules"][0]["cache"], "off");
  EXPECT_FALSE(std::filesystem::is_empty(base_ / "dump"));
}

TEST_F(PreloadedCache, OtherSettingsAreNotServedFromIt) {
  run("");
  const json left = run("KLAP_GRANULARITY=none");
  EXPECT_EQ(left["modules"][0]["cache"], "miss");
  EXPECT_EQ(left["modules"][0]["how"], "nothing to rewrite");
  EXPECT_EQ(run("KLAP_GRANULARITY=none")["modules"][0]["cache"], "hit");
  EXPECT_EQ(run("KLAP_GRANULARITY=grid")["modules"][0]["how"], "rewritten");
}

TEST_F(PreloadedCache, ASizeCapKeepsModulesOut) {
  run("KLAP_CACHE_MAX_SIZE=1K");
  EXPECT_THAT(messages_, HasSubstr("KLAP_CACHE_MAX_SIZE is 1024"));
  EXPECT_EQ(run("KLAP_CACHE_MAX_SIZE=1K")["modules"][0]["cache"], "miss");
}

TEST_F(PreloadedCache, ADamagedEntryIsBuiltAgain) {
  run("");
  const auto entries = CacheFolder::open(folder()).entries();
  ASSERT_EQ(entries.size(), 1u);
  std::filesystem::resize_file(folder() / entries[0].name, entries[0].bytes / 2);
  const json mended = run("");
  EXPECT_EQ(mended["modules"][0]["cache"], "damaged");
  EXPECT_EQ(mended["modules"][0]["how"], "rewritten");
  EXPECT_THAT(messages_, HasSubstr("removed: has "));
  EXPECT_EQ(run(kNoToolchain)["modules"][0]["cache"], "hit");
}

TEST_F(PreloadedCache, ARefusedFolderCostsOneLine) {
  std::filesystem::create_directory(folder());
  std::filesystem::permissions(folder(), std::filesystem::perms::all);
  const json refused = run("KLAP_LOG=warn");
  EXPECT_EQ(refused["modules"][0]["cache"], "unusable");
  EXPECT_EQ(refused["modules"][0]["how"], "rewritten");
  EXPECT_THAT(messages_, HasSubstr("others may write to the cache folder"));
  EXPECT_EQ(std::ranges::count(messages_, '\n'), 1) << messages_;
}

}  // namespace
}  // namespace klap::jit
