// Settings: what each variable and key does, who wins, and what people are told about slips.
#include "settings/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>

#include "configs.h"
#include "settings/spelling.h"
#include "settings/table.h"
#include "support/file.h"

namespace klap::settings {
namespace {

using analysis::Granularity;
using analysis::Launcher;
using analysis::parse_granularity;
using analysis::parse_ordering;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class TemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "klap-config-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST(Environment, NothingSetGivesTheDefaults) {
  const Config config = from_environment({});
  EXPECT_FALSE(config.disabled);
  EXPECT_EQ(config.log_level, "warn");
  EXPECT_EQ(config.config_file, "");
  EXPECT_EQ(config.dump_dir, "");
  EXPECT_EQ(config.stats_file, "");
  EXPECT_EQ(config.log_file, "");
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
  EXPECT_EQ(launcher_of(config, kParent), Launcher::Auto);
  EXPECT_EQ(config.pool_bytes_for(kParent), uint64_t{1} << 30);
  EXPECT_THAT(config.problems, IsEmpty());
}

TEST(Environment, GroupsOfBlocksHaveASize) {
  EXPECT_EQ(multiblock_of(from_environment({}), kParent), kMultiBlock);
  EXPECT_EQ(multiblock_of(from_environment({{"KLAP_MULTIBLOCK", "3"}}), kParent), 3);
  EXPECT_EQ(multiblock_of(from_text("[defaults]\nmultiblock = 5\n"), kParent), 5);
  const Config wrong = from_environment({{"KLAP_MULTIBLOCK", "1"}});
  EXPECT_EQ(multiblock_of(wrong, kParent), kMultiBlock);
  EXPECT_THAT(wrong.problems,
              ElementsAre(HasSubstr("KLAP_MULTIBLOCK cannot be '1' (fix: use a number from 2")));
}

TEST(Environment, EmptyIsTheSameAsUnset) {
  const Config config = from_environment({{"KLAP_DISABLE", ""},
                                          {"KLAP_LOG", ""},
                                          {"KLAP_LOG_FILE", ""},
                                          {"KLAP_LAUNCHER", ""},
                                          {"KLAP_GRANULARITY", ""},
                                          {"KLAP_CONFIG", ""},
                                          {"KLAP_DUMP_DIR", ""},
                                          {"KLAP_STATS", ""}});
  EXPECT_FALSE(config.disabled);
  EXPECT_EQ(config.log_level, "warn");
  EXPECT_EQ(config.stats_file, "");
  EXPECT_THAT(config.problems, IsEmpty());
}

TEST(Environment, EveryVariableIsRead) {
  const Config config = from_environment({{"KLAP_LOG", "debug"},
                                          {"KLAP_LOG_FILE", "/tmp/log"},
                                          {"KLAP_GRANULARITY", "none"},
                                          {"KLAP_LAUNCHER", "device"},
                                          {"KLAP_DUMP_DIR", "/tmp/dump"},
                                          {"KLAP_STATS", "/tmp/stats.json"}});
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.log_file, "/tmp/log");
  EXPECT_EQ(granularity_of(config, kParent), Granularity::None);
  EXPECT_EQ(launcher_of(config, kParent), Launcher::Device);
  EXPECT_EQ(config.dump_dir, "/tmp/dump");
  EXPECT_EQ(config.stats_file, "/tmp/stats.json");
  EXPECT_THAT(config.problems, IsEmpty());
}

TEST(Environment, CacheSettingsAreRead) {
  const Config config = from_environment(
      {{"KLAP_CACHE_DIR", "kept"}, {"KLAP_CACHE_MAX_SIZE", "512M"}, {"KLAP_CACHE_DISABLE", "1"}});
  EXPECT_EQ(config.cache_dir, std::filesystem::current_path() / "kept");
  EXPECT_EQ(config.cache_max_bytes, 512u << 20);
  EXPECT_TRUE(config.cache_disabled);
  EXPECT_THAT(config.problems, IsEmpty());
}

TEST(Environment, TheCacheIsWhereTheUserKeepsCaches) {
  const auto folder = [](const std::map<std::string, std::string>& variables) {
    return from_environment(variables).cache_dir.string();
  };
  EXPECT_EQ(folder({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/caches"}}), "/caches/klap");
  EXPECT_EQ(folder({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "relative"}}), "/home/u/.cache/klap");
  EXPECT_EQ(folder({{"HOME", "/home/u"}, {"KLAP_CACHE_DIR", "/mine"}}), "/mine");
  EXPECT_EQ(folder({}), "");
}

TEST(Environment, ASizeThatIsNoneIsReportedAndLeavesTheDefault) {
  const Config config = from_environment({{"KLAP_CACHE_MAX_SIZE", "lots"}});
  EXPECT_EQ(config.cache_max_bytes, 1u << 30);
  EXPECT_THAT(config.problems,
              ElementsAre("KLAP_CACHE_MAX_SIZE cannot be 'lots' (fix: use bytes, as 4096, 64M or 1G)"));
}

TEST(Environment, DisableTakesTheUsualSpellings) {
  for (const char* const yes : {"1", "true", "yes", "on", "TRUE", "On"}) {
    EXPECT_TRUE(from_environment({{"KLAP_DISABLE", yes}}).disabled) << yes;
  }
  for (const char* const no : {"0", "false", "no", "off", "No"}) {
    const Config config = from_environment({{"KLAP_DISABLE", no}});
    EXPECT_FALSE(config.disabled) << no;
    EXPECT_THAT(config.problems, IsEmpty()) << no;
  }
}

TEST(Environment, DisableThatIsNeitherYesNorNoIsReportedAndLeavesTheDefault) {
  const Config config = from_environment({{"KLAP_DISABLE", "2"}});
  EXPECT_FALSE(config.disabled);
  EXPECT_THAT(config.problems, ElementsAre("KLAP_DISABLE cannot be '2' (fix: use 0 | 1)"));
}

TEST(Environment, MisspeltValueKeepsTheDefaultAndNamesTheNearest) {
  const Config config = from_environment({{"KLAP_GRANULARITY", "gird"}, {"KLAP_LOG", "wran"}});
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
  EXPECT_EQ(config.log_level, "warn");
  EXPECT_THAT(
      config.problems,
      ElementsAre("KLAP_GRANULARITY cannot be 'gird' (fix: did you mean 'grid'? use none | warp | block | "
                  "multiblock | grid | auto)",
                  "KLAP_LOG cannot be 'wran' (fix: did you mean 'warn'? use trace | debug | info | warn | "
                  "error | off)"));
}

TEST(Environment, RelativePathsAreFixedToTheFolderOfTheStart) {
  const Config config = from_environment({{"KLAP_STATS", "out/stats.json"}, {"KLAP_DUMP_DIR", "dump"}});
  EXPECT_EQ(config.stats_file, std::filesystem::current_path() / "out/stats.json");
  EXPECT_EQ(config.dump_dir, std::filesystem::current_path() / "dump");
  EXPECT_EQ(from_environment({{"KLAP_STATS", "-"}}).stats_file, "-");
}

TEST(Environment, MisspeltVariableOfTheProcessIsReportedAndStrangersAreNot) {
  setenv("KLAP_GRANULARTY", "none", 1);
  setenv("KLAP_SOMETHING_OF_ANOTHER_PROGRAM", "1", 1);
  const Config config = load_config();
  unsetenv("KLAP_GRANULARTY");
  unsetenv("KLAP_SOMETHING_OF_ANOTHER_PROGRAM");
  EXPECT_THAT(config.problems, ElementsAre("KLAP_GRANULARTY: unknown environment variable (fix: did you mean "
                                           "KLAP_GRANULARITY?)"));
}

TEST_F(TemporaryFolder, EnvironmentBeatsTheFileAndTheFileBeatsTheDefault) {
  const std::string file = (folder_ / "klap.toml").string();
  write_file(
      file,
      "[defaults]\ngranularity = \"none\"\n[[kernel]]\nname = \"_Z6parentPii\"\ngranularity = \"grid\"\n");
  const Config config = from_environment({{"KLAP_CONFIG", file}});
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Grid);
  EXPECT_EQ(granularity_of(config, "_Z5otherv"), Granularity::None);
  const Config both = from_environment({{"KLAP_CONFIG", file}, {"KLAP_GRANULARITY", "none"}});
  EXPECT_EQ(granularity_of(both, kParent), Granularity::None);
}

TEST(Tuned, GivesWayToTheWholeFile) {
  const auto tuned = [](Config config) {
    const std::string text =
        "[defaults]\nlauncher = \"device\"\n[[kernel]]\nname = \"_Z6parentPii\"\n"
        "granularity = \"block\"\n";
    EXPECT_TRUE(apply_tuned_text(config, text, "test.tuned").empty());
    return config;
  };
  const Config alone = tuned(from_text(""));
  EXPECT_EQ(granularity_of(alone, kParent), Granularity::Block);
  EXPECT_EQ(granularity_of(alone, "_Z5otherv"), Granularity::Auto);
  EXPECT_EQ(launcher_of(alone, kParent), Launcher::Auto) << "only what it says of kernels";
  EXPECT_EQ(granularity_of(tuned(from_text("[defaults]\ngranularity = \"warp\"\n")), kParent),
            Granularity::Warp);
  EXPECT_EQ(granularity_of(tuned(from_text("[[kernel]]\nname = \"*\"\ngranularity = \"grid\"\n")), kParent),
            Granularity::Grid);
}

TEST_F(TemporaryFolder, MissingConfigFileIsOneProblem) {
  const std::string file = (folder_ / "absent.toml").string();
  const Config config = from_environment({{"KLAP_CONFIG", file}});
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
  EXPECT_THAT(config.problems,
              ElementsAre(file + ": cannot open: No such file or directory (fix: KLAP_CONFIG names "
                                 "this file)"));
}

TEST_F(TemporaryFolder, FolderAsConfigFileIsOneProblem) {
  const Config config = from_environment({{"KLAP_CONFIG", folder_.string()}});
  EXPECT_THAT(config.problems, ElementsAre(HasSubstr("is a folder")));
}

TEST(File, KernelsAreMatchedByMangledAndByDemangledName) {
  EXPECT_EQ(granularity_of(from_text("[[kernel]]\nname = \"_Z6parent*\"\ngranularity = \"none\"\n"), kParent),
            Granularity::None);
  EXPECT_EQ(granularity_of(from_text("[[kernel]]\nname = \"parent(*\"\ngranularity = \"none\"\n"), kParent),
            Granularity::None);
  EXPECT_EQ(granularity_of(from_text("[[kernel]]\nname = \"parent\"\ngranularity = \"none\"\n"), kParent),
            Granularity::Auto)
      << "a glob is for the whole name";
}

TEST(File, EveryKeyHasItsValueAndItsPlace) {
  const Config config = from_text(R"([defaults]
launcher = "device"
pool_bytes = 4096
[[kernel]]
name = "parent(*"
launcher = "host"
pool_bytes = "64M"
)");
  EXPECT_THAT(config.problems, IsEmpty());
  EXPECT_EQ(launcher_of(config, kParent), Launcher::Host);
  EXPECT_EQ(launcher_of(config, "_Z5otherv"), Launcher::Device);
  EXPECT_EQ(config.pool_bytes_for(kParent), uint64_t{64} << 20);
  EXPECT_EQ(config.pool_bytes_for("_Z5otherv"), 4096);

  const std::string kernel = kParent;
  const Setting& pool = *find_key(Section::Kernel, "pool_bytes");
  EXPECT_EQ(config.value(pool, &kernel).place, "klap.toml:7");
  EXPECT_EQ(config.value(pool).place, "klap.toml:3");
  EXPECT_EQ(config.value(pool).from, Value::From::File);
  const Value granularity = config.value(*find_variable("KLAP_GRANULARITY"), &kernel);
  EXPECT_EQ(granularity.text, "auto");
  EXPECT_EQ(granularity.from, Value::From::Default);
}

TEST(Environment, ValuesOfItSaySo) {
  const Config config = from_environment({{"KLAP_LAUNCHER", "device"}, {"KLAP_LOG", "nonsense"}});
  EXPECT_EQ(config.value(*find_variable("KLAP_LAUNCHER")).place, "environment");
  EXPECT_EQ(config.value(*find_variable("KLAP_LOG")).from, Value::From::Default)
      << "what is wrong does not count";
}

TEST(File, FirstMatchingTableThatHasTheSettingWins) {
  const Config config = from_text(R"(
[[kernel]]
name = "*par*"
[[kernel]]
name = "*parent*"
granularity = "none"
[[kernel]]
name = "*"
granularity = "grid"
)");
  EXPECT_THAT(config.problems, IsEmpty());
  EXPECT_EQ(granularity_of(config, kParent), Granularity::None);
  EXPECT_EQ(granularity_of(config, "_Z5otherv"), Granularity::Grid);
  ASSERT_EQ(config.kernels.size(), 3);
  EXPECT_EQ(config.kernels[1].line, 4);
}

TEST(File, ATableWithAChildIsForItsLaunchesOnly) {
  const Config config = from_text(R"(
[[kernel]]
name = "parent(*"
child = "small(*"
granularity = "warp"
[[kernel]]
name = "parent(*"
granularity = "block"
[[kernel]]
name = "parent(*"
child = "small(*"
)");
  const std::string parent = kParent, small = "_Z5smallv", other = "_Z5otherv";
  const Setting& granularity = *find_key(Section::Kernel, "granularity");
  EXPECT_EQ(config.value(granularity, &parent, &small).text, "warp");
  EXPECT_EQ(config.value(granularity, &parent, &other).text, "block");
  EXPECT_EQ(config.value(granularity, &parent).text, "block") << "not about a launch";
  EXPECT_EQ(config.setting_for("granularity", parent, small)->place, "config file");
  EXPECT_EQ(config.setting_for("launcher", parent, small), std::nullopt);
  EXPECT_THAT(config.problems,
              ElementsAre(StartsWith("klap.toml:9:1: a second [[kernel]] named 'parent(*'")));
}

TEST(File, ATableWithAChildHasNoKeyOfAllLaunches) {
  const Config config = from_text("[[kernel]]\nname = \"*\"\nchild = \"*\"\npool_bytes = 4096\n");
  EXPECT_THAT(config.problems,
              ElementsAre("klap.toml:1:1: 'pool_bytes' is for all launches of a kernel, not for "
                          "those of one child (fix: put it into a table without child)"));
  EXPECT_EQ(config.pool_bytes_for(kParent), uint64_t{1} << 30);
  const Config both =
      from_text("[[kernel]]\nname = \"*\"\nchild = \"*\"\npool_bytes = 4096\nbuffer = \"malloc\"\n");
  EXPECT_THAT(both.problems, ElementsAre(testing::HasSubstr("'buffer' is for all launches of a kernel"),
                                         testing::HasSubstr("'pool_bytes' is for all launches of a kernel")));
  EXPECT_EQ(both.setting_for("buffer", kParent, "child"), std::nullopt);
}

TEST(Settings, WinOverWhatTheProgramIsAnnotatedWith) {
  EXPECT_EQ(from_text("").pool_bytes_for(kParent, 4096), 4096);
  EXPECT_EQ(from_text("[defaults]\npool_bytes = 8192\n").pool_bytes_for(kParent, 4096), 8192);
  EXPECT_EQ(from_text("").concurrency_for(kParent, "child", 16), 16);
  EXPECT_EQ(from_text("").concurrency_for(kParent, "child"), 1);
  EXPECT_EQ(from_environment({{"KLAP_CONCURRENCY", "1"}}).concurrency_for(kParent, "child", 16), 1);
}

TEST(Settings, AllQueuesTogetherHaveNoLimitUnlessOneIsGiven) {
  EXPECT_EQ(from_text("").total_bytes(), ~uint64_t{0});
  EXPECT_EQ(from_environment({{"KLAP_TOTAL_BYTES", "64M"}}).total_bytes(), 64u << 20);
  EXPECT_EQ(from_text("[defaults]\ntotal_bytes = 4096\n").total_bytes(), 4096);
}

TEST(File, ProblemsNamePlaceKeyAndNearestInTheOrderOfTheFile) {
  const Config config = from_text(R"([kernels]
[defaults]
granularty = "grid"
granularity = "Grid"
)");
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
  EXPECT_THAT(
      config.problems,
      ElementsAre(
          "klap.toml:1:2: unknown table 'kernels' (fix: did you mean 'kernel'? use one of: defaults, "
          "kernel)",
          "klap.toml:3:1: unknown key 'granularty' in [defaults] (fix: did you mean 'granularity'? "
          "use one of: granularity, launcher, ordering, threshold, promotion, assume, aggregate_malloc, "
          "pool_bytes, total_bytes, concurrency, optimise, multiblock, buffer, consumer_threads, pool)",
          "klap.toml:4:15: granularity cannot be 'Grid' (fix: did you mean 'grid'? use none | "
          "warp | block | multiblock | grid | auto)"));
}

TEST(File, WrongValueKeepsTheDefaultOfThatSettingOnly) {
  const Config config = from_text(R"(
[defaults]
granularity = "none"
[[kernel]]
name = "_Z6parentPii"
granularity = "all"
[[kernel]]
name = "_Z5otherv"
granularity = "grid"
)");
  EXPECT_THAT(config.problems, ElementsAre(StartsWith("klap.toml:6:15: granularity cannot be 'all'")));
  EXPECT_EQ(granularity_of(config, kParent), Granularity::None);
  EXPECT_EQ(granularity_of(config, "_Z5otherv"), Granularity::Grid);
}

TEST(File, ValueThatIsNoStringIsReported) {
  const Config config = from_text("[defaults]\ngranularity = 1\n");
  EXPECT_THAT(config.problems, ElementsAre("klap.toml:2:15: 'granularity' must be a string (fix: use none | "
                                           "warp | block | multiblock | grid | auto, in quotes)"));
}

TEST(File, NameIsOnlyForKernels) {
  const Config config = from_text("[defaults]\nname = \"x\"\n");
  EXPECT_THAT(config.problems, ElementsAre(StartsWith("klap.toml:2:1: unknown key 'name' in [defaults]")));
}

TEST(File, KernelWithoutNameIsReportedAndIgnored) {
  const Config config = from_text("[[kernel]]\ngranularity = \"none\"\n");
  EXPECT_THAT(config.problems,
              ElementsAre("klap.toml:1:1: [[kernel]] without a name (fix: add name = \"GLOB\")"));
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
}

TEST(File, EmptyNameIsReportedAndIgnored) {
  const Config config = from_text("[[kernel]]\nname = \"\"\ngranularity = \"none\"\n");
  EXPECT_THAT(config.problems, ElementsAre("klap.toml:2:8: name cannot be '' (fix: use glob)"));
  EXPECT_THAT(config.kernels, IsEmpty());
}

TEST(File, TheOtherKindOfBracketIsExplained) {
  EXPECT_THAT(from_text("[kernel]\nname = \"x\"\n").problems,
              ElementsAre("klap.toml:1:1: 'kernel' is not a list of tables (fix: write [[kernel]])"));
  EXPECT_THAT(from_text("[[defaults]]\n").problems,
              ElementsAre("klap.toml:1:1: 'defaults' is not a table (fix: write [defaults])"));
  EXPECT_THAT(from_text("kernel = []\n").problems, ElementsAre(HasSubstr("write [[kernel]]")));
}

TEST(File, SyntaxErrorHasItsPlaceAndChangesNothing) {
  const Config config = from_text("[defaults]\ngranularity = \"none\"\n[[kernel]\nname = \"x\"\n");
  EXPECT_THAT(config.problems, ElementsAre(StartsWith("klap.toml:3:10: not valid TOML: ")));
  EXPECT_EQ(config.problems[0].find('\n'), std::string::npos) << "one line each";
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
}

TEST(File, BytesThatAreNotUtf8AreASyntaxError) {
  EXPECT_THAT(from_text("[defaults]\n\xff\xfe = 1\n").problems, ElementsAre(HasSubstr("not valid TOML")));
}

TEST(File, EmptyFileIsFine) {
  EXPECT_THAT(from_text("").problems, IsEmpty());
  EXPECT_THAT(from_text("# only a comment\n").problems, IsEmpty());
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_TRUE(glob_match("a*c", "abcbc"));
  EXPECT_FALSE(glob_match("a*c", "abcb"));
  EXPECT_TRUE(glob_match("**b**", "abc"));
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match("abc", "abcd"));
  EXPECT_FALSE(glob_match("Abc", "abc"));
}

TEST(Glob, BracketsAreOrdinaryCharacters) {
  EXPECT_TRUE(glob_match("f<int[2]>*", "f<int[2]>(int*)"));
  EXPECT_FALSE(glob_match("f[ab]", "fa"));
}

TEST(Glob, ManyStarsStayFast) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(2000, 'a')));
}

TEST(Spelling, NearestIgnoresCaseAndGivesUpOnStrangers) {
  EXPECT_EQ(nearest("GRID", {"none", "grid"}), "grid");
  EXPECT_EQ(nearest("grids", {"none", "grid"}), "grid");
  EXPECT_EQ(nearest("consolidate", {"none", "grid"}), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace klap::settings
