// The table of settings: what values its kinds take, and that its documented defaults and choices are the
// real ones.
#include "settings/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs.h"
#include "settings/values.h"

namespace klap::settings {
namespace {

using analysis::Granularity;
using analysis::Launcher;
using analysis::parse_granularity;
using analysis::parse_ordering;
using testing::HasSubstr;

// The table documents what Config holds; a default that is changed in only one of them would be a lie.
TEST(SettingsTable, DocumentedDefaultsAreTheDefaults) {
  const Config config;
  EXPECT_EQ(find_variable("KLAP_LOG")->default_value, config.log_level);
  EXPECT_EQ(granularity_of(config, kParent), Granularity::Auto);
  EXPECT_EQ(launcher_of(config, kParent), Launcher::Auto);
  EXPECT_EQ(config.pool_bytes_for(kParent), uint64_t{1} << 30);
  EXPECT_EQ(parse_boolean(find_variable("KLAP_DISABLE")->default_value), config.disabled);
  EXPECT_EQ(parse_boolean(find_variable("KLAP_CACHE_DISABLE")->default_value), config.cache_disabled);
  EXPECT_EQ(parse_size(find_variable("KLAP_CACHE_MAX_SIZE")->default_value), config.cache_max_bytes);
}

TEST(SettingsTable, SizesMayHaveAUnit) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("3k"), 3 << 10);
  EXPECT_EQ(parse_size("64M"), 64 << 20);
  EXPECT_EQ(parse_size("1G"), 1 << 30);
  EXPECT_EQ(parse_size("2T"), uint64_t{2} << 40);
  for (const char* const wrong :
       {"", "M", "-1", "+1", "1.5G", "1 G", "1GB", "1X", "0x10", "99999999999999999999", "16777216T"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

TEST(SettingsTable, CountsAreWholeNumbersFromTwoOn) {
  EXPECT_EQ(parse_count("2"), 2);
  EXPECT_EQ(parse_count("16777215"), 16777215);
  for (const char* const wrong : {"", "0", "1", "-2", "+2", "2.5", "2 ", "4K", "16777216", "4294967298"}) {
    EXPECT_EQ(parse_count(wrong), std::nullopt) << wrong;
  }
}

TEST(SettingsTable, SharesAndThreadsAreNumbers) {
  EXPECT_EQ(parse_share("1"), 1);
  EXPECT_EQ(parse_share("32"), 32);
  EXPECT_EQ(parse_share("0"), std::nullopt);
  EXPECT_EQ(parse_share("1/16"), std::nullopt);
  EXPECT_EQ(parse_threads("auto"), 0);
  EXPECT_EQ(parse_threads("1024"), 1024);
  for (const char* const wrong : {"0", "1025", "all", ""})
    EXPECT_EQ(parse_threads(wrong), std::nullopt) << wrong;
  EXPECT_EQ(parse_blocks("auto"), 0);
  EXPECT_EQ(parse_blocks("1"), 1);
  EXPECT_EQ(parse_blocks("0"), std::nullopt);
}

TEST(SettingsTable, MetricsAreNamesWithCommasBetween) {
  EXPECT_THAT(parse_metrics("dram__bytes.sum"), testing::ElementsAre("dram__bytes.sum"));
  EXPECT_THAT(parse_metrics("a.sum,b_2.pct"), testing::ElementsAre("a.sum", "b_2.pct"));
  for (const char* const wrong : {"", ",", "a,", ",a", "a,,b", "a b", "a;b", "a-b", "a\n"})
    EXPECT_TRUE(parse_metrics(wrong).empty()) << wrong;
}

TEST(SettingsTable, EveryLauncherOfTheTableIsKnown) {
  for (const std::string_view name : find_variable("KLAP_LAUNCHER")->choices) {
    // The host that reads back is no launcher of its own to the pipeline, nor is a parent that is its own
    // consumer.
    const Launcher launcher = launcher_of(from_environment({{"KLAP_LAUNCHER", std::string(name)}}), kParent);
    EXPECT_EQ(to_string(launcher), name == "host-readback" ? "host" : name == "fused" ? "auto" : name);
  }
  for (const std::string_view name : find_variable("KLAP_ORDERING")->choices) {
    ASSERT_TRUE(parse_ordering(name)) << name;
    EXPECT_EQ(to_string(*parse_ordering(name)), name);
  }
  EXPECT_FALSE(parse_ordering("strict"));
}

TEST(SettingsTable, EveryGranularityOfTheTableIsKnown) {
  const Setting& setting = *find_variable("KLAP_GRANULARITY");
  for (const std::string_view name : setting.choices) {
    ASSERT_TRUE(parse_granularity(name)) << name;
    EXPECT_EQ(to_string(*parse_granularity(name)), name);
  }
  EXPECT_FALSE(parse_granularity("galaxy"));
}

TEST(SettingsTable, EveryVariableStandsInTheTexts) {
  const std::string text = as_text(Kind::User) + as_text(Kind::Developer);
  const std::string markdown = as_markdown(Kind::User) + as_markdown(Kind::Developer);
  for (const std::string_view name : variables()) {
    EXPECT_THAT(text, HasSubstr(std::string(name)));
    EXPECT_THAT(markdown, HasSubstr("| `" + std::string(name) + "` |"));
  }
  for (const std::string_view name : optimisations()) {
    EXPECT_THAT(as_text(Kind::Optimisation), HasSubstr("KLAP_OPTIMISE " + std::string(name)));
    EXPECT_THAT(as_markdown(Kind::Optimisation), HasSubstr("| `" + std::string(name) + "` |"));
  }
  EXPECT_THAT(markdown, HasSubstr("none \\| warp \\| block")) << "a bar would end the cell";
}

}  // namespace
}  // namespace klap::settings
