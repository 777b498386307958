// The command line itself: help, version, and that whoever mistypes is told what is wrong, with exit code 2
// and nothing on standard output.
#include <gmock/gmock.h>

#include <sstream>

#include "command.h"

namespace klap::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Usage : public Command {
 protected:
  void expect_usage_error(const std::vector<std::string>& arguments, const std::string& message) {
    const Result result = klap_ptx(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("klap-ptx: "));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(result.err, HasSubstr("--help"));
  }
};

TEST_F(Usage, VersionIsTheProjects) {
  const Result result = klap_ptx({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "klap-ptx " KLAP_VERSION "\n");
}

TEST_F(Usage, HelpNamesSubcommandsExitCodesAndThePageOfSettings) {
  const Result result = klap_ptx({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* const word : {"inspect", "extract", "rewrite", "explain", "cache", "config", "settings",
                                 "reasons", "tune", "Exit codes", "klap-ptx settings"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
  const Result settings = klap_ptx({"settings"});
  for (const char* const word : {"KLAP_GRANULARITY", "KLAP_CONFIG", "[[kernel]] name"}) {
    EXPECT_THAT(settings.out, HasSubstr(word));
  }
}

TEST_F(Usage, EverySubcommandHasHelp) {
  for (const char* const subcommand :
       {"inspect", "extract", "rewrite", "explain", "config", "settings", "reasons"}) {
    const Result result = klap_ptx({subcommand, "--help"});
    EXPECT_EQ(result.exit_code, 0) << subcommand;
    EXPECT_THAT(result.out, HasSubstr("--json")) << subcommand;
  }
}

TEST_F(Usage, SubcommandIsRequired) {
  expect_usage_error({}, "a subcommand is required: inspect, extract, ");
}

TEST_F(Usage, UnknownSubcommandNamesTheNearest) {
  expect_usage_error({"explian", program("launches.ptx")},
                     "unknown subcommand 'explian'; did you mean 'explain'?");
}

TEST_F(Usage, SubcommandLikeNoOtherGetsTheList) {
  expect_usage_error(
      {"frobnicate"},
      "the subcommands are inspect, extract, rewrite, explain, cache, config, settings, reasons");
}

TEST_F(Usage, UnknownOption) {
  expect_usage_error({"inspect", program("launches.ptx"), "--bogus"}, "--bogus");
}

TEST_F(Usage, SecondFile) {
  expect_usage_error({"inspect", program("launches.ptx"), program("launches.o")}, "launches.o");
}

TEST_F(Usage, FileIsRequired) {
  for (const char* const subcommand : {"inspect", "explain"}) expect_usage_error({subcommand}, "FILE");
}

TEST_F(Usage, OutputIsRequired) {
  for (const char* const subcommand : {"extract", "rewrite"}) {
    expect_usage_error({subcommand, program("launches.ptx")}, "--output");
  }
}

TEST_F(Usage, UnknownGranularityListsTheKnownOnes) {
  expect_usage_error(
      {"explain", program("launches.ptx"), "--granularity", "gird"},
      "--granularity: granularity cannot be 'gird' (fix: did you mean 'grid'? use none | warp | "
      "block | multiblock | grid | auto)");
  expect_usage_error({"config", "--launcher", "guest"}, "use auto | host | device | fused | host-readback");
}

TEST_F(Usage, ComputeCapabilityMustBeOne) {
  expect_usage_error({"explain", program("launches.ptx"), "--sm", "sm_90"}, "--sm");
  expect_usage_error({"explain", program("launches.ptx"), "--sm", "9"}, "--sm");
}

TEST_F(Usage, OutputOfUnknownKindIsRefusedBeforeAnyWork) {
  expect_usage_error({"rewrite", program("launches.ptx"), "-o", path("out.bin")}, ".cubin or .ptx");
  EXPECT_FALSE(std::filesystem::exists(path("out.bin")));
}

TEST_F(Usage, FullDiskIsNotSuccess) {
  const Result result = command({"sh", "-c", KLAP_PTX " settings >/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
}

TEST_F(Usage, SettingsAsMarkdownAndJson) {
  EXPECT_THAT(klap_ptx({"settings", "--markdown"}).out, StartsWith("| Environment | Config file |"));
  const nlohmann::json rows = klap_ptx({"settings", "--json"}).json();
  ASSERT_GE(rows.size(), 7);
  EXPECT_EQ(rows[0]["variable"], "KLAP_GRANULARITY");
  EXPECT_EQ(rows[0]["default"], "auto");
  expect_usage_error({"settings", "--json", "--markdown"}, "excludes");
}

TEST_F(Usage, ReasonsAsTextMarkdownAndJson) {
  EXPECT_THAT(klap_ptx({"reasons"}).out, HasSubstr("  site-in-loop "));
  const std::string markdown = klap_ptx({"reasons", "--markdown"}).out;
  EXPECT_THAT(markdown, HasSubstr("| `site-in-loop` | the launch stands in a loop |"));
  EXPECT_THAT(markdown, HasSubstr("| `stream capture` | "));
  const nlohmann::json lists = klap_ptx({"reasons", "--json"}).json();
  EXPECT_EQ(lists["sites"][0]["reason"], "config-none");
  EXPECT_GT(lists["launches"].size(), 20);
  expect_usage_error({"reasons", "--json", "--markdown"}, "excludes");
}

class Config : public Command {};

TEST_F(Config, ShowsWhatIsInForceAndWhereItCameFrom) {
  const std::string file = write("klap.toml",
                                 "[defaults]\nlauncher = \"device\"\n"
                                 "[[kernel]]\nname = \"expand*\"\npool_bytes = \"64M\"\n");
  const std::vector<std::string> environment{"KLAP_CONFIG=" + file, "KLAP_LOG=error"};
  const auto row = [&](const std::vector<std::string>& arguments, const std::string& name) {
    const Result result = klap_ptx(arguments, environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string first, value, place;
      words >> first >> value >> std::ws;
      std::getline(words, place);
      if (first == name) return value + " from " + place;
    }
    return "no row " + name;
  };
  EXPECT_EQ(row({"config"}, "KLAP_LAUNCHER"), "device from " + file + ":2");
  EXPECT_EQ(row({"config"}, "KLAP_POOL_BYTES"), "1G from default");
  EXPECT_EQ(row({"config", "expand_all"}, "KLAP_POOL_BYTES"), "64M from " + file + ":5");
  EXPECT_EQ(row({"config", "other"}, "KLAP_POOL_BYTES"), "1G from default");
  EXPECT_EQ(row({"config", "--launcher", "host"}, "KLAP_LAUNCHER"), "host from command line");
  EXPECT_EQ(row({"config"}, "KLAP_LOG"), "error from environment");

  const nlohmann::json printed = klap_ptx({"config", "--json", "expand_all"}, environment).json();
  EXPECT_EQ(printed["kernel"], "expand_all");
  EXPECT_EQ(printed["problems"], nlohmann::json::array());
  EXPECT_EQ(printed["settings"][7]["key"], "pool_bytes");
  EXPECT_EQ(printed["settings"][7]["from"], "file");
}

TEST_F(Config, FileOfTheCommandLineMustExist) {
  const Result result = klap_ptx({"config", "--config", path("absent.toml")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("absent.toml: cannot open"));
}

}  // namespace
}  // namespace klap::cli_test
