// Every golden file through the pipeline: the verdict on each site is the expected one; untouched PTX prints
// byte for byte; and where sites are rewritten, the result is accepted by ptxas and links with nvJitLink, for
// three targets or for one in turn.
#include "golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <stdexcept>

#include "assembled.h"
#include "in_turn.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "ptx/tree.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

// The expected texts of a golden file are those without the executor, which would take most of what is left.
// What it makes of all files stands in executor.remarks.
jit::Request warp_request(uint32_t sm = 90) {
  jit::Request request;
  request.sm = sm;
  request.promoting = false;
  request.setting = test::given({{"granularity", "warp"}});
  return request;
}

jit::Request executor_request(uint32_t sm = 90) {
  jit::Request request;
  request.sm = sm;
  request.by_sizes = false;
  request.promoting = false;
  request.setting = test::given({{"granularity", "grid"}, {"launcher", "host"}});
  return request;
}

jit::Request grid_request(uint32_t sm = 90, jit::Launcher launcher = jit::Launcher::Host,
                          jit::Granularity granularity = jit::Granularity::Grid) {
  jit::Request request;
  request.sm = sm;
  request.promoting = false;  // promotion_test.cpp
  request.by_sizes = false;   // forms_test.cpp
  request.setting = test::given(
      {{"granularity", to_string(granularity)}, {"launcher", to_string(launcher)}, {"executor", "off"}});
  return request;
}

jit::Request fused_request(uint32_t sm) {
  jit::Request request = grid_request(sm);
  request.setting = test::given({{"granularity", "grid"}, {"launcher", "fused"}, {"executor", "off"}});
  return request;
}

// The request with the ordering and the optimisations that the file asks for.
jit::Request as_asked(const Golden& golden, jit::Request request) {
  request.by_sizes = golden.optimisations().contains("flatten");
  request.setting = [others = request.setting, is_relaxed = golden.is_relaxed(),
                     optimisations = golden.optimisations()](
                        std::string_view key, const std::string& parent,
                        const std::string& child) -> std::optional<settings::Given> {
    if (is_relaxed && key == "ordering") return settings::Given{"relaxed", ""};
    if (const auto asked = optimisations.find(key); asked != optimisations.end())
      return settings::Given{asked->second, ""};
    return others ? others(key, parent, child) : std::nullopt;
  };
  return request;
}

std::string remark_text(const jit::SiteRemark& r) {
  std::string text = ptx::place({r.line, r.column}) + ": " + r.parent + " launches " + r.child + ": ";
  text +=
      r.rewritten ? "rewritten (" + r.granularity + ", " + r.launcher + "): " : "left (" + r.reason + "): ";
  text += r.detail + "\n";
  for (const std::string& note : r.notes) text += "  note: " + note + "\n";
  return text;
}

std::string first_word(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  return stem.substr(0, stem.find('-'));
}

class GoldenFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenFile, PrintsByteForByte) {
  const std::string ptx = read_golden(GetParam()).section("ptx");
  const ptx::Module module = ptx::parse(ptx, "golden");
  EXPECT_EQ(ptx, ptx::print(module));
  // The tree covers the text: every token lies in some item.
  size_t covered = 0;
  for (const ptx::Item& item : module.items) covered += item.tokens.size();
  EXPECT_EQ(module.tokens.size() - 1, covered);
}

TEST_P(GoldenFile, GivesTheExpectedRemarks) {
  const Golden golden = read_golden(GetParam());
  std::string text;
  bool as_named = false;
  for (const auto& remark : explain_module(jit::program_from_ptx(golden.section("ptx"), "golden"),
                                           as_asked(golden, grid_request()))) {
    text += remark_text(remark);
    as_named = as_named || remark.rewritten == (first_word(GetParam()) == "rewritten");
  }
  EXPECT_TRUE(as_named) << "no site is as the file's name says";
  expect_section(golden, "explain", text);
}

// The names of the files say what becomes of them over the grid. By warp the remarks of all stand in one
// file.
TEST_P(GoldenFile, GivesTheExpectedRemarksByWarp) {
  const Golden golden = read_golden(GetParam());
  std::string text;
  for (const auto& remark : explain_module(jit::program_from_ptx(golden.section("ptx"), "golden"),
                                           as_asked(golden, warp_request()))) {
    text += remark_text(remark);
  }
  expect_section(read_golden(KLAP_GOLDEN_DIR "/warp.remarks"), GetParam().stem().string(), text);
}

// The same for what is left over the grid, if the executor may run it. Where it does, the code assembles and
// links.
TEST_P(GoldenFile, GivesTheExpectedRemarksWithTheExecutor) {
  if (first_word(GetParam()) != "left") return;
  const Golden golden = read_golden(GetParam());
  const jit::Program program = jit::program_from_ptx(golden.section("ptx"), "golden");
  std::string text;
  bool is_executed = false;
  for (const auto& remark : explain_module(program, as_asked(golden, executor_request()))) {
    text += remark_text(remark);
    for (const char* how : {"executed in the order", "executed without order"})
      is_executed = is_executed || remark.detail.find(how) != std::string::npos;
  }
  expect_section(read_golden(KLAP_GOLDEN_DIR "/executor.remarks"), GetParam().stem().string(), text);
  if (!is_executed) return;
  std::vector<uint32_t> architectures = {90, 100};
  if (golden.section("ptx").find(".target sm_80") == std::string::npos) architectures.push_back(75);
  for (const uint32_t sm : in_turn(GetParam(), architectures)) {
    const jit::RewrittenModule module = rewrite_module(program, as_asked(golden, executor_request(sm)));
    EXPECT_FALSE(module.cubin.empty());
    EXPECT_NE(std::string::npos, module.cubin.find("klap_executor"));
  }
  // Waits of version 1 are split in whole programs alone.
  if (golden.section("ptx").find("cudaDeviceSynchronize") != std::string::npos) return;
  assembled(jit::rewrite_ptx(program.units[0], as_asked(golden, executor_request()), nullptr), 90);
}

TEST_P(GoldenFile, IsLeftWhereTheConfigurationSaysSo) {
  jit::Request request = grid_request();
  request.setting = test::given({{"granularity", "none"}});
  const auto program = jit::program_from_ptx(read_golden(GetParam()).section("ptx"), "golden");
  for (const auto& remark : explain_module(program, request)) {
    EXPECT_FALSE(remark.rewritten);
    EXPECT_EQ("config-none", remark.reason);
  }
}

constexpr std::array kArchitectures = {80, 90, 100};

// In the full run all architectures in each form of each file; else one, another one in each form of the
// file, so that every file is made for all of them.
std::vector<int> architectures_for(const std::filesystem::path& file, const std::string& form) {
  if (KLAP_FULL_TESTS) return {kArchitectures.begin(), kArchitectures.end()};
  static const std::vector<std::string> forms = {"grid_host",         "grid_device", "block_device",
                                                 "multiblock_device", "warp",        "grid_fused"};
  const auto at = std::ranges::find(forms, form);
  if (at == forms.end()) throw std::logic_error(form + " is not one of the forms");
  const size_t turn = turn_of(file) + static_cast<size_t>(at - forms.begin());
  return {kArchitectures[turn % kArchitectures.size()]};
}

class RewrittenFile : public testing::TestWithParam<std::filesystem::path> {
 protected:
  // True if `reason` is why all sites of this file are left where threads of the parent launch, some of them
  // because of others.
  static bool is_left_with(const std::string& reason, jit::Granularity granularity) {
    const Golden golden = read_golden(GetParam());
    const jit::Program program = jit::program_from_ptx(golden.section("ptx"), "golden");
    const auto remarks =
        explain_module(program, as_asked(golden, grid_request(90, jit::Launcher::Device, granularity)));
    const auto is = [](const std::string& why) {
      return [why](const jit::SiteRemark& remark) { return remark.reason == why; };
    };
    return std::ranges::any_of(remarks, is(reason)) &&
           std::ranges::all_of(remarks, [&](const jit::SiteRemark& remark) {
             return is(reason)(remark) || is("several-sites")(remark);
           });
  }

  // One for each rewritten parent, and one more that keeps the order of its launches where the first one may
  // not.
  static size_t expected_variants(const std::vector<jit::SiteRemark>& remarks) {
    std::set<std::string> parents, with_second, in_blocks;
    for (const jit::SiteRemark& remark : remarks) {
      if (remark.rewritten) parents.insert(remark.parent);
      if (std::ranges::count(remark.notes, "where that does not hold, the order is kept") != 0)
        with_second.insert(remark.parent);
      if (remark.detail.find("or in blocks where they are large") != std::string::npos)
        in_blocks.insert(remark.parent);
    }
    EXPECT_FALSE(parents.empty());
    return parents.size() + with_second.size() + in_blocks.size();
  }

  // Children that launch again need a consumer that the host enqueues.
  static bool is_for_host_only(jit::Granularity granularity) {
    return is_left_with("child-launches", granularity);
  }

  static void check(jit::Launcher launcher, jit::Granularity granularity = jit::Granularity::Grid) {
    const Golden golden = read_golden(GetParam());
    const std::string& ptx = golden.section("ptx");
    const jit::Program program = jit::program_from_ptx(ptx, "golden");
    const std::string rewritten = jit::rewrite_ptx(
        program.units[0], as_asked(golden, grid_request(90, launcher, granularity)), nullptr);
    EXPECT_EQ(ptx, rewritten.substr(0, ptx.size())) << "the originals must stay as they are";
    const std::string form = std::string(to_string(granularity)) + "_" + to_string(launcher);
    for (const int sm : architectures_for(GetParam(), form)) {
      SCOPED_TRACE(form);
      assembled(rewritten, sm);
      const jit::RewrittenModule module = rewrite_module(
          program, as_asked(golden, grid_request(static_cast<uint32_t>(sm), launcher, granularity)));
      EXPECT_FALSE(module.cubin.empty());
      ASSERT_EQ(expected_variants(module.remarks), module.variants.size());
      for (const jit::Variant& variant : module.variants) {
        EXPECT_EQ(launcher, variant.launcher);
        EXPECT_EQ(granularity, variant.granularity);
        EXPECT_NE(std::string::npos, module.cubin.find(".text." + variant.queues[0].consumer));
      }
    }
  }
};

TEST_P(GoldenFile, AssemblesAndLinksByWarp) {
  const Golden golden = read_golden(GetParam());
  const std::string& ptx = golden.section("ptx");
  const jit::Program program = jit::program_from_ptx(ptx, "golden");
  const std::string rewritten = jit::rewrite_ptx(program.units[0], as_asked(golden, warp_request()), nullptr);
  EXPECT_EQ(ptx, rewritten.substr(0, ptx.size())) << "the originals must stay as they are";
  if (rewritten.size() == ptx.size()) return;
  for (const int sm : architectures_for(GetParam(), "warp")) {
    assembled(rewritten, sm);
    const jit::RewrittenModule module =
        rewrite_module(program, as_asked(golden, warp_request(static_cast<uint32_t>(sm))));
    ASSERT_FALSE(module.variants.empty());
    for (const jit::Variant& variant : module.variants)
      EXPECT_NE(std::string::npos, module.cubin.find(".text." + variant.parent_variant));
  }
}

// Where the parent's own kernel may run the children, and why not elsewhere. What is made assembles and
// links.
TEST_P(RewrittenFile, RunsChildrenInTheParentsKernelWhereItMay) {
  const Golden golden = read_golden(GetParam());
  const jit::Program program = jit::program_from_ptx(golden.section("ptx"), "golden");
  const auto request = [&](uint32_t sm) { return as_asked(golden, fused_request(sm)); };
  std::string text;
  std::set<std::string> parents;
  for (const jit::SiteRemark& remark : explain_module(program, request(90))) {
    text += fmt::format("{} launches {}: ", remark.parent, remark.child);
    const auto note = std::ranges::find_if(remark.notes, [](const std::string& each) {
      return each.find("the parent's own kernel") != std::string::npos;
    });
    text += note == remark.notes.end() ? "the executor or nobody runs them\n" : *note + "\n";
    if (note != remark.notes.end() && !note->starts_with("not ")) parents.insert(remark.parent);
  }
  expect_section(read_golden(KLAP_GOLDEN_DIR "/fused.remarks"), GetParam().stem().string(), text);
  if (parents.empty()) return;
  const std::string rewritten = jit::rewrite_ptx(program.units[0], request(90), nullptr);
  for (const int sm : architectures_for(GetParam(), "grid_fused")) {
    assembled(rewritten, sm);
    const jit::RewrittenModule module = rewrite_module(program, request(static_cast<uint32_t>(sm)));
    std::set<std::string> fused;
    for (const jit::Variant& variant : module.variants) {
      if (variant.is_fused()) fused.insert(variant.parent);
    }
    EXPECT_EQ(parents, fused);
  }
}

TEST_P(RewrittenFile, AssemblesAndLinks) { check(jit::Launcher::Host); }
TEST_P(RewrittenFile, AssemblesAndLinksWhereTheDeviceLaunches) {
  using enum jit::Granularity;
  for (const auto granularity : in_turn<jit::Granularity>(GetParam(), {Grid, Block, MultiBlock})) {
    // Groups of blocks refuse what their queues have no room for, which a loop may wait for.
    const bool may_wait = granularity != Grid && is_left_with("parent-waits", granularity);
    if (!may_wait && !is_for_host_only(granularity)) check(jit::Launcher::Device, granularity);
  }
}

// Where there is machine code, the generated kernels stand in a unit of their own, which must declare all
// that they use: the variables of the program's unit, and shared memory anew.
TEST_P(RewrittenFile, LinksBesideItsMachineCode) {
  const Golden golden = read_golden(GetParam());
  const std::string& ptx = golden.section("ptx");
  jit::Program program = jit::program_from_ptx(ptx, "golden");
  program.units[0].cubin = assembled(ptx);
  std::vector<jit::Launcher> launchers = {jit::Launcher::Host};
  if (!is_for_host_only(jit::Granularity::Grid)) launchers.push_back(jit::Launcher::Device);
  for (const jit::Launcher launcher : in_turn(GetParam(), launchers)) {
    const jit::RewrittenModule module = rewrite_module(program, as_asked(golden, grid_request(90, launcher)));
    EXPECT_FALSE(module.cubin.empty());
    EXPECT_EQ(expected_variants(module.remarks), module.variants.size());
    const auto& notes = module.remarks.at(0).notes;
    const bool anew = std::ranges::any_of(
        notes, [](const std::string& note) { return note.find("assembled anew") != std::string::npos; });
    EXPECT_EQ(GetParam().stem() == "rewritten-variables", anew) << "of which one is internal to the unit";
  }
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& file) {
  std::string name = file.param.stem().string();
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

std::vector<std::filesystem::path> rewritten_files() {
  std::vector<std::filesystem::path> files = golden_files();
  std::erase_if(files, [](const auto& file) { return first_word(file) != "rewritten"; });
  return files;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFile, testing::ValuesIn(golden_files()), test_name);
INSTANTIATE_TEST_SUITE_P(All, RewrittenFile, testing::ValuesIn(rewritten_files()), test_name);

}  // namespace
}  // namespace klap::test
