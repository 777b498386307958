// Granularities block and multiblock: what is said about them, how variants are told apart, and that they are
// the device's to launch.
#include <gmock/gmock.h>

#include "jit/cache/cache_key.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "jit/plan/describe.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::jit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Asked {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Auto;
  uint32_t multiblock = 16;
};

Request request_of(const Asked& asked) {
  Request request;
  request.setting = test::given({{"granularity", to_string(asked.granularity)},
                                 {"launcher", to_string(asked.launcher)},
                                 {"multiblock", std::to_string(asked.multiblock)}});
  return request;
}

Program launching_program() {
  static const std::string text = read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx");
  return program_from_ptx(text, "fixture");
}

SiteRemark remark_of(const Asked& asked) {
  return explain_module(launching_program(), request_of(asked)).at(0);
}

std::string notes_of(const Asked& asked) {
  std::string text;
  for (const std::string& note : remark_of(asked).notes) text += note + "\n";
  return text;
}

TEST(Groups, RemarkSaysWhoLaunchesAndForHowManyBlocks) {
  const SiteRemark block = remark_of({.granularity = Granularity::Block});
  EXPECT_EQ("block", block.granularity);
  EXPECT_EQ("device", block.launcher);
  EXPECT_EQ(1u, block.group_blocks);
  EXPECT_THAT(block.detail, HasSubstr("launched by the last thread of each block"));
  const SiteRemark several = remark_of({.granularity = Granularity::MultiBlock, .multiblock = 7});
  EXPECT_EQ("multiblock", several.granularity);
  EXPECT_EQ(7u, several.group_blocks);
  EXPECT_THAT(several.detail, HasSubstr("launched by the last thread of each 7 blocks"));
  EXPECT_EQ(0u, remark_of({}).group_blocks);
}

TEST(Groups, HostAsLauncherIsIgnoredWithANoteWhereSomeoneChoseIt) {
  const char* const note = "launcher host is ignored";
  EXPECT_THAT(notes_of({.granularity = Granularity::Block, .launcher = Launcher::Host}), HasSubstr(note));
  EXPECT_THAT(notes_of({.granularity = Granularity::Block}), Not(HasSubstr(note)));
  EXPECT_THAT(notes_of({.granularity = Granularity::MultiBlock, .launcher = Launcher::Device}),
              Not(HasSubstr(note)));
  EXPECT_THAT(notes_of({.launcher = Launcher::Host}), Not(HasSubstr(note)));
}

TEST(Groups, VariantsAreNamedAfterThem) {
  const auto name = [](const Asked& asked) {
    return rewrite_module(launching_program(), request_of(asked)).variants.at(0).parent_variant;
  };
  EXPECT_THAT(name({.granularity = Granularity::Block}), HasSubstr("klap_block_"));
  EXPECT_THAT(name({.granularity = Granularity::MultiBlock, .multiblock = 7}), HasSubstr("klap_multi7_"));
  EXPECT_THAT(name({.granularity = Granularity::MultiBlock, .multiblock = 16}), HasSubstr("klap_multi16_"));
  EXPECT_THAT(name({.launcher = Launcher::Device}), HasSubstr("klap_grid_device_"));
}

// They need more registers than most kernels, and blocks of 1,024 threads leave 64 to each.
TEST(Groups, VariantsTakeBlocksOfAnySize) {
  const auto text = [](const Asked& asked) {
    return rewrite_ptx(launching_program().units[0], request_of(asked), nullptr);
  };
  EXPECT_THAT(text({.granularity = Granularity::Block}), HasSubstr(".maxntid 1024, 1, 1"));
  EXPECT_THAT(text({.granularity = Granularity::Grid, .launcher = Launcher::Device}),
              Not(HasSubstr(".maxntid 1024, 1, 1")));
}

TEST(Groups, DecisionsDifferWithTheirSize) {
  const auto text = [](const Asked& asked) { return decisions({remark_of(asked)}, request_of(asked)); };
  const Asked of_7{.granularity = Granularity::MultiBlock, .multiblock = 7};
  EXPECT_NE(text(of_7), text({.granularity = Granularity::MultiBlock, .multiblock = 8}));
  EXPECT_NE(text(of_7), text({.granularity = Granularity::Block}));
  // A hint in the program may ask for groups: the settings do not say whether it does.
  EXPECT_NE(text({.multiblock = 7}), text({.multiblock = 8}));
}

TEST(Groups, SharedMemoryOfTheParentDoesNotGrow) {
  const Program program = launching_program();
  const std::string text =
      rewrite_ptx(program.units[0], request_of({.granularity = Granularity::Block}), nullptr);
  EXPECT_EQ(std::string::npos, text.find(".shared .", program.units[0].ptx.size()));
}

}  // namespace
}  // namespace klap::jit
