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

struct Combination {
  std::string of;  // the case's name
  const Configuration* configuration = nullptr;
};

// In the full run every case is run in each configuration, and so are always the cases that the table of
// forms takes its cells from. Else a case is run natively, in the configuration that is chosen by default,
// and in one of the others.
bool is_its_turn(const std::string& name, const Configuration& configuration) {
  const auto is_other = [](const Configuration& c) {
    return !c.is_gpu && c.is_preloaded && c.name != "grid-host";
  };
  if (KLAP_FULL_TESTS || !is_other(configuration) || stands_for_a_form(name)) return true;
  size_t which = 0, others = 0;
  for (const Configuration& c : configurations()) {
    if (c.name == configuration.name) which = others;
    if (is_other(c)) ++others;
  }
  return turn_of(name) % others == which;
}

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const Configuration& configuration : configurations()) {
    if (configuration.is_gpu) continue;
    for (const std::string& name : case_names()) {
      if (name.starts_with("order_") || name.starts_with("contract_")) continue;  // OrderCells, ContractCases
      // What is promoted is so in any way to aggregate; promotion_test.cpp has the ways to promote.
      const bool is_chain = name.starts_with("chain_");
      // Their blocks wait for blocks with lower numbers. The executor begins these first; the emulated device
      // begins blocks in any order, as CUDA may.
      if (name.starts_with("turns_") && configuration.name != "grid-host") continue;
      if (is_chain ? !configuration.is_preloaded || configuration.name == "grid-host"
                   : is_its_turn(name, configuration))
        all.push_back({name, &configuration});
    }
  }
  return all;
}

class Differential : public testing::TestWithParam<Combination> {};

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
  if (expected == "some") {
    EXPECT_THAT(verdicts, testing::Contains("rewritten")) << site.parent;
    EXPECT_THAT(verdicts, testing::Contains(testing::StartsWith("left"))) << site.parent;
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

// In the full run the same seeds everywhere. Else one, which is another in each configuration: those of a
// configuration have every schedule, and those of a case as many as it is run in.
Seeds seeds_of(const std::string& name, const Configuration& configuration) {
  const bool is_default = !configuration.is_preloaded || configuration.granularity == "grid";
  const uint64_t all = is_default ? KLAP_SEEDS : KLAP_FEWER_SEEDS;
  if (KLAP_FULL_TESTS) return {1, all};
  uint64_t seed = turn_of(name);
  for (const Configuration& before : configurations()) {
    if (before.name == configuration.name) break;
    if (is_its_turn(name, before)) ++seed;
  }
  seed = 1 + seed % kSchedules;
  return {seed, seed};
}

// Runs the case; false if there is no device.
bool run_and_check(const Case& c, const Configuration& configuration, const Seeds& seeds,
                   const std::map<std::string, std::string>& variables = {}) {
  Work work;
  work.configuration = configuration;
  work.cases = {c.name};
  work.first_seed = seeds.first;
  work.last_seed = seeds.last;
  work.variables = variables;
  if (configuration.is_preloaded) work.variables.insert(c.settings.begin(), c.settings.end());
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
  const Configuration& configuration = *GetParam().configuration;
  const std::string& name = GetParam().of;
  EXPECT_TRUE(run_and_check(*find_case(name), configuration, seeds_of(name, configuration)))
      << "no emulated device";
}

// The cells of the matrix of order_cells.h: all of one file in one process.
struct FileOfCells {
  std::string file;  // its PTX
  const Configuration* configuration = nullptr;
};

std::vector<FileOfCells> files_of_cells() {
  std::vector<FileOfCells> all;
  for (const Configuration& configuration : configurations()) {
    if (configuration.is_gpu) continue;
    for (const std::string& file : case_files("order_")) all.push_back({file, &configuration});
  }
  return all;
}

class OrderCells : public testing::TestWithParam<FileOfCells> {};

// Under every schedule natively and as is chosen by default; else under one, which is another for each file.
Seeds seeds_of_cells(const FileOfCells& cells) {
  if (KLAP_FULL_TESTS) return {1, 20};
  const Configuration& how = *cells.configuration;
  if (!how.is_preloaded || how.name == "grid-host") return {1, kSchedules};
  const uint64_t seed = 1 + turn_of(cells.file + how.name) % kSchedules;
  return {seed, seed};
}

TEST_P(OrderCells, EqualTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Seeds seeds = seeds_of_cells(GetParam());
  Work work;
  work.configuration = *GetParam().configuration;
  work.first_seed = seeds.first;
  work.last_seed = seeds.last;
  work.cases = case_names("order_", GetParam().file);
  // Cases of one file have the same settings.
  if (work.configuration.is_preloaded) work.variables = find_case(work.cases.front())->settings;
  const Report report = differential::Run(work).wait();
  ASSERT_FALSE(report.is_missing_device());
  std::set<std::string> wrong;
  for (const Line& line : report.lines) {
    if (line.result != "equal") wrong.insert(line.name);
  }
  EXPECT_THAT(wrong, testing::IsEmpty());
  EXPECT_EQ(report.problem(work), "") << command_line(work) << "\n" << report.first_errors();
  if (!work.configuration.is_preloaded) return;
  ASSERT_TRUE(report.statistics.is_object()) << "klap_jit was not there";
  for (const std::string& name : work.cases) {
    const Case& c = *find_case(name);
    for (const Site& site : c.sites) expect_site(report.statistics, c, site, work.configuration);
  }
}

std::string name_of_cells(const testing::TestParamInfo<FileOfCells>& info) {
  std::string name =
      std::filesystem::path(info.param.file).stem().string() + "_" + info.param.configuration->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const FileOfCells& cells, std::ostream* out) {
  *out << cells.file << " in " << cells.configuration->name;
}

INSTANTIATE_TEST_SUITE_P(Cases, OrderCells, testing::ValuesIn(files_of_cells()), name_of_cells);

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
        run_and_check(*find_case(name), *GetParam(), {1, KLAP_SEEDS / 4},
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
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    if (!run_and_check(c, *GetParam(), {1, kRepetitionsOnGpu})) GTEST_SKIP() << "there is no GPU";
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

std::string test_name(const testing::TestParamInfo<Combination>& info) {
  std::string name = info.param.of + "_" + info.param.configuration->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const Combination& combination, std::ostream* out) {
  *out << combination.of << " in " << combination.configuration->name;
}

std::string configuration_name(const testing::TestParamInfo<const Configuration*>& info) {
  std::string name = info.param->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Differential, testing::ValuesIn(combinations()), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, LaunchLoops, testing::ValuesIn(put_off_configurations()), configuration_name);
INSTANTIATE_TEST_SUITE_P(Cases, RetriedLaunches, testing::ValuesIn(configurations_of_grids()),
                         configuration_name);
INSTANTIATE_TEST_SUITE_P(Cases, OnGpu, testing::ValuesIn(gpu_configurations()), configuration_name);
INSTANTIATE_TEST_SUITE_P(Cases, FewPendingLaunches, testing::ValuesIn(configurations_with_groups()),
                         configuration_name);

}  // namespace
}  // namespace klap::differential
