// Who decides how a launch goes: the order of precedence, and what becomes of options that contradict each
// other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/plan/find_site_options.h"
#include "support/file.h"

namespace klap::jit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string declaration(const std::string& name) { return "{ .reg .pred " + name + "; }\n"; }

// The kernel of a fixture, with text put at its beginning and before its launch.
class Parent {
 public:
  explicit Parent(const std::string& at_beginning, const std::string& at_launch = "") {
    std::string text = read_file(KLAP_IDIOM_DIR "/cdp2.ptx");
    const size_t kernel = text.find(".entry _Z6parentPiPKi");
    const size_t launch = text.rfind('{', text.find("GetParameterBuffer", text.find('{', kernel)));
    text.insert(launch, at_launch);
    text.insert(text.find("ld.param", kernel), at_beginning);
    module_ = ptx::parse(text, "unit");
    facts_.emplace(module_, *module_.find_function("_Z6parentPiPKi"));
    EXPECT_EQ(facts_->sites.size(), 1u);
    EXPECT_EQ(facts_->sites.at(0).problem, "");
  }
  const analysis::FunctionFacts& facts() const { return *facts_; }
  SiteOptions options(const Request& request) const { return find_site_options(request, *facts_).at(0); }

 private:
  ptx::Module module_;
  std::optional<analysis::FunctionFacts> facts_;
};

// Settings that give one key.
Request request_with(const std::string& key = "", const std::string& value = "") {
  Request request;
  request.setting = [=](std::string_view asked, const std::string& parent,
                        const std::string& child) -> std::optional<settings::Given> {
    EXPECT_EQ(parent, "_Z6parentPiPKi");
    EXPECT_EQ(child, "_Z5childPii");
    if (asked != key) return std::nullopt;
    return settings::Given{value, "environment"};
  };
  return request;
}

const std::string kKernelBlock = declaration("__klap_kernel$granularity$block");
const std::string kLaunchWarp = declaration("__klap_launch$granularity$warp");

TEST(Precedence, SettingsThenTheLaunchThenTheKernelThenAuto) {
  EXPECT_EQ(Parent("").options(request_with()).granularity, Granularity::Auto);
  EXPECT_EQ(Parent(kKernelBlock).options(request_with()).granularity, Granularity::Block);
  EXPECT_EQ(Parent(kKernelBlock, kLaunchWarp).options(request_with()).granularity, Granularity::Warp);
  const SiteOptions set = Parent(kKernelBlock, kLaunchWarp).options(request_with("granularity", "grid"));
  EXPECT_EQ(set.granularity, Granularity::Grid);
  EXPECT_THAT(set.notes, ElementsAre("the environment asks for granularity grid"));
}

TEST(Precedence, EveryKeyIsReadFromAnnotationsAndFromSettings) {
  std::string all;
  for (const char* const hint :
       {"launcher$device", "multiblock$4", "concurrency$32", "consumer_threads$512", "buffer$malloc",
        "pool_bytes$64M", "promotion$PAO", "pool$12", "assume$noalias"}) {
    all += declaration(std::string("__klap_kernel$") + hint);
  }
  const SiteOptions options = Parent(all).options(request_with());
  EXPECT_EQ(options.launcher, Launcher::Device);
  EXPECT_EQ(options.multiblock, 4);
  EXPECT_EQ(options.concurrency, 32);
  EXPECT_EQ(options.consumer_threads, 512);
  EXPECT_EQ(options.buffer, Buffer::Malloc);
  EXPECT_THAT(
      options.notes,
      testing::Contains(testing::MatchesRegex("the annotation at line [0-9:]+ asks for buffer malloc")));
  EXPECT_EQ(options.pool_bytes, uint64_t{64} << 20);
  EXPECT_EQ(options.promotion, "PAO");
  EXPECT_EQ(options.pool, 12);
  EXPECT_TRUE(options.assume_noalias);
  EXPECT_EQ(Parent(all).options(request_with("promotion", "PA")).promotion, "PA");
  EXPECT_FALSE(Parent(all).options(request_with("assume", "none")).assume_noalias);
  EXPECT_EQ(Parent("").options(request_with()).promotion, "auto");
  EXPECT_EQ(Parent(all).options(request_with("launcher", "host")).launcher, Launcher::Host);
  EXPECT_EQ(Parent(all).options(request_with("multiblock", "5")).multiblock, 5);
  EXPECT_EQ(Parent(all).options(request_with("buffer", "pool")).buffer, Buffer::Pool);
  EXPECT_EQ(Parent("").options(request_with("buffer", "malloc")).buffer, Buffer::Malloc);
  EXPECT_EQ(Parent("").options(request_with()).buffer, Buffer::Pool);
  EXPECT_EQ(Parent(all).options(request_with("consumer_threads", "auto")).consumer_threads, 0);
}

TEST(Annotations, ThatAreWrongAreIgnoredWithANote) {
  const SiteOptions options =
      Parent(declaration("__klap_kernel$colour$red") + declaration("__klap_kernel$launcher") +
             declaration("__klap_kernel$multiblock$1"))
          .options(request_with());
  EXPECT_THAT(
      options.notes,
      ElementsAre(testing::MatchesRegex("annotation colour\\(red\\) at line [0-9:]+ is ignored: there is no "
                                        "such key"),
                  HasSubstr("annotation launcher() at line "),
                  HasSubstr("multiblock is a number from 2 on")));
  EXPECT_EQ(options.launcher, Launcher::Auto);
}

TEST(Annotations, InTheSameWordsAreOne) {
  EXPECT_THAT(Parent(kKernelBlock + kKernelBlock).options(request_with("granularity", "grid")).notes,
              ElementsAre("the environment asks for granularity grid"));
}

TEST(Annotations, OtherRegistersAreNone) {
  EXPECT_THAT(Parent(declaration("__klap_other$granularity$block") + declaration("klap_kernel$launcher$host"))
                  .options(request_with())
                  .notes,
              IsEmpty());
}

SiteOptions wish_for(Granularity granularity, Launcher launcher = Launcher::Auto) {
  SiteOptions options;
  options.granularity = granularity;
  options.launcher = launcher;
  return options;
}

std::string aggregations(const std::vector<SiteOptions>& options, bool warp_aggregation = true) {
  Request request;
  request.warp_aggregation = warp_aggregation;
  std::string text;
  for (const analysis::Aggregation& aggregation : aggregations_asked_for(request, options)) {
    text += (text.empty() ? "" : " ") + std::string(to_string(aggregation.granularity)) + "/" +
            to_string(aggregation.launcher);
  }
  return text;
}

TEST(Ways, OfOneLaunch) {
  EXPECT_EQ(aggregations({wish_for(Granularity::Auto)}), "grid/host grid/device warp/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::Auto)}, false), "grid/host grid/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::Grid)}), "grid/host grid/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::Grid, Launcher::Device)}), "grid/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::Block, Launcher::Host)}), "block/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::Warp)}), "warp/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::None)}), "none/host");
}

TEST(Ways, OfSeveralLaunchesAreThoseOfTheFirstThatSaysHow) {
  EXPECT_EQ(
      aggregations({wish_for(Granularity::Auto), wish_for(Granularity::Block), wish_for(Granularity::Warp)}),
      "block/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::None), wish_for(Granularity::Warp)}), "warp/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::Auto), wish_for(Granularity::Auto, Launcher::Device)}),
            "grid/device warp/device");
  EXPECT_EQ(aggregations({wish_for(Granularity::None), wish_for(Granularity::None)}), "none/host");
}

}  // namespace
}  // namespace klap::jit
