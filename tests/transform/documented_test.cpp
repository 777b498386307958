// The documented form of a launch, rewritten: the record is made at the launch, where the grid is known, and
// the argument stores move behind it. (Golden files show that the result assembles and links.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/inspect.h"
#include "jit/module.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

// The recording parent that is made of a fixture.
std::string variant_of(const std::string& fixture, jit::Launcher launcher) {
  const std::string ptx = read_file(std::string(KLAP_IDIOM_DIR) + "/" + fixture + ".ptx");
  jit::Request request;
  request.by_sizes = false;
  request.setting = test::given({{"granularity", "grid"}, {"launcher", to_string(launcher)}});
  const std::string text = jit::rewrite_ptx(jit::program_from_ptx(ptx, fixture).units[0], request, nullptr);
  const size_t at = text.find("_Z6parentB");
  if (at == std::string::npos) throw std::runtime_error(fixture + " was not rewritten");
  return text.substr(at);
}

std::vector<size_t> places(const std::string& text, const std::string& what) {
  std::vector<size_t> out;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) out.push_back(at);
  return out;
}

TEST(DocumentedLaunch, StoresItsArgumentsIntoTheRecord) {
  const std::string text = variant_of("cdp2-documented-cub", jit::Launcher::Host);
  const auto grid = places(text, "shr.s32 \t%r10, %r9, 5;");
  const auto record = places(text, "mov.b64 %rd6, %klap_r_");
  const auto error = places(text, "mov.b32 %r11, %klap_error;");
  const auto stores = places(text, "st.u8 [%rd6");
  const auto once = places(text, "@%klap_is_first st.relaxed.gpu.global.u8 [%klap_once+");
  ASSERT_EQ(1u, grid.size());
  ASSERT_EQ(1u, record.size());
  ASSERT_EQ(1u, error.size());
  ASSERT_EQ(4u, stores.size());
  EXPECT_EQ(8u, once.size()) << "the address is the same for all";
  EXPECT_LT(grid.front(), record.front()) << "the record holds the grid";
  EXPECT_LT(record.front(), stores.front()) << "the stores go into the record";
  EXPECT_LT(stores.back(), error.front());
  // The first byte's value is computed before any store, as in the program.
  EXPECT_LT(places(text, "shr.u64 \t%rd7, %rd2, 56;").front(), record.front());
}

TEST(DocumentedLaunch, PassesTheProgramsNullTest) {
  const std::string text = variant_of("cdp2-documented", jit::Launcher::Host);
  const auto buffer = places(text, "mov.b64 %rd2, 1;");
  const auto test = places(text, "setp.eq.s64 \t%p2, %rd2, 0;");
  ASSERT_EQ(1u, buffer.size());
  ASSERT_EQ(1u, test.size());
  EXPECT_LT(buffer.front(), test.front());
  EXPECT_THAT(places(text, "__cudaCDP2"), testing::IsEmpty()) << "nothing is left of the device launch";
}

// Where the parent launches, it does so by the described form, which the unit need not have declared.
TEST(DocumentedLaunch, LaunchesByTheDescribedForm) {
  for (const auto& [fixture, launch] : {std::pair("cdp2-documented", "__cudaCDP2LaunchDeviceV2"),
                                        std::pair("cdp2-documented-ptsz", "__cudaCDP2LaunchDeviceV2_ptsz")}) {
    const std::string text = variant_of(fixture, jit::Launcher::Device);
    // Once for the small children, once for the big ones.
    EXPECT_EQ(2u, places(text, std::string(" ") + launch + ", (").size()) << fixture;
    EXPECT_EQ(2u, places(text, " __cudaCDP2GetParameterBufferV2, (").size()) << fixture;
    EXPECT_EQ(4u, places(text, "__cudaCDP2").size()) << "another call of the device runtime is left";
  }
}

}  // namespace
}  // namespace klap::test
