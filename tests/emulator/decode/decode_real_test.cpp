// The decoder on what nvcc makes: nothing in it is unknown.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "container/image.h"
#include "decode_fixture.h"
#include "support/file.h"

namespace klap::emulator {
namespace {

namespace fs = std::filesystem;

// Every unit of a program, the toolkit's device runtime included.
std::deque<ptx::Module> units_of(const fs::path& program) {
  std::deque<ptx::Module> out;
  const container::File file = container::open_file(program);
  for (const container::FileImage& image : file.images) {
    for (const container::Fatbin& unit : image.units) {
      for (const container::FatbinEntry& entry : unit.entries) {
        if (entry.is_ptx()) out.push_back(ptx::parse(entry.payload(), program.filename().string()));
      }
    }
  }
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

TEST(RealCode, OfTheBenchmarksIsFullyKnown) {
  if (programs().empty()) GTEST_SKIP() << "no benchmark program was built";
  size_t instructions = 0;
  for (const fs::path& program : programs()) {
    const std::deque<ptx::Module> units = units_of(program);
    std::vector<const ptx::Module*> pointers;
    for (const ptx::Module& unit : units) pointers.push_back(&unit);
    Memory memory(uint64_t{1} << 30);
    const auto image = link_image(pointers, memory);
    for (const auto& f : image->functions) {
      EXPECT_EQ(f->unsupported, "") << program;
      instructions += f->code.size();
    }
  }
  EXPECT_GT(instructions, 10000u);
}

// Features that are not known are listed here, so that a new one shows.
TEST(RealCode, OfManyFeaturesIsKnown) {
  for (const char* form : {"optimised", "debug"}) {
    const fs::path file = fs::path(KLAP_FEATURES_DIR) / fmt::format("features_{}.ptx", form);
    const ptx::Module m = ptx::parse(read_file(file), form);
    Memory memory(uint64_t{1} << 30);
    const auto image = link_image({&m}, memory);
    for (const auto& [name, index] : image->kernels) {
      const std::string& why = unsupported_in(*image, *image->functions[index]);
      if (why.find("%reserved_smem_offset_") != std::string::npos) continue;  // groups, built for debugging
      EXPECT_EQ(why, "") << form << ' ' << name;
    }
    EXPECT_EQ(image->kernels.size(), 3u);
    EXPECT_FALSE(image->indirect_callees.empty());
    EXPECT_FALSE(print(*image).empty());
  }
}

}  // namespace
}  // namespace klap::emulator
