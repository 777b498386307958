// The files that earlier runs leave for the guard: what is kept, what is ignored, and several processes at
// once.
#include "runtime/parents/guard_profiles.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/error.h"
#include "support/file.h"

namespace klap::runtime {
namespace {

constexpr uint64_t kMaxBytes = 1 << 20;
constexpr int64_t kNow = 1'000'000;

class GuardProfilesTest : public testing::Test {
 protected:
  GuardProfilesTest() : folder_(testing::TempDir() + "klap-profiles-" + std::to_string(getpid())) {}
  ~GuardProfilesTest() override { std::filesystem::remove_all(folder_); }

  static GuardTimes times(double ms, uint64_t launches = 10) {
    GuardTimes times;
    times.variant.later.add(ms);
    times.runs = 1;
    times.launches = launches;
    times.spent_ms = ms * static_cast<double>(launches);
    return times;
  }
  // One process that finds this.
  void run(const GuardTimes& found, int64_t now = kNow, const ProfiledLaunches& launches = kLaunches) const {
    GuardProfiles profiles(folder_, kMaxBytes);
    profiles.found(name_, launches, found, false);
    profiles.write(now);
  }
  [[nodiscard]] GuardTimes earlier(const ProfiledLaunches& launches = kLaunches) const {
    return GuardProfiles(folder_, kMaxBytes).earlier(name_, launches);
  }
  [[nodiscard]] std::string file() const { return folder_ / profile_file(name_); }
  [[nodiscard]] GuardProfile content() const { return decode_profile(read_file(file())); }

  inline static const ProfiledLaunches kLaunches{"__klap_parent", {1, 2}};
  const std::filesystem::path folder_;
  const std::string name_ = "module, device";
};

TEST_F(GuardProfilesTest, ARunGoesOnFromEarlierOnes) {
  EXPECT_EQ(0u, earlier().runs);
  run(times(2));
  run(times(1));
  EXPECT_EQ(2u, earlier().runs);
  EXPECT_EQ(20u, earlier().launches);
  EXPECT_EQ(1, earlier().variant.later.typical());
  EXPECT_EQ(30, earlier().spent_ms);
  EXPECT_EQ(0u, earlier({"__klap_parent", {1, 3}}).runs) << "other launches";
  EXPECT_EQ(0u, earlier({"__klap_other", {1, 2}}).runs) << "another parent";
  EXPECT_EQ(0u, GuardProfiles(folder_, kMaxBytes).earlier("other module, device", kLaunches).runs);
}

TEST_F(GuardProfilesTest, NewTimesOutweighOldOnes) {
  for (const double ms : {1, 5, 6, 7}) run(times(ms));
  EXPECT_EQ(6, earlier().variant.later.typical()) << "of the last three";
}

TEST_F(GuardProfilesTest, LittleIsNotKept) {
  run(times(0.09));
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "0.9 ms altogether";
  run(times(0.2));
  EXPECT_EQ(1u, earlier().runs);
  GuardTimes tried = times(0.09);
  tried.original.first.add(0.01);
  run(tried);
  EXPECT_EQ(2u, earlier().runs) << "a trial is not to be made again";
}

TEST_F(GuardProfilesTest, WhatIsOnlyConfirmedIsWrittenOnceAMinute) {
  GuardTimes compared = times(2);
  compared.checked = kNow;
  run(compared);
  run(times(2), kNow + 1);
  EXPECT_EQ(1u, earlier().runs);
  run(times(2), kNow + 60);
  EXPECT_EQ(2u, earlier().runs);
}

TEST_F(GuardProfilesTest, BrokenFilesAreIgnoredAndReplaced) {
  run(times(2));
  const std::string good = read_file(file());
  for (const std::string& broken : {std::string(), std::string("klapgrd\n"), good.substr(0, good.size() / 2),
                                    good + "x", good.substr(0, 40) + "x" + good.substr(41)}) {
    write_file(file(), broken);
    EXPECT_THROW(decode_profile(broken), Error);
    EXPECT_EQ(0u, earlier().runs);
  }
  run(times(3));
  EXPECT_EQ(3, earlier().variant.later.typical());
}

TEST_F(GuardProfilesTest, AProfileUnderAWrongNameIsIgnored) {
  run(times(2));
  GuardProfiles profiles(folder_, kMaxBytes);
  std::filesystem::copy(file(), folder_ / profile_file("other"));
  EXPECT_EQ(0u, profiles.earlier("other", kLaunches).runs);
}

TEST_F(GuardProfilesTest, FoldersThatCannotBeUsedCostNothing) {
  std::filesystem::create_directories(folder_);
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  run(times(2));
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "others may write to it";
  std::filesystem::remove(folder_);
  write_file(folder_, "no folder");
  run(times(2));
  EXPECT_EQ(0u, earlier().runs);
}

TEST_F(GuardProfilesTest, KeepsTheLaunchesThatTookLongest) {
  for (uint64_t i = 1; i <= 2 * GuardProfile::kMostRows; ++i)
    run(times(static_cast<double>(i)), kNow, {"__klap_parent", {i, 0}});
  EXPECT_EQ(GuardProfile::kMostRows, content().rows.size());
  EXPECT_EQ(1u, earlier({"__klap_parent", {2 * GuardProfile::kMostRows, 0}}).runs);
  EXPECT_EQ(0u, earlier({"__klap_parent", {1, 0}}).runs);
}

// Each process reads, adds and renames. Some of what they find is lost, but the file is always whole.
TEST_F(GuardProfilesTest, ManyProcessesWriteAtOnce) {
  constexpr int kProcesses = 8, kRuns = 20;
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    for (int n = 0; n < kRuns; ++n) run(times(2));
    _exit(0);
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(0, status);
  }
  // The last one to write adds to what it has read, which may be older than what others have written since.
  EXPECT_GE(earlier().runs, uint64_t{1});
  EXPECT_LE(earlier().runs, uint64_t{kProcesses * kRuns});
  EXPECT_EQ(1, std::distance(std::filesystem::directory_iterator(folder_), {})) << "nothing is left behind";
}

TEST_F(GuardProfilesTest, CountTowardsTheSizeOfTheCache) {
  run(times(2));
  GuardProfiles full(folder_, 1);
  full.found("another", kLaunches, times(2), false);
  full.write(kNow);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace klap::runtime
