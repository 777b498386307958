// The analyses on the code of the benchmark programs, as nvcc made it: nothing in it is unknown to them, and
// the pressure estimate goes along with the registers that ptxas really takes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <regex>
#include <span>

#include "analysis/graph/dominance.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/loops.h"
#include "analysis/graph/reaching.h"
#include "container/elf64.h"
#include "container/image.h"
#include "graph_fixture.h"
#include "support/file.h"

namespace klap::analysis {
namespace {

namespace fs = std::filesystem;

// The PTX of a program, without that of CUDA's device runtime.
std::vector<std::string> ptx_of(const fs::path& program) {
  std::vector<std::string> out;
  const container::File file = container::open_file(program);
  for (const container::FileImage& image : file.images) {
    for (const container::Fatbin& unit : image.units) {
      for (const container::FatbinEntry& entry : unit.entries) {
        if (entry.is_ptx()) out.push_back(entry.payload());
      }
    }
  }
  std::erase_if(
      out, [](const std::string& text) { return text.find("cudaDeviceGetLimit(") != std::string::npos; });
  return out;
}

std::vector<fs::path> programs() {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(KLAP_BENCHMARK_DIR, none)) {
    const bool runs = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    if (entry.is_regular_file() && runs) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(RealCode, IsFullyUnderstood) {
  if (programs().empty()) GTEST_SKIP() << "no benchmark program was built";
  size_t functions = 0, loops = 0;
  for (const fs::path& program : programs()) {
    for (const std::string& text : ptx_of(program)) {
      const ptx::Module m = ptx::parse(text, program.filename());
      for (const ptx::Function& f : m.functions) {
        if (!f.is_definition) continue;
        SCOPED_TRACE(program.filename().string() + ": " + f.name);
        const ControlFlow flow(m, f);
        const Dominance dominance(flow);
        const Loops found(flow);
        const VirtualRegisters registers(flow);
        const Liveness liveness(flow, registers);
        const ReachingDefinitions reaching(flow, registers, liveness);
        for (uint32_t i : registers.unknown_instructions())
          ADD_FAILURE() << "unknown opcode: " << m.full_opcode(*flow.instructions()[i].statement);
        EXPECT_FALSE(flow.has_unknown_branch());
        EXPECT_TRUE(dominance.control_known() && found.known() && liveness.known() && reaching.known());
        for (const Loop& loop : found.all()) EXPECT_TRUE(loop.is_natural());  // nvcc makes no others
        for (const BasicBlock& block : flow.blocks())
          EXPECT_TRUE(block.reachable) << "line of block " << block.first;
        ++functions;
        loops += found.all().size();
      }
    }
  }
  EXPECT_GT(functions, 100u);
  EXPECT_GT(loops, 100u);
}

struct Assembled {
  std::string cubin, log;
};
Assembled assemble(const std::string& text) {
  const std::string file = testing::TempDir() + fmt::format("klap_graph_{}.ptx", getpid());
  write_file(file, text);
  const std::string command =
      fmt::format("{0} -v -c -arch=sm_90 -o {1}.cubin {1} 2>{1}.log", KLAP_PTXAS, file);
  EXPECT_EQ(0, std::system(command.c_str())) << read_file(file + ".log") << text;  // NOLINT(cert-env33-c)
  Assembled out{fs::exists(file + ".cubin") ? read_file(file + ".cubin") : "", read_file(file + ".log")};
  for (const char* suffix : {"", ".cubin", ".log"}) fs::remove(file + suffix);
  return out;
}

// Kernel -> registers, as `ptxas -v` reports them.
std::map<std::string, uint32_t> registers_by_ptxas(const std::string& text) {
  const std::string log = assemble(text).log;
  std::map<std::string, uint32_t> out;
  static const std::regex kReport(R"(entry function '([^']+)'|Used (\d+) registers)");
  std::string kernel;
  for (std::sregex_iterator at(log.begin(), log.end(), kReport), end; at != end; ++at) {
    if ((*at)[1].matched) {
      kernel = (*at)[1];
    } else if (!kernel.empty()) {
      out[kernel] = static_cast<uint32_t>(std::stoul((*at)[2]));
      kernel.clear();
    }
  }
  return out;
}

std::string machine_code(const std::string& text) {
  const std::string cubin = assemble(text).cubin;
  if (cubin.empty()) return "";
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), "cubin");
  const container::ElfSection* code = elf.find(".text.k");
  if (code == nullptr) return "";
  const auto bytes = elf.content(*code);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The kernel's text with every register named by its number, all declared at the top.
std::string with_registers_by_number(const Kernel& k, const VirtualRegisters& registers) {
  const ptx::Module& m = *k.module;
  const uint32_t open = m.tokens[k.function->body.tokens.first].end;
  std::string out = m.source.substr(0, open);
  for (uint32_t reg = 0; reg < registers.all().size(); ++reg)
    out += fmt::format(".reg {} %u{};\n", registers[reg].type, reg);
  uint32_t copied = open;
  for (uint32_t i = 0; i < k.flow->instructions().size(); ++i) {
    const ptx::TokenRange tokens = k.flow->instructions()[i].statement->tokens;
    for (uint32_t t = tokens.first; t < tokens.last; ++t) {
      const uint32_t reg = registers.find(i, m.text(t));
      if (reg == VirtualRegisters::kNone) continue;
      out += m.source.substr(copied, m.tokens[t].begin - copied) + fmt::format("%u{}", reg);
      copied = m.tokens[t].end;
    }
  }
  return out + m.source.substr(copied);
}

// Names resolved otherwise would store other values: the code would differ.
TEST(RealCode, NamesMeanTheRegistersThatPtxasTakesThemFor) {
  const Kernel k(R"(
    .reg .b32 %ra<4>;
    ld.param.u64 %rd1, [k_param_0];
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r5, [%rd1+4];
    ld.global.u32 %ra3, [%rd1+8];
    {
      add.u32 %r1, %r1, 2;
      .reg .b32 %r<3>;
      add.u32 %r1, %r5, 3;
      st.global.u32 [%rd1+12], %r1;
      { .reg .b32 %r5; mov.u32 %r5, %r1; add.u32 %r1, %r5, %ra3; st.global.u32 [%rd1+16], %r5; }
      { .reg .u64 %r5; ld.global.u64 %r5, [%rd1+40]; st.global.u64 [%rd1+24], %r5; }
      st.global.u32 [%rd1+32], %r1;
    }
    st.global.u32 [%rd1+36], %r1;
    ret;)");
  const VirtualRegisters registers(*k.flow);
  const std::string renamed = with_registers_by_number(k, registers);
  const std::string code = machine_code(k.module->source);
  EXPECT_FALSE(code.empty());
  EXPECT_EQ(code, machine_code(renamed)) << renamed;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> out;
  for (double v : values) {
    const auto below = std::count_if(values.begin(), values.end(), [&](double w) { return w < v; });
    const auto equal = std::count(values.begin(), values.end(), v);
    out.push_back(double(below) + double(equal - 1) / 2);
  }
  return out;
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = double(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n,
               my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xy / std::sqrt(xx * yy);
}

// Within a factor of three for every kernel, 25 % on the average (geometric mean), and in nearly the same
// order.
TEST(RealCode, PressureGoesAlongWithWhatPtxasTakes) {
  std::vector<double> estimated, taken;
  double sum_of_logs = 0;
  for (const char* program : {"bfs", "gc", "sp", "pagerank", "qt", "sssp", "unq"}) {
    const fs::path path = fs::path(KLAP_BENCHMARK_DIR) / program;
    if (!fs::exists(path)) GTEST_SKIP() << path << " was not built";
    for (const std::string& text : ptx_of(path)) {
      const ptx::Module m = ptx::parse(text, program);
      for (const auto& [name, count] : registers_by_ptxas(text)) {
        const ptx::Function* f = m.find_function(name);
        ASSERT_NE(nullptr, f) << name;
        const ControlFlow flow(m, *f);
        if (flow.instructions().size() < 20) continue;
        const VirtualRegisters registers(flow);
        const double words = Liveness(flow, registers).maximum().pressure.words;
        EXPECT_LT(words, 3.0 * count) << program << ": " << name;
        EXPECT_GT(words, count / 3.0) << program << ": " << name;
        estimated.push_back(words);
        taken.push_back(count);
        sum_of_logs += std::log(words / count);
      }
    }
  }
  ASSERT_GT(taken.size(), 20u);
  const double mean = std::exp(sum_of_logs / double(taken.size()));
  EXPECT_GT(mean, 0.75);
  EXPECT_LT(mean, 1.25);
  EXPECT_GT(correlation(ranks(estimated), ranks(taken)), 0.7);
}

}  // namespace
}  // namespace klap::analysis
