// The pipeline on real programs, and what it does when its tools are missing or its input is bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "assembled.h"
#include "container/elf64.h"
#include "golden.h"
#include "in_turn.h"
#include "jit/compile/toolchain.h"
#include "jit/module.h"
#include "jit/optimise/optimisations.h"
#include "jit/plan/options.h"
#include "settings/table.h"
#include "support/error.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::jit {
namespace {

namespace fs = std::filesystem;
using test::assembled;

Request grid_request() {
  Request request;
  request.by_sizes = false;
  request.sm = 90;
  return request;
}

std::string fixture() { return read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx"); }

std::map<std::string, std::string> kernel_code(const std::string& cubin) {
  std::map<std::string, std::string> out;
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), "cubin");
  for (const container::ElfSection& section : elf.sections()) {
    const std::string_view name = elf.name(section);
    if (!name.starts_with(".text.")) continue;
    const auto bytes = elf.content(section);
    out.emplace(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return out;
}

bool is_kernel(const std::string& cubin, const std::string& text_section) {
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), "cubin");
  return elf.find(".nv.constant0." + text_section.substr(std::string(".text.").size())) != nullptr;
}

// ---- every CUDA program that the tests and benchmarks build ----

std::vector<fs::path> programs() {
  std::vector<fs::path> out;
  for (const char* folder : {KLAP_PROGRAM_DIR, KLAP_BENCHMARK_DIR}) {
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(folder, ec)) {
      const bool runs = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
      if (entry.is_regular_file() && runs) out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class RealProgram : public testing::TestWithParam<fs::path> {};

void expect_linked_with_originals_untouched(const fs::path& path, Launcher launcher) {
  Request request = grid_request();
  request.setting = test::given({{"granularity", "grid"}, {"launcher", to_string(launcher)}});
  const container::File file = container::open_file(path);
  size_t sites = 0;
  for (const container::FileImage& image : file.images) {
    if (image.kind != container::ImageKind::WrapperV2) continue;
    const Program program = program_from_fatbins(image.units, 90);
    const RewrittenModule module = rewrite_module(program, request);
    sites += module.remarks.size();
    for (const SiteRemark& remark : module.remarks) {
      EXPECT_NE("build-failed", remark.reason) << remark.parent << ": " << remark.detail;
    }
    if (module.cubin.empty()) continue;
    const auto linked = kernel_code(module.cubin);
    for (const Unit& unit : program.units) {
      if (unit.is_device_runtime || unit.cubin.empty()) continue;
      if (unit.ptx.find("__klap_device_synchronize") != std::string::npos) continue;  // its kernels are split
      for (const auto& [name, code] : kernel_code(unit.cubin)) {
        // The linker drops functions that nothing calls, never kernels.
        if (!is_kernel(unit.cubin, name) && !linked.contains(name)) continue;
        ASSERT_TRUE(linked.contains(name)) << name;
        // Relocations are resolved in the linked image; everything else must be the same.
        EXPECT_EQ(code.size(), linked.at(name).size()) << name;
      }
    }
  }
  testing::Test::RecordProperty("sites", static_cast<int>(sites));
}

TEST_P(RealProgram, LinksWithItsOriginalsUntouched) {
  for (const Launcher launcher : test::in_turn<Launcher>(GetParam(), {Launcher::Host, Launcher::Device}))
    expect_linked_with_originals_untouched(GetParam(), launcher);
}

INSTANTIATE_TEST_SUITE_P(All, RealProgram, testing::ValuesIn(programs()),
                         [](const auto& param) { return param.param.stem().string(); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealProgram);

TEST(Pipeline, IsTestedOnPrograms) { EXPECT_GE(programs().size(), 4u) << "the CUDA programs were not built"; }

// ---- what does not build ----

// The fixture with other names for its kernels.
std::string second_fixture() {
  std::string text = fixture();
  for (const auto& [from, to] : {std::pair<std::string, std::string>("_Z6parent", "_Z6second"),
                                 std::pair<std::string, std::string>("_Z5child", "_Z5grown")}) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

// A unit whose PTX is not what its machine code was made from, and not accepted: its site alone is left.
TEST(Pipeline, LeavesTheSiteThatDoesNotBuild) {
  Program program = program_from_ptx(fixture(), "good");
  program.units[0].cubin = assembled(fixture());
  const std::string text = second_fixture();
  std::string bad = text;
  bad.insert(bad.find("\tadd.s32 \t%r6, %r1, 31;"), "\tfrobnicate.b32 %r2;\n");
  program.units.push_back(program_from_ptx(bad, "bad").units[0]);
  program.units[1].cubin = assembled(text);
  const RewrittenModule module = rewrite_module(program, grid_request());
  ASSERT_EQ(2u, module.remarks.size());
  EXPECT_TRUE(module.remarks[0].rewritten) << module.remarks[0].detail;
  EXPECT_FALSE(module.remarks[1].rewritten);
  EXPECT_EQ("build-failed", module.remarks[1].reason);
  EXPECT_THAT(module.remarks[1].detail, testing::HasSubstr("frobnicate"));
  ASSERT_EQ(1u, module.variants.size());
  EXPECT_EQ("_Z6parentPiPKi", module.variants[0].parent);
}

// ---- options ----

TEST(Options, SplitWhatChangesCode) {
  EXPECT_EQ((BuildOptions{.register_cap = 64}), parse_options("-maxrregcount=64"));
  EXPECT_EQ((BuildOptions{.register_cap = 32, .code_changing = {"-O1", "-dlcm=cg"}}),
            parse_options("-O1 -dlcm=cg --compile-only  -maxrregcount=32 "));
  EXPECT_EQ((BuildOptions{.line_info = true}), parse_options("--generate-line-info -v --compile-only"));
  EXPECT_EQ((BuildOptions{.code_changing = {"--fmad=false"}}), parse_options("--fmad false"));
}

// Without machine code both units have to be assembled, and one link has one set of options.
TEST(Options, ThatDifferBetweenUnitsLeaveTheSite) {
  Program program = program_from_ptx(fixture() + "// options test\n", "launching");
  program.units[0].options = "-O1";
  Unit other;
  other.name = "other";
  other.ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry other() { ret; }\n";
  program.units.push_back(other);
  const RewrittenModule left = rewrite_module(program, grid_request());
  EXPECT_TRUE(left.cubin.empty());
  ASSERT_EQ(1u, left.remarks.size());
  EXPECT_EQ("unit-options", left.remarks[0].reason);
  EXPECT_EQ("other: units built with different options would have to be assembled together",
            left.remarks[0].detail);
  for (const char* shared :
       {"-O1", "-O2 -dlcm=cg", "--fmad false", "-g --dont-merge-basicblocks --return-at-end"}) {
    program.units[0].options = program.units[1].options = shared;
    EXPECT_FALSE(rewrite_module(program, grid_request()).cubin.empty()) << shared;
  }
  program.units[0].options = program.units[1].options = "--no-such-option";
  EXPECT_THROW(rewrite_module(program, grid_request()),
               Error);  // the shim then loads the program's own image
}

// ---- naming and caching ----

TEST(Pipeline, NamesVariantsAfterTheirKernels) {
  const RewrittenModule module = rewrite_module(program_from_ptx(fixture(), "fixture"), grid_request());
  ASSERT_EQ(1u, module.variants.size());
  const Variant& v = module.variants[0];
  EXPECT_EQ("_Z6parentPiPKi", v.parent);
  EXPECT_THAT(v.parent_variant, testing::StartsWith("_Z6parentB18klap_grid_"));
  EXPECT_THAT(v.queues.at(0).consumer, testing::StartsWith("_Z5childB"));
  EXPECT_EQ(2u, v.parent_param_count);
  EXPECT_EQ(16u, v.queue_param_offset);
  EXPECT_TRUE(v.in_slices);
  EXPECT_EQ(8u, v.queues.at(0).record_bytes) << "its grid's x and one argument";
  EXPECT_EQ(256u, v.queues.at(0).consumer_block_threads);
  EXPECT_EQ(32u, v.queues.at(0).child_block_threads);
}

// The program may allow a child less than its launches ask for, and CUDA then refuses them.
TEST(Pipeline, VariantsNameTheSharedMemoryThatChildrenNeed) {
  const std::string golden = KLAP_GOLDEN_DIR "/rewritten-child-dynamic-shared-memory.golden";
  for (const char* launcher : {"host", "device"}) {
    Request request = grid_request();
    request.setting = test::given({{"launcher", launcher}});
    const RewrittenModule module =
        rewrite_module(program_from_ptx(test::read_golden(golden).section("ptx"), "golden"), request);
    ASSERT_EQ(1u, module.variants.size()) << launcher;
    const std::vector<SharedLimit>& limits = module.variants[0].queues.at(0).shared_limits;
    ASSERT_EQ(1u, limits.size()) << launcher;
    EXPECT_EQ(module.variants[0].queues[0].child, limits[0].kernel);
    EXPECT_EQ(128u, limits[0].bytes);
    EXPECT_FALSE(limits[0].is_limit) << "it may be larger";
  }
  Request request = grid_request();
  request.setting = test::given({{"granularity", "warp"}});
  const RewrittenModule module =
      rewrite_module(program_from_ptx(test::read_golden(golden).section("ptx"), "golden"), request);
  ASSERT_EQ(1u, module.variants.at(0).shared_limits.size());
  EXPECT_EQ(128u, module.variants[0].shared_limits[0].bytes);
}

// A parent that may wait for other blocks is launched by each warp only, and its variant says so.
TEST(Pipeline, VariantsSayThatTheirParentWaits) {
  Request request = grid_request();
  request.setting = test::given({{"granularity", "warp"}});
  std::string text = fixture();
  const auto waits = [&] {
    const RewrittenModule module = rewrite_module(program_from_ptx(text, "fixture"), request);
    EXPECT_EQ(1u, module.variants.size());
    return !module.variants.empty() && module.variants[0].parent_waits;
  };
  EXPECT_FALSE(waits());
  const std::string end = "$L__BB1_3:\n";
  text.insert(text.find(end) + end.size(),
              "\tld.global.u32 %r11, [%rd1];\n\tsetp.eq.s32 %p2, %r11, 0;\n\t@%p2 bra $L__BB1_3;\n");
  EXPECT_TRUE(waits());
}

TEST(Pipeline, VariantsTakeNoSliceWhereTheCallerKnowsNone) {
  Request request = grid_request();
  request.slicing = false;
  const RewrittenModule module = rewrite_module(program_from_ptx(fixture(), "fixture"), request);
  ASSERT_EQ(1u, module.variants.size());
  EXPECT_FALSE(module.variants[0].in_slices);
}

TEST(Pipeline, BuildsAModuleOnceHoweverManyThreadsLoadIt) {
  const std::string text = fixture() + "// cache test\n";
  const auto before = toolchain_calls();
  std::vector<std::thread> threads;
  std::atomic<int> fresh{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const RewrittenModule module = rewrite_module(program_from_ptx(text, "fixture"), grid_request());
      EXPECT_FALSE(module.cubin.empty());
      if (!module.from_memory_cache) ++fresh;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(1, fresh.load());
  EXPECT_EQ(before.nvjitlink + 1, toolchain_calls().nvjitlink);
}

TEST(Pipeline, DumpsEveryStage) {
  Request request = grid_request();
  std::map<std::string, size_t> dumped;
  request.dump = [&](const Stage& stage) { dumped[stage.file] = stage.bytes.size(); };
  rewrite_module(program_from_ptx(fixture() + "// dump test\n", "fixture"), request);
  for (const char* name :
       {"unit0.ptx", "unit0.parse.txt", "site0.sites.txt", "site0.legality.txt", "site0.plan.txt",
        "unit0.kernel0.splice.ptx", "unit0.kernel0.aggregate.ptx", "unit0.kernel1.aggregate.ptx",
        "unit0.klap.ptx", "link.txt", "linked.txt", "linked.cubin"})
    EXPECT_GT(dumped[name], 0u) << name;
}

// ---- bad input ----

TEST(Pipeline, SaysWhereBrokenPtxIsBroken) {
  std::string text = fixture();
  text.insert(text.find("call.uni"), "\x02");
  try {
    rewrite_module(program_from_ptx(text, "broken.ptx"), grid_request());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Parse, error.code());
    EXPECT_THAT(error.what(), testing::StartsWith("broken.ptx:"));
  }
}

TEST(Link, FailsOnUndefinedSymbolsAndGarbage) {
  const std::string undefined =
      ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func nowhere();\n.visible .entry k() { "
      "call.uni nowhere; ret; }\n";
  EXPECT_THROW(link_to_cubin({{LinkInputKind::Ptx, undefined, "unit"}}, {"-arch=sm_90"}), Error);
  EXPECT_THROW(link_to_cubin({{LinkInputKind::Ptx, "not PTX", "unit"}}, {"-arch=sm_90"}), Error);
  EXPECT_THROW(link_to_cubin({{LinkInputKind::Cubin, "not a cubin", "unit"}}, {"-arch=sm_90"}), Error);
  EXPECT_THROW(link_to_cubin({}, {"-no-such-option"}), Error);
}

// In a fresh process, because an opened library stays open.
void expect_toolchain_error(const char* variable) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv(variable, "/nowhere/lib.so", 1);
        try {
          rewrite_module(program_from_ptx(fixture(), "fixture"), grid_request());
        } catch (const Error& error) {
          fprintf(stderr, "%s", error.what());
          _exit(error.code() == ErrorCode::Toolchain ? 7 : 1);
        }
        _exit(0);
      },
      testing::ExitedWithCode(7), variable);
}

TEST(Toolchain, SaysHowToMendMissingNvrtc) { expect_toolchain_error("KLAP_NVRTC"); }
TEST(Toolchain, SaysHowToMendMissingNvJitLink) { expect_toolchain_error("KLAP_NVJITLINK"); }

TEST(Optimisations, AreNamedAsTheirSettings) {
  for (const Optimisation& optimisation : optimisations())
    EXPECT_NE(nullptr, settings::find_of_launch(optimisation.name)) << optimisation.name;
}

TEST(Toolchain, ExplainNeedsNeither) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("KLAP_NVRTC", "/nowhere/lib.so", 1);
        setenv("KLAP_NVJITLINK", "/nowhere/lib.so", 1);
        const auto remarks = explain_module(program_from_ptx(fixture(), "fixture"), grid_request());
        _exit(remarks.size() == 1 && remarks[0].rewritten ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Toolchain, ReportsTheCompilersLog) {
  try {
    compile_to_ptx("this is not C++", "bad.cu", {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Toolchain, error.code());
    EXPECT_THAT(error.what(), testing::HasSubstr("bad.cu"));
  }
}

}  // namespace
}  // namespace klap::jit
