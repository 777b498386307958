// The contract of the device runtime (contract_forms.h): its cases under every schedule, and the table
// contract.md, which says of each what becomes of its launches.
//
// Cases of other files that carry a statement are rows of the table as well. The Differential suite runs
// them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "case.h"
#include "jit/module.h"
#include "runs.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::differential {
namespace {

constexpr uint64_t kSchedules = 6;  // which the seeds go through in turn (device.cpp)
constexpr size_t kLeastRows = 150;

constexpr std::string_view kContract = "contract_";  // begins the names of the cases that are made for it

// ---- the table ----

using Verdicts = std::map<std::string, std::set<std::string>>;  // by parent

std::string executed_or_left(const jit::SiteRemark& remark) {
  if (!remark.rewritten) return "left: " + remark.reason;
  const bool is_executed = remark.detail.find("executed in the order") != std::string::npos ||
                           remark.detail.find("executed without order") != std::string::npos;
  return is_executed ? "executed" : "rewritten otherwise";
}

Verdicts verdicts_in(const Case& c) {
  test::GivenValues values = {{"executor", "on"}, {"granularity", "grid"}, {"launcher", "host"}};
  const std::map<std::string, std::string> keys = {{"KLAP_ORDERING", "ordering"},
                                                   {"KLAP_THRESHOLD", "threshold"}};
  for (const auto& [variable, key] : keys) {
    if (const auto found = c.settings.find(variable); found != c.settings.end()) values[key] = found->second;
  }
  static std::map<std::pair<std::string, test::GivenValues>, Verdicts> known;
  const auto [entry, is_new] = known.try_emplace({c.file, values});
  if (!is_new) return entry->second;
  jit::Request request;
  request.setting = test::given(values);
  const std::string path = (std::filesystem::path(KLAP_CASE_PTX) / c.file).string();
  for (const jit::SiteRemark& r : explain_module(jit::program_from_ptx(read_file(path), c.file), request))
    entry->second[r.parent].insert(executed_or_left(r));
  return entry->second;
}

// The verdicts on the launch sites of the kernels that the host launches.
std::set<std::string> verdicts_of(const Case& c) {
  Verdicts in_file = verdicts_in(c);
  std::set<std::string> verdicts;
  for (const Step& step : c.steps) {
    if (step.kind == Step::Kind::Launch) verdicts.merge(in_file[step.launch.kernel]);
  }
  return verdicts;
}

std::map<std::string, std::vector<const Case*>> rows_by_file() {
  std::map<std::string, std::vector<const Case*>> files;
  for (const Case& c : all_cases()) {
    if (!c.contract.empty()) files[c.file].push_back(&c);
  }
  return files;
}

std::string contract_table() {
  std::string text =
      "# The contract of the device runtime, and the cases that test it\n\n"
      "Statements about launches from device code, as the CUDA programming guide makes them in its chapter "
      "on "
      "dynamic parallelism, in our words. *Form*: how the case's program does it, and who launches the grid "
      "that "
      "does. *Becomes*: what becomes of the launches of the grid that the host launches, over the grid and "
      "with "
      "the executor on. *executed*: the executor runs them and all that they lead to. *rewritten otherwise*: "
      "another strategy runs them. *left*: they stay the program's own, for that reason. Every case equals "
      "the "
      "CPU reference natively and preloaded, on the emulated GPU with weak memory and the search for races, "
      "under "
      "20 seeds in the full run. Made from the cases by `contract_test.cpp`.\n";
  for (auto& [file, cases] : rows_by_file()) {
    std::ranges::stable_sort(cases, {}, [](const Case* c) { return std::tie(c->contract, c->name); });
    text += fmt::format("\n## `{}`\n\n| Statement | Form | Becomes | Case |\n| --- | --- | --- | --- |\n",
                        std::filesystem::path(file).stem().string());
    for (const Case* c : cases)
      text += fmt::format("| {} | {} | {} | `{}` |\n", c->contract, c->form, fmt::join(verdicts_of(*c), "; "),
                          c->name);
  }
  return text;
}

TEST(ContractTable, IsWhatTheCasesSay) {
  const std::string is = contract_table();
  if (std::getenv("KLAP_REBASE") != nullptr) write_file(KLAP_CONTRACT_TABLE, is);
  EXPECT_EQ(read_file(KLAP_CONTRACT_TABLE), is) << "KLAP_REBASE=1 writes " << KLAP_CONTRACT_TABLE;
}

TEST(ContractTable, HasARowForEachCase) {
  size_t rows = 0;
  for (const Case& c : all_cases()) {
    if (!c.contract.empty()) ++rows;
    EXPECT_EQ(c.contract.empty(), c.form.empty()) << c.name;
    EXPECT_TRUE(!c.name.starts_with(kContract) || !c.contract.empty()) << c.name;
  }
  EXPECT_GE(rows, kLeastRows);
}

// ---- running the cases: all of one file in one process ----

struct FileOfRows {
  std::string file;  // its PTX
  const Configuration* configuration = nullptr;
};

// The executor works over grids that the host launches. In the full run the other forms have their turn, too.
std::vector<FileOfRows> files_of_rows() {
  std::vector<FileOfRows> all;
  for (const Configuration& configuration : configurations()) {
    if (configuration.is_gpu) continue;
    if (!KLAP_FULL_TESTS && configuration.is_preloaded && configuration.name != "grid-host") continue;
    for (const std::string& file : case_files(kContract)) all.push_back({file, &configuration});
  }
  return all;
}

struct Seeds {
  uint64_t first = 1, last = 1;
};

// In the full run all that the table promises, else one schedule, which differs from file to file.
Seeds seeds_of(const std::string& file, const Configuration& configuration) {
  if (KLAP_FULL_TESTS)
    return {1, configuration.is_preloaded && configuration.name != "grid-host" ? kSchedules : 20};
  const uint64_t seed = 1 + turn_of(file) % kSchedules;
  return {seed, seed};
}

class ContractCases : public testing::TestWithParam<FileOfRows> {};

// A rewritten parent that is not redirected would only show that the program runs natively.
void expect_redirected(const Case& c, const nlohmann::json& statistics) {
  Verdicts verdicts = verdicts_in(c);
  for (const Step& step : c.steps) {
    if (step.kind != Step::Kind::Launch) continue;
    const std::set<std::string>& of_sites = verdicts[step.launch.kernel];
    const bool is_left = std::ranges::any_of(of_sites, [](const auto& v) { return v.starts_with("left"); });
    if (of_sites.empty() || is_left) continue;
    EXPECT_TRUE(statistics.at("launches").at("redirected").contains(step.launch.kernel))
        << "no launch of " << step.launch.kernel << " ran its variant";
  }
}

TEST_P(ContractCases, EqualTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  Work work;
  work.configuration = *GetParam().configuration;
  work.cases = case_names(kContract, GetParam().file);
  const Seeds seeds = seeds_of(GetParam().file, work.configuration);
  work.first_seed = seeds.first;
  work.last_seed = seeds.last;
  work.limit = std::chrono::seconds(280);
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
  if (work.configuration.name != "grid-host") return;
  ASSERT_TRUE(report.statistics.is_object()) << "klap_jit was not there";
  for (const std::string& name : work.cases) expect_redirected(*find_case(name), report.statistics);
}

std::string name_of_rows(const testing::TestParamInfo<FileOfRows>& info) {
  std::string name =
      std::filesystem::path(info.param.file).stem().string() + "_" + info.param.configuration->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const FileOfRows& rows, std::ostream* out) {
  *out << rows.file << " in " << rows.configuration->name;
}

INSTANTIATE_TEST_SUITE_P(Cases, ContractCases, testing::ValuesIn(files_of_rows()), name_of_rows);

}  // namespace
}  // namespace klap::differential
