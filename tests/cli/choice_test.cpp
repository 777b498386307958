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

TEST(TuneChoice, TakesTheMiddleRun) {
  const SettingTimes times = {{{"a", 9.0}}, {{"a", 1.0}}, {{"a", 2.0}}, {{"b", 1.0}}};
  EXPECT_EQ(middle_ms(times, "a"), 2.0);
  EXPECT_EQ(middle_ms(times, "c"), std::nullopt);
}

TEST(TuneChoice, IsConfirmed) {
  std::vector<Choice> choices = {{"a", 1, {0}, 0.5}, {"b", 1, {0}, 0.5}, {"c", 1, {0}, 0.5}, {"d", 1, {}, 1}};
  confirm(choices, {{{"a", 1.2}, {"b", 1.0}, {"c", 1.0}}}, {{{"a", 0.6}, {"b", 0.99}}});
  EXPECT_EQ(choices[0].best, Configuration{0});
  EXPECT_EQ(choices[0].default_ms, 1.2);
  EXPECT_EQ(choices[0].best_ms, 0.6);
  EXPECT_TRUE(choices[1].best.empty()) << "it was luck";
  EXPECT_EQ(choices[1].best_ms, 1.0);
  EXPECT_TRUE(choices[2].best.empty()) << "it did not run again";
  EXPECT_TRUE(choices[3].best.empty());
}

TEST(TuneConfig, HasAllSettingsOfAChoice) {
  const std::vector<Candidate> tried = {{"KLAP_THRESHOLD", "threshold", "64"},
                                        {"KLAP_OPTIMISE", "optimise", "-flatten"},
                                        {"KLAP_OPTIMISE", "optimise", "unroll=8"}};
  EXPECT_THAT(config_text({{"_Z1av", 1, {0, 1, 2}, 0.5}}, tried, "./app"),
              testing::HasSubstr("name = \"_Z1av\"\noptimise = \"-flatten,unroll=8\"\nthreshold = \"64\"\n"));
}

TEST(TuneConfig, HasATableForEachChoice) {
  const std::vector<Candidate> tried = {{"KLAP_THRESHOLD", "threshold", "64"}};
  const std::string text = config_text({{"_Z1av", 1, {0}, 0.5}, {"_Z1bv", 1, {}, 1}}, tried, "./app\nx");
  EXPECT_THAT(text, testing::HasSubstr("[[kernel]]\nname = \"_Z1av\"\nthreshold = \"64\"\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("_Z1bv")));
  EXPECT_THAT(text, testing::HasSubstr("from runs of: ./app x\n")) << "in one line";
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
