// What the machine can do to the folder: whatever it is, the module is right, and one line says what is
// wrong.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "fixture.h"
#include "support/file.h"

namespace klap::jit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class CacheFolderTest : public Cache {
 protected:
  // Two modules through one DiskCache; returns what was said.
  std::string messages(CacheUse expected) {
    testing::internal::CaptureStderr();
    DiskCache cache({.folder = folder()});
    for (const char* name : {"a", "b"}) {
      const CacheKey key = key_for(name);
      const RewrittenModule module = cache.find_or_build(key, {}, [&] { return module_for(key); });
      EXPECT_TRUE(same(module, module_for(key)));
      EXPECT_EQ(module.cache, expected);
    }
    return testing::internal::GetCapturedStderr();
  }
};

size_t lines(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

TEST_F(CacheFolderTest, AMissingFolderIsMadePrivate) {
  DiskCache cache({.folder = folder() / "deep" / "er"});
  const CacheKey key = key_for("a");
  cache.find_or_build(key, {}, [&] { return module_for(key); });
  for (const fs::path& made : {folder(), folder() / "deep", folder() / "deep" / "er"}) {
    EXPECT_EQ(fs::status(made).permissions(), fs::perms::owner_all) << made;
  }
  const fs::path file = folder() / "deep" / "er" / entry_name(key);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CacheFolderTest, AFolderThatOthersMayWriteToIsRefused) {
  fs::create_directory(folder());
  for (const mode_t mode : {0777, 0770, 0702}) {
    ASSERT_EQ(chmod(folder().c_str(), mode), 0);
    const std::string said = messages(CacheUse::Unusable);
    EXPECT_THAT(said, HasSubstr("others may write to the cache folder (fix: chmod 700 " + folder().string()));
    EXPECT_EQ(lines(said), 1u) << said;
    EXPECT_EQ(files_in_folder(), 0u);
  }
}

TEST_F(CacheFolderTest, AFolderOfSomeoneElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directory(folder());
  ASSERT_EQ(chmod(folder().c_str(), 0755), 0);
  ASSERT_EQ(chown(folder().c_str(), kNobody, kNobody), 0);
  const std::string said = messages(CacheUse::Unusable);
  EXPECT_THAT(said, HasSubstr("the cache folder belongs to user 65534, not to user 0"));
  EXPECT_EQ(lines(said), 1u) << said;
}

TEST_F(CacheFolderTest, AFileInPlaceOfTheFolderIsNotUsed) {
  write_file(folder(), "");
  const std::string said = messages(CacheUse::Unusable);
  EXPECT_THAT(said, HasSubstr("Not a directory"));
  EXPECT_EQ(lines(said), 1u) << said;
}

TEST_F(CacheFolderTest, AReadOnlyFolderStillServes) {
  use(key_for("kept"));
  // Root may write anywhere: a process of someone without rights looks at it.
  const uid_t user = geteuid() == 0 ? kNobody : geteuid();
  ASSERT_EQ(chown(folder().c_str(), user, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(chown(entry(key_for("kept")).c_str(), user, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(chmod(folder().c_str(), 0500), 0);
  EXPECT_EQ(0, in_process([&] {
              if (user != geteuid() && setresuid(user, user, user) != 0) return 1;
              if (use(key_for("kept")) != CacheUse::Hit) return 2;
              const std::string said = messages(CacheUse::Miss);
              if (lines(said) != 1 || said.find("Permission denied") == said.npos) return 3;
              return HasFailure() ? 4 : 0;
            }));
  ASSERT_EQ(chmod(folder().c_str(), 0700), 0);
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(CacheFolderTest, AFolderThatCannotBeMadeCostsOneLine) {
  ASSERT_EQ(chmod(base_.c_str(), 0555), 0);
  EXPECT_EQ(0, in_process([&] {
              if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 1;
              const std::string said = messages(CacheUse::Unusable);
              if (lines(said) != 1 || said.find("cannot make the cache folder") == said.npos) return 2;
              return HasFailure() ? 3 : 0;
            }));
  ASSERT_EQ(chmod(base_.c_str(), 0700), 0);
}

TEST_F(CacheFolderTest, TheFileSizeLimitDoesNotKillTheProgram) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::owner_all);
  EXPECT_EQ(0, in_process([&] {
              const rlimit limit{100, 100};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kCannotTest;
              // Captured output would itself be limited.
              DiskCache cache({.folder = folder()});
              const CacheKey key = key_for("a");
              const RewrittenModule module = cache.find_or_build(key, {}, [&] { return module_for(key); });
              return module.cache == CacheUse::Miss && same(module, module_for(key)) ? 0 : 1;
            }));
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(CacheFolderTest, AFullDiskCostsOneLine) {
  fs::create_directory(folder());
  const int code = in_process([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=16k,mode=0700") != 0) {
      return kCannotTest;
    }
    const int filler = open((folder() / "filler").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string block(4096, 'x');
    while (write(filler, block.data(), block.size()) > 0) {
    }
    const std::string said = messages(CacheUse::Miss);
    if (lines(said) != 1 || said.find("No space left") == said.npos) return 1;
    if (files_in_folder() != 1) return 2;
    return HasFailure() ? 3 : 0;
  });
  if (code == kCannotTest) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

TEST_F(CacheFolderTest, WhatWasUsedLongestAgoGoesFirst) {
  use(key_for("a"));
  const uint64_t size = fs::file_size(entry(key_for("a")));
  const uint64_t room_for_three = 3 * size + size / 2;
  for (const char* name : {"b", "c"}) EXPECT_EQ(use(key_for(name), room_for_three), CacheUse::Miss);
  EXPECT_EQ(use(key_for("a"), room_for_three), CacheUse::Hit);
  EXPECT_EQ(use(key_for("d"), room_for_three), CacheUse::Miss);
  EXPECT_EQ(files_in_folder(), 3u);
  EXPECT_FALSE(fs::exists(entry(key_for("b"))));
  for (const char* name : {"c", "a", "d"}) EXPECT_EQ(use(key_for(name), room_for_three), CacheUse::Hit);
  EXPECT_EQ(use(key_for("e"), size), CacheUse::Miss);
  EXPECT_EQ(files_in_folder(), 1u);
  EXPECT_EQ(use(key_for("e"), size), CacheUse::Hit);
  EXPECT_EQ(use(key_for("f"), size - 1), CacheUse::Miss);
  EXPECT_FALSE(fs::exists(entry(key_for("f")))) << "larger than the whole cache may be";
}

TEST_F(CacheFolderTest, WhatDeadProcessesLeftIsRemovedAfterAWhile) {
  use(key_for("a"));
  const fs::path old_file = folder() / "x.klap.host.1.2.tmp", old_lock = folder() / "x.lock";
  const fs::path new_file = folder() / "y.klap.host.1.2.tmp";
  for (const fs::path& file : {old_file, old_lock, new_file}) write_file(file, "x");
  for (const fs::path& file : {old_file, old_lock}) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  use(key_for("b"));
  EXPECT_FALSE(fs::exists(old_file));
  EXPECT_FALSE(fs::exists(old_lock));
  EXPECT_TRUE(fs::exists(new_file)) << "may still be written to";
}

TEST_F(CacheFolderTest, CleaningUpIsLeftToWhoeverDoesItAlready) {
  use(key_for("a"));
  const CacheFolder opened = CacheFolder::open(folder());
  CacheLock lock(opened, "clean-up.lock");
  ASSERT_EQ(lock.try_take(), CacheLock::Result::Taken);
  opened.trim(0);
  EXPECT_TRUE(fs::exists(entry(key_for("a"))));
}

}  // namespace
}  // namespace klap::jit
