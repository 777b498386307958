// Which settings klap-ptx tune chooses, the file it writes, and how it runs a program.
#include "klap_ptx/tune/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "klap_ptx/tune/config_text.h"
#include "klap_ptx/tune/program_run.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {
namespace {

TEST(TuneChoice, TakesTheFastestOfEachKernel) {
  const SettingTimes defaults = {{{"a", 1.0}, {"b", 1.0}}};
  const std::vector<SettingTimes> settings = {{{{"a", 0.8}, {"b", 2.0}}}, {{{"a", 0.7}, {"b", 0.98}}}};
  const std::vector<Choice> choices = choose(defaults, settings, {"x", "y"});
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].setting, 1u);
  EXPECT_EQ(choices[0].best_ms, 0.7);
  EXPECT_EQ(choices[1].setting, std::nullopt) << "two percent are no more than runs differ";
  EXPECT_EQ(choices[1].best_ms, 1.0);
}

// Only settings of different keys can be in force together, and only those that help by themselves are tried.
TEST(TuneChoice, HasASecondSettingOfAnotherKey) {
  const std::vector<SettingTimes> settings = {
      {{{"a", 0.7}, {"b", 0.7}}}, {{{"a", 0.6}, {"b", 0.6}}}, {{{"a", 0.9}, {"b", 0.99}}}};
  std::vector<Choice> choices = choose({{{"a", 1.0}, {"b", 1.0}}}, settings, {"x", "x", "y"});
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].setting, 1u);
  EXPECT_EQ(choices[0].second, 2u);
  EXPECT_EQ(choices[1].setting, 1u);
  EXPECT_EQ(choices[1].second, std::nullopt);
}

TEST(TuneChoice, HasNoSecondSettingBesideTheOriginal) {
  const SettingTimes defaults = {{{"a", 1.0}, {"b", 1.0}}};
  const std::vector<SettingTimes> settings = {
      {{{"a", 0.5}, {"b", 0.7}}}, {{{"a", 0.6}, {"b", 0.6}}}, {{{"a", 0.7}, {"b", 0.8}}}};
  const std::vector<Choice> choices = choose(defaults, settings, {"", "x", "y"});
  EXPECT_EQ(choices.at(0).setting, 0u);
  EXPECT_EQ(choices.at(0).second, std::nullopt);
  EXPECT_EQ(choices.at(1).setting, 1u);
  EXPECT_EQ(choices.at(1).second, 2u) << "the original is better by itself, but goes with nothing";
}

TEST(TuneChoice, KeepsPairsThatSaveMore) {
  std::vector<Choice> choices = {
      {"a", 1, 0, 0.5, 1}, {"b", 1, 0, 0.5, 1}, {"c", 1, 0, 0.5, 1}, {"d", 1, 0, 0.5, std::nullopt}};
  keep_pairs(choices, {{{"a", 0.4}, {"b", 0.495}, {"d", 0.1}}});
  EXPECT_EQ(choices[0].second, 1u);
  EXPECT_EQ(choices[0].best_ms, 0.4);
  for (const size_t i : {1, 2, 3}) {
    EXPECT_EQ(choices[i].second, std::nullopt) << i;
    EXPECT_EQ(choices[i].best_ms, 0.5) << i;
  }
}

TEST(TuneChoice, TakesTheMiddleRun) {
  const SettingTimes times = {{{"a", 9.0}}, {{"a", 1.0}}, {{"a", 2.0}}, {{"b", 1.0}}};
  EXPECT_EQ(middle_ms(times, "a"), 2.0);
  EXPECT_EQ(middle_ms(times, "c"), std::nullopt);
}

TEST(TuneChoice, TakesNothingWithoutRuns) {
  const std::vector<Choice> choices = choose({{{"a", 1.0}}}, {{}, {{}}}, {"x", "y"});
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_FALSE(choices[0].setting);
}

TEST(TuneChoice, IsConfirmed) {
  std::vector<Choice> choices = {
      {"a", 1, 0, 0.5}, {"b", 1, 0, 0.5}, {"c", 1, 0, 0.5}, {"d", 1, std::nullopt, 1}};
  confirm(choices, {{{"a", 1.2}, {"b", 1.0}, {"c", 1.0}}}, {{{"a", 0.6}, {"b", 0.99}}});
  EXPECT_EQ(choices[0].setting, 0u);
  EXPECT_EQ(choices[0].default_ms, 1.2);
  EXPECT_EQ(choices[0].best_ms, 0.6);
  EXPECT_FALSE(choices[1].setting) << "it was luck";
  EXPECT_EQ(choices[1].best_ms, 1.0);
  EXPECT_FALSE(choices[2].setting) << "it did not run again";
  EXPECT_FALSE(choices[3].setting);
}

TEST(TuneConfig, HasBothSettingsOfAPair) {
  const std::vector<Candidate> tried = {{"KLAP_THRESHOLD", "threshold", "64"},
                                        {"KLAP_LAUNCHER", "launcher", "device"}};
  EXPECT_THAT(config_text({{"_Z1av", 1, 1, 0.5, 0}}, tried, "./app", ""),
              testing::HasSubstr("name = \"_Z1av\"\nlauncher = \"device\"\nthreshold = \"64\"\n"));
}

TEST(TuneConfig, HasATableForEachChoice) {
  const std::vector<Candidate> tried = {{"KLAP_THRESHOLD", "threshold", "64"}};
  const std::string text = config_text({{"_Z1av", 1, 0, 0.5}, {"_Z1bv", 1, std::nullopt, 1}}, tried,
                                       "./app\nx", "[defaults]\nlauncher = \"device\"\n");
  EXPECT_THAT(text, testing::HasSubstr("[[kernel]]\nname = \"_Z1av\"\nthreshold = \"64\"\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("_Z1bv")));
  EXPECT_THAT(text, testing::HasSubstr("from runs of: ./app x\n")) << "in one line";
  EXPECT_THAT(text, testing::EndsWith("[defaults]\nlauncher = \"device\"\n"));
}

class TuneRun : public testing::Test {
 protected:
  ~TuneRun() override { std::filesystem::remove(output_); }
  RunOutcome run(const std::string& script, double limit = 0) {
    return run_program(
        {{"sh", "-c", script}, {{"ADDED", "yes"}}, output_, std::chrono::duration<double>(limit)});
  }
  const std::string output_ = testing::TempDir() + "klap-tune-" + std::to_string(getpid());
};

TEST_F(TuneRun, KeepsCodeAndOutput) {
  EXPECT_EQ(run("echo \"$ADDED\"; echo err >&2; exit 7").exit_code, 7);
  EXPECT_EQ(read_file(output_), "yes\nerr\n");
  EXPECT_EQ(run("kill -11 $$").exit_code, 128 + 11);
}

TEST_F(TuneRun, EndsWhatDoesNotEnd) {
  const RunOutcome outcome = run("sleep 100 & sleep 100", 0.2);
  EXPECT_TRUE(outcome.is_killed);
  EXPECT_LT(outcome.seconds, 50);
}

TEST_F(TuneRun, SaysWhatCannotBeStarted) {
  EXPECT_THROW(run_program({{"/no/such/program"}, {}, output_, {}}), Error);
}

}  // namespace
}  // namespace klap::tool
