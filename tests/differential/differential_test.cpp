// Every case by hand in every configuration: natively, and preloaded in each form; on the emulated driver
// under many seeds with weak memory and the race check on, and on a GPU where there is one.
//
// Equality with the reference is required everywhere; of preloaded runs also that the sites became what the
// case says, and that the launches of a rewritten parent ran its variant.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "case.h"
#include "forms.h"
#include "runs.h"

namespace klap::differential {
namespace {

constexpr uint64_t kRepetitionsOnGpu = 10;

// Cases of one file run in one process for each of their settings: what takes most of the time of a small
// case is to begin, and to rewrite its module.
struct FileOfCases {
  std::string file;  // its PTX
  const Configuration* configuration = nullptr;
};

// The configurations that take turns without the full run: those that are not chosen by default.
std::vector<const Configuration*> others() {
  std::vector<const Configuration*> all;
  for (const Configuration& c : configurations()) {
    if (!c.is_gpu && c.is_preloaded && c.name != "grid-host") all.push_back(&c);
  }
  return all;
}

// In the full run every case is run in each configuration, and so are always the cases that the table of
// forms takes its cells from. Else a case is run natively, in the configuration that is chosen by default,
// and every third one in one of the others.
bool is_its_turn(const std::string& name, const Configuration& configuration) {
  const std::vector<const Configuration*> all = others();
  const auto which = std::ranges::find(all, &configuration);
  if (KLAP_FULL_TESTS || which == all.end() || stands_for_a_form(name)) return true;
  return turn_of(name) % (3 * all.size()) == static_cast<size_t>(which - all.begin());
}

bool is_run_in(const std::string& name, const Configuration& configuration) {
  if (name.starts_with("order_") || name.starts_with("contract_")) return false;  // OrderCells, ContractCases
  const bool is_default = configuration.name == "grid-host";
  // Their blocks wait for blocks with lower numbers. The executor begins these first; the emulated device
  // begins blocks in any order, as CUDA may.
  if (name.starts_with("turns_")) return is_default;
  // What is promoted is so in any way to aggregate; promotion_test.cpp has the ways to promote.
  if (name.starts_with("chain_")) return !configuration.is_preloaded || is_default;
  return is_its_turn(name, configuration);
}

std::vector<std::string> cases_of(const FileOfCases& of) {
  std::vector<std::string> names = case_names("", of.file);
  std::erase_if(names, [&](const std::string& name) { return !is_run_in(name, *of.configuration); });
  return names;
}

// The files of the cases whose names begin so; without a prefix, those of which is_run_in() takes some.
std::vector<FileOfCases> files_of_cases(const std::string& prefix) {
  std::vector<FileOfCases> all;
  for (const Configuration& configuration : configurations()) {
    if (configuration.is_gpu) continue;
    for (const std::string& file : case_files(prefix)) {
      if (!prefix.empty() || !cases_of({file, &configuration}).empty()) all.push_back({file, &configuration});
    }
  }
  return all;
}

class Differential : public testing::TestWithParam<FileOfCases> {};

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
  std::vector<std::string> verdicts;
  for (const auto& module : statistics.at("modules")) {
    for (const auto& remark : module.at("sites")) {
      if (remark.at("parent") == site.parent) verdicts.push_back(verdict(remark));
    }
  }
  if (expected == "left: as it is") {
    EXPECT_THAT(verdicts, testing::Each("rewritten")) << site.parent;
    EXPECT_TRUE(statistics.at("launches").at("left").contains(site.parent))
        << statistics.at("launches").dump();
  } else if (expected == "some") {
    EXPECT_THAT(verdicts, testing::Contains("rewritten")) << site.parent;
    EXPECT_THAT(verdicts, testing::Contains(testing::StartsWith("left"))) << site.parent;
  } else if (expected == "left: any") {
    EXPECT_THAT(verdicts, testing::Each(testing::StartsWith("left: "))) << site.parent;
  } else {
    EXPECT_THAT(verdicts, testing::Contains(expected)) << site.parent;
    // A site that is left takes the parent's others with it.
    if (expected.starts_with("left")) {
      std::erase_if(verdicts, [&](const auto& v) { return v != expected && v == "left: several-sites"; });
    }
    EXPECT_THAT(verdicts, testing::Each(expected)) << site.parent;
  }
  if (expected.starts_with("left") || !is_launched_by_host(c, site.parent)) return;
  const auto& redirected = statistics.at("launches").at("redirected");
  EXPECT_TRUE(redirected.contains(site.parent))
      << "no launch of " << site.parent << " ran its variant: " << statistics.at("launches").dump();
}

struct Seeds {
  uint64_t first = 1, last = 1;
};

constexpr uint64_t kSchedules = 6;  // which the seeds go through in turn (device.cpp)

// In the full run the same seeds everywhere. Else one, which is another for each file and configuration.
Seeds seeds_of(const FileOfCases& of) {
  const Configuration& how = *of.configuration;
  const bool is_default = !how.is_preloaded || how.granularity == "grid";
  if (KLAP_FULL_TESTS) return {1, is_default ? uint64_t{KLAP_SEEDS} : uint64_t{KLAP_FEWER_SEEDS}};
  const uint64_t seed = 1 + turn_of(of.file + how.name) % kSchedules;
  return {seed, seed};
}

// Runs cases of the same settings; false if there is no device.
bool run_and_check(const std::vector<std::string>& names, const Configuration& configuration,
                   const Seeds& seeds, const std::map<std::string, std::string>& variables = {}) {
  Work work;
  work.configuration = configuration;
  work.cases = names;
  work.first_seed = seeds.first;
  work.last_seed = seeds.last;
  work.variables = variables;
  const std::map<std::string, std::string>& settings = find_case(names.front())->settings;
  if (configuration.is_preloaded) work.variables.insert(settings.begin(), settings.end());
  const Report report = differential::Run(work).wait();
  if (report.is_missing_device()) return false;
  EXPECT_EQ(report.problem(work), "") << command_line(work) << "\n" << report.first_errors();
  if (!configuration.is_preloaded) return true;
  EXPECT_TRUE(report.statistics.is_object()) << "klap_jit was not there";
  if (!report.statistics.is_object()) return true;
  for (const std::string& name : names) {
    const Case& c = *find_case(name);
    SCOPED_TRACE(name + ": " + c.about);
    for (const Site& site : c.sites) expect_site(report.statistics, c, site, configuration);
  }
  return true;
}

TEST_P(Differential, EqualsTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  std::map<std::map<std::string, std::string>, std::vector<std::string>> by_settings;
  for (const std::string& name : cases_of(GetParam())) by_settings[find_case(name)->settings].push_back(name);
  for (const auto& [settings, names] : by_settings)
    EXPECT_TRUE(run_and_check(names, *GetParam().configuration, seeds_of(GetParam())))
        << "no emulated device";
}

// The cells of the matrix of order_cells.h.
class OrderCells : public testing::TestWithParam<FileOfCases> {};

// They run under half of the schedules natively and as is chosen by default, else under one, which differs
// by file.
Seeds seeds_of_cells(const FileOfCases& of) {
  if (KLAP_FULL_TESTS) return {1, 20};
  const Configuration& how = *of.configuration;
  const Seeds one = seeds_of(of);
  return !how.is_preloaded || how.name == "grid-host" ? Seeds{one.first, one.first + kSchedules / 2 - 1}
                                                      : one;
}

// Each file has two of the configurations that take turns.
bool are_cells_run(const FileOfCases& of) {
  const std::vector<const Configuration*> all = others();
  const auto which = std::ranges::find(all, of.configuration);
  if (KLAP_FULL_TESTS || which == all.end()) return true;
  return (turn_of(of.file) + static_cast<size_t>(which - all.begin())) % all.size() < 2;
}

std::vector<FileOfCases> files_of_cells() {
  std::vector<FileOfCases> files = files_of_cases("order_");
  std::erase_if(files, [](const FileOfCases& of) { return !are_cells_run(of); });
  return files;
}

TEST_P(OrderCells, EqualTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const FileOfCases& of = GetParam();
  // Cases of one file have the same settings.
  EXPECT_TRUE(run_and_check(case_names("order_", of.file), *of.configuration, seeds_of_cells(of)))
      << "no emulated device";
}

std::string test_name(const testing::TestParamInfo<FileOfCases>& info) {
  std::string name =
      std::filesystem::path(info.param.file).stem().string() + "_" + info.param.configuration->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const FileOfCases& of, std::ostream* out) {
  *out << of.file << " in " << of.configuration->name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Differential, testing::ValuesIn(files_of_cases("")), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, OrderCells, testing::ValuesIn(files_of_cells()), test_name);

// Of one queue, of several and of one that all launches share.
bool launches_in_many_groups(const std::string& name) {
  if (name == "groups_big_children") return false;
  return name.starts_with("groups_") || name == "sites_unlike" || name == "own_streams_array" ||
         name == "loop_order" || name == "loop_two_blocks" || name == "loop_forget";
}

// Groups whose launches are refused leave their children to the last group of the grid. It keeps one place on
// the device while it waits, as does that of another stream, so there must be a third; and it waits for a
// number of turns instead of a minute, which is too short for big children.
class FewPendingLaunches : public testing::TestWithParam<const Configuration*> {};

TEST_P(FewPendingLaunches, NoGroupLosesItsChildren) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const std::string& name : case_names()) {
    if (!launches_in_many_groups(name)) continue;
    SCOPED_TRACE(name);
    EXPECT_TRUE(
        run_and_check({name}, *GetParam(), {1, KLAP_SEEDS / 4},
                      {{"KLAP_EMULATOR_PENDING_LAUNCHES", "1"}, {"KLAP_EMULATOR_MULTIPROCESSORS", "3"}}));
  }
}

// Consumers whose queue has a size of its own, where it is full after a few children, and on a device that
// holds one block.
struct Launched {
  int64_t natively = 0, aggregated = 0;
};

// All are about queues, which promoted chains have none of. Cases of different orderings run in processes of
// their own.
Launched run_cases(const std::string& prefix, const std::map<std::string, std::string>& variables,
                   uint64_t seeds = KLAP_FULL_TESTS ? 3 : 1, const std::string& configuration = "grid-host") {
  std::map<std::string, std::vector<std::string>> by_ordering;
  for (const std::string& name : case_names(prefix)) {
    const auto& settings = find_case(name)->settings;
    const auto ordering = settings.find("KLAP_ORDERING");
    by_ordering[ordering == settings.end() ? "auto" : ordering->second].push_back(name);
  }
  Launched launched;
  for (const auto& [ordering, names] : by_ordering) {
    Work work;
    work.configuration = chosen_configurations(configuration).front();
    work.cases = names;
    work.last_seed = seeds;
    work.variables = variables;
    work.variables["KLAP_PROMOTION"] = "none";
    work.variables["KLAP_ORDERING"] = ordering;
    const Report report = differential::Run(work).wait();
    EXPECT_TRUE(report.problem(work).empty()) << report.problem(work) << command_line(work) << "\n"
                                              << report.first_errors();
    launched.natively += report.statistics.at("children_launched_natively").get<int64_t>();
    launched.aggregated += report.statistics.at("children_aggregated").get<int64_t>();
  }
  return launched;
}

// Children that sum up a range, whose parts are joined where they store what they find.
std::map<std::string, std::string> joining() {
  return {{"KLAP_OPTIMISE", "split_ranges=all"}, {"KLAP_ASSUME", "reassociate"}};
}

TEST(JoinedParts, EqualTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Launched launched = run_cases("ranges_", joining());
  EXPECT_EQ(launched.natively, 0);
}

// No part may wait for another one, whose block cannot begin.
TEST(JoinedParts, EndWhereOneBlockIsResident) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  auto variables = joining();
  variables["KLAP_EMULATOR_MULTIPROCESSORS"] = variables["KLAP_EMULATOR_RESIDENT_BLOCKS"] = "1";
  EXPECT_EQ(run_cases("ranges_of_", variables).natively, 0);
}

class OwnRoom : public testing::TestWithParam<const char*> {};

TEST_P(OwnRoom, IsTheProgramsOwnFromWhereTheQueueIsFull) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* bytes : {"1100", "1500", "4K"}) {
    SCOPED_TRACE(bytes);
    const Launched launched = run_cases(GetParam(), {{"KLAP_POOL_BYTES", bytes}});
    EXPECT_GT(launched.natively, 0);
    EXPECT_GT(launched.aggregated, 0);
  }
}

TEST_P(OwnRoom, EndsWhereOneBlockIsResident) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Launched launched =
      run_cases(GetParam(), {{"KLAP_EMULATOR_MULTIPROCESSORS", "1"}, {"KLAP_EMULATOR_RESIDENT_BLOCKS", "1"}});
  EXPECT_EQ(launched.natively, 0);
}

// Somebody else has the multiprocessors: blocks start when others are in the middle of the queue, or when all
// is done.
TEST_P(OwnRoom, EndsWhereBlocksStartLate) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* steps : {"3000", "100000"}) {
    SCOPED_TRACE(steps);
    const Launched launched = run_cases(GetParam(), {{"KLAP_EMULATOR_LATE_BLOCKS", steps}}, 1);
    EXPECT_EQ(launched.natively, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, OwnRoom, testing::Values("recursi", "loop_"));

// The same for launches in loops in every form.
class LaunchLoops : public testing::TestWithParam<const Configuration*> {};

TEST_P(LaunchLoops, AreTheProgramsOwnFromWhereTheQueueIsFull) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* bytes : {"4K", "9000"}) {
    SCOPED_TRACE(bytes);
    const Launched launched = run_cases("loop_", {{"KLAP_POOL_BYTES", bytes}}, 1, GetParam()->name);
    EXPECT_GT(launched.natively, 0);
    EXPECT_GT(launched.aggregated, 0);
  }
}

TEST_P(LaunchLoops, EndWhereOneBlockIsResident) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Launched launched =
      run_cases("loop_", {{"KLAP_EMULATOR_MULTIPROCESSORS", "1"}, {"KLAP_EMULATOR_RESIDENT_BLOCKS", "1"}}, 1,
                GetParam()->name);
  EXPECT_EQ(launched.natively, 0);
}

// The queue holds a few more records than CUDA allows launches to wait, and then refuses as CUDA does.
TEST(LaunchesInOrder, AreRefusedWhereTheQueueIsFull) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* name : {"grid-host", "grid-device", "block-device", "multiblock2-device"}) {
    SCOPED_TRACE(name);
    Work work;
    work.configuration = chosen_configurations(name).front();
    work.cases = {"order_refused"};
    work.last_seed = kSchedules;
    work.variables = {{"KLAP_POOL_BYTES", "6K"}, {"KLAP_EMULATOR_PENDING_LAUNCHES", "8"}};
    const Report report = differential::Run(work).wait();
    EXPECT_EQ(report.problem(work), "") << command_line(work) << "\n" << report.first_errors();
    ASSERT_TRUE(report.statistics.is_object());
    const auto run = report.statistics.at("children_aggregated").get<uint64_t>();
    EXPECT_LT(8 * kSchedules, run);
    EXPECT_GT(480 * kSchedules, run) << "all had room";
    EXPECT_EQ(0u, report.statistics.at("children_launched_natively").get<uint64_t>());
  }
}

// A thread that takes back what it recorded meets the pending limit in the middle of it: the launches that
// are left stay recorded, and the program's own one is refused.
class RetriedLaunches : public LaunchLoops {};

TEST_P(RetriedLaunches, KeepTheirOrderWhereLaunchesAreRefused) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Launched launched = run_cases("loop_retry",
                                      {{"KLAP_POOL_BYTES", "8K"},
                                       {"KLAP_EMULATOR_PENDING_LAUNCHES", "16"},
                                       {"KLAP_EMULATOR_MULTIPROCESSORS", "3"}},
                                      1, GetParam()->name);
  EXPECT_GT(launched.natively, 0);
  EXPECT_GT(launched.aggregated, 0);
}

// The same where the program gives such launches up: what stays recorded comes behind what was launched.
TEST_P(RetriedLaunches, ComeBehindWhatTheirThreadLaunchedItself) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Launched launched = run_cases("loop_retry_never",
                                      {{"KLAP_POOL_BYTES", "32K"},
                                       {"KLAP_EMULATOR_PENDING_LAUNCHES", "2"},
                                       {"KLAP_EMULATOR_MULTIPROCESSORS", "3"}},
                                      5, GetParam()->name);
  EXPECT_GT(launched.natively, 0);
  EXPECT_GT(launched.aggregated, 0);
}

// The case that tells the orderings apart would pass in any other if nothing overlapped there.
TEST(Ordering, IsGivenUpWhereTheUserSaysSo) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* name : {"grid-host", "grid-device", "block-device", "warp-device"}) {
    SCOPED_TRACE(name);
    Work work;
    work.configuration = chosen_configurations(name).front();
    work.cases = {"ordering_stream"};
    work.last_seed = 6;
    work.variables = {{"KLAP_ORDERING", "relaxed"}};
    const Report report = differential::Run(work).wait();
    EXPECT_THAT(report.problem(work) + report.first_errors(), testing::HasSubstr("race"));
  }
}

class OnGpu : public testing::TestWithParam<const Configuration*> {};

TEST_P(OnGpu, EveryCaseEqualsTheReference) {
  for (const std::string& name : case_names()) {
    SCOPED_TRACE(name);
    if (!run_and_check({name}, *GetParam(), {1, kRepetitionsOnGpu})) GTEST_SKIP() << "there is no GPU";
  }
}

std::vector<const Configuration*> configurations_with_groups() {
  std::vector<const Configuration*> all;
  for (const Configuration& c : configurations()) {
    if (!c.is_gpu && (c.granularity == "block" || c.granularity == "multiblock")) all.push_back(&c);
  }
  return all;
}

std::vector<const Configuration*> put_off_configurations() {
  std::vector<const Configuration*> all;
  for (const Configuration& c : configurations()) {
    if (!c.is_gpu && c.is_preloaded && c.granularity != "warp") all.push_back(&c);
  }
  return all;
}

std::vector<const Configuration*> configurations_of_grids() {
  std::vector<const Configuration*> all = put_off_configurations();
  std::erase_if(all, [](const Configuration* c) { return c->granularity != "grid"; });
  return all;
}

std::vector<const Configuration*> gpu_configurations() {
  std::vector<const Configuration*> all;
  for (const Configuration& c : configurations()) {
    if (c.is_gpu) all.push_back(&c);
  }
  return all;
}

std::string configuration_name(const testing::TestParamInfo<const Configuration*>& info) {
  std::string name = info.param->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, LaunchLoops, testing::ValuesIn(put_off_configurations()), configuration_name);
INSTANTIATE_TEST_SUITE_P(Cases, RetriedLaunches, testing::ValuesIn(configurations_of_grids()),
                         configuration_name);
INSTANTIATE_TEST_SUITE_P(Cases, OnGpu, testing::ValuesIn(gpu_configurations()), configuration_name);
INSTANTIATE_TEST_SUITE_P(Cases, FewPendingLaunches, testing::ValuesIn(configurations_with_groups()),
                         configuration_name);

}  // namespace
}  // namespace klap::differential
