// The value analyses on the benchmarks' kernels. What is expected was read off their sources: offsets are
// those of the parameters in the kernels' declarations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>

#include "analysis/facts/facts.h"
#include "analysis/promotion/promotion.h"
#include "analysis/values/values.h"
#include "fixture.h"
#include "jit/module.h"

namespace klap::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The kernels of all units of a benchmark program.
class Program {
 public:
  explicit Program(const fs::path& path) {
    const container::File file = container::open_file(path);
    for (const container::FileImage& image : file.images) {
      if (image.kind != container::ImageKind::WrapperV2) continue;
      for (const jit::Unit& unit : jit::program_from_fatbins(image.units, 90).units) {
        if (!unit.is_device_runtime && !unit.ptx.empty()) texts_.push_back(unit.ptx);
      }
    }
  }

  // The kernel whose mangled name begins so.
  [[nodiscard]] std::unique_ptr<Kernel> kernel(const std::string& prefix) const {
    for (const std::string& text : texts_) {
      const ptx::Module module = ptx::parse(text, prefix);
      for (const ptx::Function& f : module.functions) {
        const bool wanted =
            f.is_definition && f.kind == ptx::FunctionKind::Entry && f.name.starts_with(prefix);
        if (wanted) return std::make_unique<Kernel>(text, f.name);
      }
    }
    throw std::runtime_error("no kernel " + prefix);
  }

 private:
  std::vector<std::string> texts_;
};

class Benchmarks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(KLAP_BENCHMARK_DIR, none)) {
      programs_.emplace(entry.path().filename().string(), entry.path());
    }
  }
  void SetUp() override {
    if (programs_.empty()) GTEST_SKIP() << "THE BENCHMARKS ARE NOT BUILT: nothing in " KLAP_BENCHMARK_DIR;
  }
  static std::unique_ptr<Kernel> kernel(const std::string& program, const std::string& prefix) {
    const auto found = programs_.find(program);
    if (found == programs_.end()) throw std::runtime_error("benchmark " + program + " is not built");
    return Program(found->second).kernel(prefix);
  }
  // The values of the only site of a kernel.
  static analysis::SiteValues site(const std::string& program, const std::string& prefix) {
    const auto parent = kernel(program, prefix);
    const analysis::FunctionFacts facts(parent->module, *parent->function);
    const analysis::Values values(facts.flow);
    if (facts.sites.size() != 1) throw std::runtime_error(prefix + " has not one site");
    return site_values(values, facts.sites[0]);
  }

 private:
  static std::map<std::string, fs::path> programs_;
};
std::map<std::string, fs::path> Benchmarks::programs_;

// The programs whose recursion is promoted: the region that may overlap ends with the branch that leads to
// the launch, right in front of what the threads that launch do alone, and links find their arguments by
// looking back.
TEST_F(Benchmarks, Chains) {
  struct Case {
    const char *program, *kernel, *carried;
  };
  for (const Case& c :
       {Case{"los", "_Z4look", "carried by max.f32 of %"}, Case{"pd", "_Z3pad", "stepped by -1"},
        Case{"pt", "_Z9partition", "carried by add.s32 of %"},
        Case{"sc", "_Z7compact", "carried by add.s32 of %"},
        Case{"unq", "_Z6unique", "carried by add.s32 of %"}, Case{"upd", "_Z5unpad", "stepped by 1"}}) {
    const auto k = kernel(c.program, std::string(c.kernel) + "I");
    const std::string text = print_promotion(analysis::FunctionFacts(k->module, *k->function));
    EXPECT_THAT(text, AllOf(StartsWith("a chain of blocks of 512x1x1, 0 bytes"), HasSubstr(c.carried),
                            HasSubstr("condition: counted: "), HasSubstr("overlap: up to line "),
                            HasSubstr("threads go different ways from bra ("), HasSubstr("  look-back\n")))
        << c.program;
  }
}

TEST_F(Benchmarks, Moldable) {
  struct Case {
    const char *program, *kernel, *expected;
  };
  const Case yes[] = {
      {"bfs", "_Z5visit", "yes: 1-D index, if i < p[12]"},
      {"bfs", "_Z11expand_flat", "yes: 1-D index"},  // compares the index shifted
      {"sssp", "_Z11relax_edges", "yes: 1-D index, if i < p[64]"},
      {"gc", "_Z14note_neighbour", "yes: 1-D index, if i < p[12]"},
      {"bt", "_Z14compute_points", "yes: 1-D index, if i < p[12]"},
      {"bh", "_Z4walk", "yes: 1-D index, if i < p[36]"},
      {"mstf", "_Z11offer_edges", "yes: 1-D index, if i < p[84]"},
      {"mstv", "_Z11offer_edges", "yes: 1-D index, if i < p[84]"},
      {"ccl", "_Z10join_strip", "yes: 1-D index, if i < p[20]"},
      {"ccl", "_Z10take_roots", "yes: 1-D index, if i < p[16]*p[20]*p[24]"},
      {"ccl", "_Z12join_borders", "yes: 1-D index"},  // compares the index divided
      {"rbfs", "_Z11search_flat", "yes: 1-D index"},
      {"sp", "_Z7satisfy", "yes: 1-D index, if i < p[20]"},
      {"sp", "_Z15update_warnings", "yes: 1-D index, if i < p[8]"},
      {"sp", "_Z14update_surveys", "yes: 1-D index, if i < p[4]"},
      {"sp", "_Z13update_biases", "yes: 1-D index, if i < p[0]"},
      {"sp", "_Z13decimate_flat", "yes: 1-D index, number of threads"},  // the stride is shifted
      {"pagerank", "_Z11update_flat", "yes: 1-D index, if i < p[56]"},
  };
  for (const Case& c : yes) {
    const auto k = kernel(c.program, c.kernel);
    EXPECT_EQ(c.expected,
              to_string(analysis::moldable(k->flow, k->values.registers, k->values.reaching, k->symbolic)))
        << c.program << " " << c.kernel;
  }
  const Case no[] = {
      {"spmv2d", "_Z11row_product", "tid.x"},  // one thread of each block counts the blocks
      {"spmv", "_Z11row_product", "warp operation"},
      {"pagerank", "_Z10pull_links", "warp operation"},
      {"pagerank", "_Z16collect_dangling", "warp operation"},
      {"gc", "_Z12take_colours", "barrier"},
      {"bt", "_Z6gather", "tid.x % 32"},
      {"bt", "_Z15tessellate_flat", "warp operation"},
      {"ccl", "_Z10begin_runs", "warp operation"},
      {"td", "_Z12add_children", "warp operation"},
      {"bfs", "_Z6expandILb0E", "cannot be seen"},  // launches
  };
  for (const Case& c : no) {
    const auto k = kernel(c.program, c.kernel);
    EXPECT_THAT(to_string(analysis::moldable(k->flow, k->values.registers, k->values.reaching, k->symbolic)),
                AllOf(StartsWith("no: "), HasSubstr(c.expected)))
        << c.program << " " << c.kernel;
  }
}

// The offsets of the arguments that are the same for all threads that launch.
std::vector<uint32_t> uniform_arguments(const analysis::SiteValues& site) {
  std::vector<uint32_t> out;
  for (const auto& argument : site.arguments) {
    if (argument.operand.uniform == analysis::Uniform::Grid) out.push_back(argument.offset);
  }
  return out;
}

TEST_F(Benchmarks, UniformArguments) {
  struct Case {
    const char *program, *kernel;
    std::vector<uint32_t> uniform;
    size_t arguments;
  };
  const Case cases[] = {
      // neighbour, next, distance, next_frontier, next_size; not begin and degree
      {"bfs", "_Z6expandILb0E", {0, 16, 24, 32, 40}, 7},
      {"gc", "_Z15note_neighboursILb0E", {0, 20, 24, 32, 40}, 8},
      // 20 to 23 are the padding behind a structure, copied byte by byte
      {"bh", "_Z16walk_from_leavesILb0E", {0, 8, 16, 20, 21, 22, 23, 24, 40}, 11},
      {"bt", "_Z10tessellateILb0E", {0}, 3},
      {"sp", "_Z8decimateILb0E", {0, 8, 32}, 6},
      {"ccl", "_Z11join_stripsILb0E", {0, 8, 24}, 5},
      {"rbfs", "_Z11search_fromILb0E", {0, 8, 16, 32}, 5},
  };
  for (const Case& c : cases) {
    const analysis::SiteValues values = site(c.program, c.kernel);
    EXPECT_EQ(c.arguments, values.arguments.size()) << c.program << "\n" << to_string(values);
    EXPECT_EQ(c.uniform, uniform_arguments(values)) << c.program << "\n" << to_string(values);
    EXPECT_EQ(analysis::Uniform::Thread, values.reached) << "launches stand under a condition";
  }
}

// "degree" is a difference of two loads: (x - y + 31) / 32.
TEST_F(Benchmarks, GridsAndBlocks) {
  const analysis::SiteValues bfs = site("bfs", "_Z6expandILb0E");
  EXPECT_THAT(to_string(bfs.grid[0].value), testing::MatchesRegex(R"(\(%r[0-9]+ - %r[0-9]+ \+ 31\) / 32)"));
  EXPECT_TRUE(affine(bfs.grid[0].value.exact()));
  EXPECT_EQ(analysis::Uniform::Thread, bfs.grid[0].uniform);
  EXPECT_EQ(1u, bfs.grid[1].value.constant());
  EXPECT_EQ(1u, bfs.grid[2].value.constant());
  EXPECT_EQ(32u, bfs.block[0].value.constant());
  EXPECT_EQ(analysis::Uniform::Grid, bfs.block[0].uniform);
  EXPECT_EQ(0u, bfs.shared.value.constant());
  const analysis::SiteValues spmv = site("spmv", "_Z8multiplyILb0E");
  EXPECT_EQ(1u, spmv.grid[0].value.constant());
}

}  // namespace
}  // namespace klap::test
