// The command line of klap: help, and the subcommands that are klap-ptx's.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Words = std::vector<std::string>;

class Front : public OnEmulator {
 protected:
  // A page of the terminal, with examples at its end.
  void expect_short_help(const std::string& program, Words words, std::ptrdiff_t most_lines) {
    words.insert(words.begin(), program);
    words.emplace_back("--help");
    const Result result = command(words);
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_LE(std::ranges::count(result.out, '\n'), most_lines);
    EXPECT_THAT(result.out, HasSubstr("\nExamples:\n  klap"));
    EXPECT_EQ(result.out.find("KLAP_LAUNCHER"), std::string::npos) << "settings have a page of their own";
  }
};

TEST_F(Front, HelpIsShort) {
  constexpr std::ptrdiff_t kPage = 30, kLongest = 34;
  for (const Words& words :
       {Words{}, Words{"run"}, Words{"doctor"}, Words{"report"}, Words{"explain"}, Words{"tune"},
        Words{"cache"}, Words{"config"}, Words{"settings"}, Words{"reasons"}})
    expect_short_help(KLAP, words, kPage);
  for (const Words& words :
       {Words{}, Words{"extract"}, Words{"rewrite"}, Words{"explain"}, Words{"tune"}, Words{"cache"},
        Words{"cache", "warm"}, Words{"cache", "ls"}, Words{"config"}, Words{"settings"}, Words{"reasons"}})
    expect_short_help(KLAP_PTX, words, kPage);
  expect_short_help(KLAP_PTX, {"inspect"}, kLongest);  // a line for each analysis
}

TEST_F(Front, VersionIsTheProjects) { EXPECT_EQ(klap({"--version"}).out, "klap " KLAP_VERSION "\n"); }

TEST_F(Front, SubcommandsOfKlapPtxAreTheSame) {
  const std::string file = program("launches.ptx");
  for (const Words& words :
       {Words{"explain", file}, Words{"explain", file, "--json", "--granularity", "block"}, Words{"config"},
        Words{"settings", "--markdown"}, Words{"reasons"}, Words{"cache", "ls"}}) {
    const Result theirs = klap_ptx(words, driver()), ours = klap(words);
    EXPECT_EQ(ours.exit_code, 0) << ours.err;
    EXPECT_EQ(ours.out, theirs.out);
  }
}

TEST_F(Front, MessagesNameTheProgram) {
  EXPECT_THAT(klap({"explain", path("absent")}).err, StartsWith("klap: "));
  EXPECT_THAT(klap({"config"}, {"KLAP_GRANULARITY=gird"}).err, StartsWith("klap: warning: "));
  EXPECT_THAT(klap_ptx({"config"}, {"KLAP_GRANULARITY=gird"}).err, StartsWith("klap-ptx: warning: "));
}

TEST_F(Front, MisspeltWordsGetTheNearestOne) {
  const auto expect_usage_error = [](const Result& result, const std::string& message) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  expect_usage_error(klap({}), "subcommand is required");
  expect_usage_error(klap({"docter"}), "unknown subcommand 'docter'; did you mean 'doctor'?");
  expect_usage_error(klap({"frobnicate"}),
                     "the subcommands are run, explain, doctor, report, tune, cache, config, "
                     "settings, reasons\n");
  expect_usage_error(klap({"explain", "x", "--granularty=grid"}), "did you mean --granularity?");
  expect_usage_error(klap_ptx({"inspect", "x", "--lops"}), "did you mean --loops?");
}

TEST_F(Front, TuneTakesAProgramAsRunDoes) {
  const Result result =
      klap({"tune", "--runs", "1", "--samples", "0", "--counters", "none", "sh", "-c", "exit 3"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("klap tune: natively "));
  EXPECT_THAT(result.err, HasSubstr("exit code 3"));
}

}  // namespace
}  // namespace klap::cli_test
