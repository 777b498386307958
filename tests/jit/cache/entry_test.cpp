// Entries: what is kept comes back, and whatever is not exactly what was written is built again, never used.
#include <sys/stat.h>

#include <cstdlib>
#include <set>

#include "fixture.h"
#include "jit/cache/cache_key.h"
#include "runtime/load/module_cache.h"
#include "support/error.h"
#include "support/file.h"
#include "support/hash.h"
#include "tests/settings/given.h"

namespace klap::jit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string with_new_checksum(std::string bytes) {
  bytes.resize(bytes.size() - 16);
  const auto hash = content_hash(bytes);
  return bytes.append(reinterpret_cast<const char*>(hash.data()), sizeof hash);
}

TEST_F(Cache, SecondUseIsAHitWithEveryField) {
  const CacheKey key = key_for("a");
  EXPECT_EQ(use(key), CacheUse::Miss);
  EXPECT_EQ(use(key), CacheUse::Hit);
  EXPECT_EQ(use(key_for("b")), CacheUse::Miss);
  EXPECT_EQ(builds_, 2);
  const CacheEntry kept = decode(read_file(entry(key)));
  EXPECT_EQ(kept.key, key.text);
  EXPECT_EQ(kept.module.cubin, module_for(key).cubin);
  EXPECT_EQ(kept.module.variants.at(1).queues.at(0).child_block_threads, 6u);
  EXPECT_EQ(kept.module.variants.at(1).queues.at(0).child_shared_bytes, 7u);
  EXPECT_EQ(kept.module.variants.at(1).queues.at(0).others.at(0).name, "third child");
  EXPECT_EQ(kept.module.variants.at(1).queues.at(0).others.at(0).block_threads, 9u);
  ASSERT_EQ(kept.module.variants.at(1).queues.at(0).following.size(), 1u);
  const FollowingBlock& following = kept.module.variants.at(1).queues.at(0).following.front();
  EXPECT_EQ(following.kernel, "fourth child");
  EXPECT_EQ(following.block, (std::array<uint32_t, 3>{17, 0, 18}));
  EXPECT_TRUE(following.fills);
  EXPECT_FALSE(following.full_warps);
  ASSERT_EQ(kept.module.variants.at(1).queues.at(0).bounds.size(), 1u);
  const ThreadBound& bound = kept.module.variants.at(1).queues.at(0).bounds.front();
  EXPECT_EQ(bound.block, (std::array<uint32_t, 3>{23, 24, 25}));
  EXPECT_EQ(bound.or_parents, (std::array<bool, 3>{true, false, true}));
  EXPECT_EQ(bound.threads, 26u);
  EXPECT_EQ(kept.module.variants.at(1).queues.at(1).child, "other child");
  EXPECT_EQ(kept.module.variants.at(0).launcher, Launcher::Device);
  EXPECT_EQ(kept.module.variants.at(0).block, (std::array<uint32_t, 3>{0, 19, 20}));
  EXPECT_EQ(kept.module.variants.at(0).grid, (std::array<uint32_t, 3>{21, 22, 0}));
  EXPECT_TRUE(kept.module.variants.at(0).in_slices);
  EXPECT_TRUE(kept.module.variants.at(0).consumers_await);
  EXPECT_TRUE(kept.module.variants.at(0).parent_waits);
  EXPECT_TRUE(kept.module.variants.at(0).stops);
  EXPECT_FALSE(kept.module.variants.at(2).consumers_await);
  EXPECT_EQ(kept.module.variants.at(0).buffer, Buffer::Malloc);
  ASSERT_EQ(kept.module.variants.at(0).shared_limits.size(), 1u);
  EXPECT_EQ(kept.module.variants.at(0).shared_limits.front().kernel, "fifth child");
  EXPECT_FALSE(kept.module.variants.at(0).promoted);
  const Variant& chain = kept.module.variants.at(2);
  ASSERT_TRUE(chain.promoted);
  EXPECT_EQ(chain.promoted->mode, "PAO");
  EXPECT_EQ(chain.promoted->block, (std::array<uint32_t, 3>{10, 11, 12}));
  EXPECT_EQ(chain.promoted->shared_bytes, 13u);
  EXPECT_EQ(chain.promoted->slot_bytes, 14u);
  EXPECT_EQ(chain.pool, 15u);
  EXPECT_EQ(chain.concurrency, 16u);
  EXPECT_EQ(kept.module.remarks.at(0).notes, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(kept.module.remarks.at(0).source.file, "a.cu");
  EXPECT_EQ(kept.module.remarks.at(0).source.column, 3);
  EXPECT_EQ(kept.module.remarks.at(0).brief, "brief");
  EXPECT_EQ(kept.module.remarks.at(0).facts.at(0).value, "32x1x1");
  EXPECT_EQ(kept.module.remarks.at(1).reason, "site-in-loop");
  EXPECT_EQ(files_in_folder(), 2u) << "nothing but entries stays behind";
}

TEST_F(Cache, TruncatedAtEveryLengthIsDamaged) {
  const CacheKey key = key_for("a");
  use(key);
  const std::string good = read_file(entry(key));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THROW(decode(good.substr(0, length)), Error) << length;
  }
  for (size_t length = 0; length < good.size(); length += 17) {
    write_file(entry(key), good.substr(0, length));
    EXPECT_EQ(use(key), CacheUse::Damaged) << length;
    EXPECT_EQ(use(key), CacheUse::Hit) << "built again after " << length;
  }
}

TEST_F(Cache, EveryFlippedBitIsDamaged) {
  const CacheKey key = key_for("a");
  use(key);
  const std::string good = read_file(entry(key));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(decode(bad), Error) << bit;
    if (bit % 101 != 0) continue;
    write_file(entry(key), bad);
    EXPECT_EQ(use(key), CacheUse::Damaged) << bit;
  }
  EXPECT_THROW(decode(good + "x"), Error);
  EXPECT_NO_THROW(decode(good));
}

// The checksum keeps accidents out, not intent; still, no bytes may do more than be refused.
TEST_F(Cache, NonsenseWithARightChecksumIsRefusedOrRead) {
  const std::string good = encode(CacheEntry{"key", 90, {}, "", module_for(key_for("a"))});
  int refused = 0;
  for (size_t at = 0; at + 16 < good.size(); ++at) {
    for (const char byte : {'\x00', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[at] = byte;
      try {
        decode(with_new_checksum(bad));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100) << "lengths are among the bytes";
}

TEST_F(Cache, AnotherFormatVersionIsNotRead) {
  const CacheKey key = key_for("a");
  use(key);
  std::string bytes = read_file(entry(key));
  EXPECT_EQ(with_new_checksum(bytes), bytes) << "the test knows where the checksum is";
  ++bytes[8];
  write_file(entry(key), with_new_checksum(bytes));
  EXPECT_EQ(use(key), CacheUse::Damaged);
  EXPECT_EQ(use(key), CacheUse::Hit);
}

TEST_F(Cache, AnEntryUnderAnotherNameIsNotUsed) {
  const CacheKey a = key_for("a"), b = key_for("b");
  use(a);
  fs::copy_file(entry(a), entry(b));
  EXPECT_EQ(use(b), CacheUse::Damaged);  // use() checks that b's module came back
  EXPECT_EQ(use(b), CacheUse::Hit);
  EXPECT_EQ(use(a), CacheUse::Hit);
}

TEST_F(Cache, ALinkOrAFolderInPlaceOfAnEntryIsNotUsed) {
  const CacheKey a = key_for("a"), b = key_for("b"), c = key_for("c");
  use(a);
  fs::create_symlink(entry(a), entry(b));
  EXPECT_EQ(use(b), CacheUse::Miss);
  EXPECT_EQ(use(b), CacheUse::Hit) << "the link was replaced";
  fs::create_directory(entry(c));
  EXPECT_EQ(use(c), CacheUse::Miss);
}

TEST_F(Cache, EntriesOfAChangedToolchainAreOutdated) {
  const CacheKey key = key_for("a");
  const fs::path library = base_ / "libnvrtc.so.13";
  write_file(library, "version one");
  use(key);
  CacheEntry made = decode(read_file(entry(key)));
  made.tools = {
      {.library = "nvJitLink", .version = "13.0", .path = library.string(), .bytes = 3, .modified = 4}};
  write_file(entry(key), encode(made));
  EXPECT_EQ(use(key), CacheUse::Outdated);
  EXPECT_EQ(use(key), CacheUse::Hit);
  write_file(entry(key), encode(made));
  fs::remove(library);
  EXPECT_EQ(use(key), CacheUse::Hit) << "a library that is gone is no reason to want it";
}

TEST_F(Cache, AnotherToolchainIsNoticedByLookingAtFiles) {
  const fs::path before = base_ / "before.so", other = base_ / "libs" / "libnvrtc.so.12";
  write_file(before, "version one");
  make_folder(other.parent_path());
  write_file(other, "version two, longer");
  ToolFile tool{"nvrtc", "13.0", before.string(), fs::file_size(before), 0};
  struct stat status {};
  ASSERT_EQ(stat(before.c_str(), &status), 0);
  tool.modified = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  const auto changed_with = [&](const char* variable, const std::string& value) {
    return in_process([&] {
      setenv(variable, value.c_str(), 1);
      return toolchain_changed({tool}) ? 1 : 0;
    });
  };
  EXPECT_FALSE(toolchain_changed({tool}));
  EXPECT_EQ(changed_with("KLAP_NVRTC", before.string()), 0);
  EXPECT_EQ(changed_with("KLAP_NVRTC", other.string()), 1);
  EXPECT_EQ(changed_with("KLAP_NVRTC", "/nowhere"), 0);
  EXPECT_EQ(changed_with("KLAP_NVJITLINK", other.string()), 0) << "the other library";
  EXPECT_EQ(changed_with("LD_LIBRARY_PATH", "/nowhere:" + other.parent_path().string()), 1);
  write_file(before, "version 1.1");  // of the same size
  EXPECT_TRUE(toolchain_changed({tool}));
}

TEST_F(Cache, EntriesForOtherDecisionsAreOutdated) {
  const CacheKey key = key_for("a");
  use(key);
  Request request;
  request.setting = test::given({{"granularity", "none"}});
  DiskCache cache({.folder = folder()});
  const auto build = [&] { return module_for(key); };
  EXPECT_EQ(cache.find_or_build(key, request, build).cache, CacheUse::Outdated);
  EXPECT_EQ(cache.find_or_build(key, request, build).cache, CacheUse::Hit);
}

TEST_F(Cache, ASiteThatFailedToLinkIsTriedAgain) {
  const CacheKey key = key_for("a");
  DiskCache cache({.folder = folder()});
  const auto build = [&] {
    RewrittenModule module = module_for(key);
    module.remarks.back().reason = "build-failed";
    return module;
  };
  EXPECT_EQ(cache.find_or_build(key, {}, build).cache, CacheUse::Miss);
  EXPECT_EQ(cache.find_or_build(key, {}, build).cache, CacheUse::Miss);
}

TEST_F(Cache, AFailedBuildIsPassedOnAndNotKept) {
  DiskCache cache({.folder = folder()});
  const auto fail = []() -> RewrittenModule { throw Error(ErrorCode::Link, "no"); };
  EXPECT_THROW(cache.find_or_build(key_for("a"), {}, fail), Error);
  EXPECT_EQ(use(key_for("a")), CacheUse::Miss);
}

TEST(CacheKey, SettingsThatDecideAboutKernelsAreInIt) {
  const auto settings = [](const std::string& text, const char* granularity = nullptr) {
    settings::Config config = settings::load_config([&](const char* name) {
      return std::string_view(name) == "KLAP_GRANULARITY" ? granularity : nullptr;
    });
    settings::apply_config_text(config, text, "test.toml");
    EXPECT_TRUE(config.problems.empty());
    return settings::canonical_text(config);
  };
  const std::string table = "[[kernel]]\nname = \"a*\"\ngranularity = \"none\"\n";
  EXPECT_NE(settings(""), settings(table));
  EXPECT_NE(settings(table), settings("[[kernel]]\nname = \"b*\"\ngranularity = \"none\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\ngranularity = \"none\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\nlauncher = \"device\"\n"));
  EXPECT_NE(settings(""), settings("", "none"));
  EXPECT_EQ(settings(table, "auto"), settings("", "auto")) << "the environment decides for all kernels";
  EXPECT_NE(settings("", "auto"), settings("")) << "remarks say who asked";
  EXPECT_NE(settings(table), settings(table + "child = \"b\"\n"));
  for (const char* const key : {"pool_bytes", "total_bytes", "concurrency", "pool"}) {
    EXPECT_EQ(settings(""), settings(std::string("[defaults]\n") + key + " = 4096\n")) << "changes no code";
  }
  EXPECT_NE(settings(""), settings("[defaults]\nconsumer_threads = 512\n"));
  EXPECT_NE(settings(""), settings("[defaults]\noptimise = \"-pack_records\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\nthreshold = \"off\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\nbuffer = \"malloc\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\npromotion = \"PA\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\nassume = \"noalias\"\n"));
  EXPECT_NE(settings(""), settings("[defaults]\naggregate_malloc = \"warp\"\n"));
}

}  // namespace
}  // namespace klap::jit
