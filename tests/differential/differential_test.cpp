// Every case by hand in every configuration: natively, and preloaded in each form; on the emulated driver
// under many seeds with weak memory and the race check on, and on a GPU where there is one.
//
// Equality with the reference is required everywhere; of preloaded runs also that the sites became what the
// case says, and that the launches of a rewritten parent ran its variant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

constexpr uint64_t kRepetitionsOnGpu = 10;

struct Combination {
  const Case* of = nullptr;
  const Configuration* configuration = nullptr;
};

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const Configuration& configuration : configurations()) {
    if (configuration.is_gpu) continue;
    for (const Case& c : all_cases()) all.push_back({&c, &configuration});
  }
  return all;
}

class Differential : public testing::TestWithParam<Combination> {};

std::string expected_verdict(const Site& site, const Configuration& configuration) {
  const bool by_warp = configuration.granularity == "warp";
  if (by_warp && !site.by_warp.empty())
    return site.by_warp == "rewritten" || site.by_warp == "some" ? site.by_warp : "left: " + site.by_warp;
  const bool on_device = !by_warp && configuration.launcher == "device" && !site.left_on_device.empty();
  const std::string& reason = on_device ? site.left_on_device : site.left;
  return reason.empty() ? "rewritten" : "left: " + reason;
}

std::string verdict(const nlohmann::json& site) {
  const std::string text = site.at("verdict");
  return text == "rewritten" ? text : "left: " + site.at("reason").get<std::string>();
}

bool is_launched_by_host(const Case& c, const std::string& kernel) {
  return std::ranges::any_of(c.steps, [&](const Step& s) {
    return s.kind == Step::Kind::Launch && s.launch.kernel == kernel && s.launch_error == 0;
  });
}

void expect_site(const nlohmann::json& statistics, const Case& c, const Site& site,
                 const Configuration& how) {
  const std::string expected = expected_verdict(site, how);
  int found = 0, rewritten = 0;
  for (const auto& module : statistics.at("modules")) {
    for (const auto& remark : module.at("sites")) {
      if (remark.at("parent") != site.parent) continue;
      ++found;
      rewritten += verdict(remark) == "rewritten" ? 1 : 0;
      if (expected != "some") {
        EXPECT_EQ(expected, verdict(remark)) << site.parent << ": " << remark.at("detail");
      }
    }
  }
  EXPECT_GT(found, 0) << "no launch site in " << site.parent;
  if (expected == "some") {
    EXPECT_GT(rewritten, 0) << site.parent;
    EXPECT_LT(rewritten, found) << site.parent;
  }
  if (expected.starts_with("left") || !is_launched_by_host(c, site.parent)) return;
  const auto& redirected = statistics.at("launches").at("redirected");
  EXPECT_TRUE(redirected.contains(site.parent))
      << "no launch of " << site.parent << " ran its variant: " << statistics.at("launches").dump();
}

// Runs the case; false if there is no device.
bool run_and_check(const Case& c, const Configuration& configuration, uint64_t seeds) {
  Work work;
  work.configuration = configuration;
  work.cases = {c.name};
  work.last_seed = seeds;
  const Report report = differential::Run(work).wait();
  if (report.is_missing_device()) return false;
  const std::string problem = report.problem(work);
  EXPECT_TRUE(problem.empty()) << problem << c.about << "\n"
                               << command_line(work) << "\n"
                               << report.first_errors();
  if (!configuration.is_preloaded) return true;
  EXPECT_TRUE(report.statistics.is_object()) << "klap_jit was not there";
  if (!report.statistics.is_object()) return true;
  for (const Site& site : c.sites) expect_site(report.statistics, c, site, configuration);
  return true;
}

TEST_P(Differential, EqualsTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  EXPECT_TRUE(run_and_check(*GetParam().of, *GetParam().configuration, KLAP_SEEDS)) << "no emulated device";
}

class OnGpu : public testing::TestWithParam<const Configuration*> {};

TEST_P(OnGpu, EveryCaseEqualsTheReference) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    if (!run_and_check(c, *GetParam(), kRepetitionsOnGpu)) GTEST_SKIP() << "there is no GPU";
  }
}

std::vector<const Configuration*> gpu_configurations() {
  std::vector<const Configuration*> all;
  for (const Configuration& c : configurations()) {
    if (c.is_gpu) all.push_back(&c);
  }
  return all;
}

std::string test_name(const testing::TestParamInfo<Combination>& info) {
  std::string name = info.param.of->name + "_" + info.param.configuration->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const Combination& combination, std::ostream* out) {
  *out << combination.of->name << " in " << combination.configuration->name;
}

std::string gpu_test_name(const testing::TestParamInfo<const Configuration*>& info) {
  std::string name = info.param->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Differential, testing::ValuesIn(combinations()), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, OnGpu, testing::ValuesIn(gpu_configurations()), gpu_test_name);

}  // namespace
}  // namespace klap::differential
