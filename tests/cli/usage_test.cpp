// The command line itself: help, version, and that whoever mistypes is told what is wrong, with exit code 2
// and nothing on standard output.
#include <gmock/gmock.h>

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

TEST_F(Usage, HelpNamesSubcommandsExitCodesAndSettings) {
  const Result result = klap_ptx({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* const word : {"inspect", "extract", "rewrite", "explain", "cache", "settings",
                                 "Exit codes", "KLAP_GRANULARITY", "KLAP_CONFIG", "[[kernel]] name"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

TEST_F(Usage, EverySubcommandHasHelp) {
  for (const char* const subcommand : {"inspect", "extract", "rewrite", "explain", "settings"}) {
    const Result result = klap_ptx({subcommand, "--help"});
    EXPECT_EQ(result.exit_code, 0) << subcommand;
    EXPECT_THAT(result.out, HasSubstr("--json")) << subcommand;
  }
}

TEST_F(Usage, SubcommandIsRequired) { expect_usage_error({}, "subcommand is required"); }

TEST_F(Usage, UnknownSubcommandNamesTheNearest) {
  expect_usage_error({"explian", program("launches.ptx")},
                     "unknown subcommand 'explian'; did you mean 'explain'?");
}

TEST_F(Usage, SubcommandLikeNoOtherGetsTheList) {
  expect_usage_error({"frobnicate"},
                     "the subcommands are inspect, extract, rewrite, explain, cache, settings");
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
  expect_usage_error({"explain", program("launches.ptx"), "--granularity", "gird"}, "{none,grid}");
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
  EXPECT_EQ(rows[0]["default"], "grid");
  expect_usage_error({"settings", "--json", "--markdown"}, "excludes");
}

}  // namespace
}  // namespace klap::cli_test
