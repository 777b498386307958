// A real program whose device memory is aggregated, built and linked as on a GPU: its own kernels are all
// there, and they take and free memory as the variants do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/elf64.h"
#include "jit/module.h"
#include "tests/settings/given.h"

namespace klap::jit {
namespace {

// The names of the linked image's sections, a line each.
std::string names_in(const std::string& cubin) {
  std::string names;
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), "cubin");
  for (const container::ElfSection& section : elf.sections()) names += std::string(elf.name(section)) + "\n";
  return names;
}

class DeviceMemoryOfAProgram : public testing::TestWithParam<const char*> {};

TEST_P(DeviceMemoryOfAProgram, IsLinkedWithAllItsKernels) {
  Request request;
  request.sm = 90;
  request.setting = test::given({{"aggregate_malloc", GetParam()}}, "environment");
  std::map<std::string, std::string> stages;
  request.dump = [&](const Stage& stage) { stages[stage.file] = stage.bytes; };
  size_t rewritten = 0;
  for (const container::FileImage& image : container::open_file(KLAP_PROGRAM_DIR "/device_memory").images) {
    if (image.kind != container::ImageKind::WrapperV2) continue;
    const RewrittenModule module = rewrite_module(program_from_fatbins(image.units, 90), request);
    if (module.cubin.empty()) continue;
    ++rewritten;
    EXPECT_THAT(module.remarks.at(0).notes,
                testing::Contains(testing::HasSubstr("the module's device memory is aggregated ")));
    const std::string names = names_in(module.cubin);
    for (const char* kernel : {"take_for_fill", "free_third", "rounds", "free_by_pointer", "check_and_free"})
      EXPECT_THAT(names, testing::ContainsRegex(std::string("nv.constant0.[^\n]*") + kernel));
    EXPECT_THAT(stages["link.txt"], testing::HasSubstr("input device memory: PTX"));
    EXPECT_THAT(stages["unit0.klap.ptx"], testing::HasSubstr("free$klap_"));
    EXPECT_THAT(stages["unit0.klap.ptx"], testing::Not(testing::ContainsRegex("[^_]free, ")));
  }
  EXPECT_EQ(1U, rewritten);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeviceMemoryOfAProgram, testing::Values("warp", "chunks"));

}  // namespace
}  // namespace klap::jit
