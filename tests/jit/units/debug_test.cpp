// Units that were compiled for debugging (-G): left by default, rewritten when asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "assembled.h"
#include "container/image.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "ptx/tree.h"
#include "support/file.h"

namespace klap::jit {
namespace {

using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

Request request_with(bool debug_units) {
  Request request;
  request.by_sizes = false;
  request.sm = 90;
  request.debug_units = debug_units;
  return request;
}

// The fixture as a debug build would have it: its launch stands in the kernel itself, and its code has labels
// that a debug section refers to.
std::string debug_fixture() {
  std::string text = read_file(KLAP_IDIOM_DIR "/cdp2.ptx");
  const size_t target = text.find(".target ");
  text.insert(text.find('\n', target), ", debug");
  const size_t parent = text.find("_Z6parentPiPKi(");
  text.insert(text.find("ret;", parent), "$L__tmp0:\n\t");
  return text + R"(
	.section	.debug_abbrev
	{
.b8 1,17,0,17,1,0,0,0
	}
	.section	.debug_info
	{
.b32 16
.b8 2,0
.b32 .debug_abbrev
.b8 8,1
.b64 $L__tmp0
	}
)";
}

TEST(DebugUnits, AreLeftByDefault) {
  const auto remarks = explain_module(program_from_ptx(debug_fixture(), "debug"), request_with(false));
  ASSERT_EQ(1u, remarks.size());
  EXPECT_EQ("debug-build", remarks[0].reason);
}

TEST(DebugUnits, AreRewrittenWhenAskedFor) {
  const Program program = program_from_ptx(debug_fixture(), "debug");
  const RewrittenModule module = rewrite_module(program, request_with(true));
  ASSERT_EQ(1u, module.variants.size()) << module.remarks.at(0).detail;
  EXPECT_FALSE(module.cubin.empty());
}

// With machine code beside it, only the variants are assembled, by the debug build's own options.
TEST(DebugUnits, AreRewrittenBesideTheirMachineCode) {
  Program program = program_from_ptx(debug_fixture(), "debug");
  program.units[0].cubin = test::assembled(program.units[0].ptx, 90, "-g ");
  program.units[0].options = "-g --dont-merge-basicblocks --return-at-end";
  const RewrittenModule module = rewrite_module(program, request_with(true));
  ASSERT_EQ(1u, module.variants.size()) << module.remarks.at(0).detail;
  EXPECT_THAT(module.remarks.at(0).notes, Each(Not(HasSubstr("assembled anew"))));
}

// The debug sections describe the original's code and not the copy's.
TEST(DebugUnits, LabelsOfDebugSectionsStayWithTheOriginal) {
  const Program program = program_from_ptx(debug_fixture(), "debug");
  const std::string text = rewrite_ptx(program.units[0], request_with(true), nullptr);
  EXPECT_THAT(text, HasSubstr("klap_grid_"));
  EXPECT_EQ(text.find("$L__tmp0:"), text.rfind("$L__tmp0:"));
  const ptx::Module module = ptx::parse(text, "rewritten");
  EXPECT_TRUE(module.debug);
}

// What nvcc makes of a launch in a debug build is a call of a local function around the runtime's. Its form
// is not known here; what is asked is that nothing goes wrong where it is tried.
TEST(DebugUnits, OfNvccNeverFail) {
  const container::File file = container::open_file(KLAP_PROGRAMS "debug");
  size_t sites = 0;
  for (const container::FileImage& image : file.images) {
    if (image.kind != container::ImageKind::WrapperV2) continue;
    const Program program = program_from_fatbins(image.units, 90);
    for (const SiteRemark& remark : explain_module(program, request_with(false)))
      EXPECT_EQ("debug-build", remark.reason);
    const RewrittenModule module = rewrite_module(program, request_with(true));
    sites += module.remarks.size();
    EXPECT_THAT(module.remarks,
                Each(Field(&SiteRemark::reason, Not(testing::AnyOf("debug-build", "build-failed")))));
    EXPECT_EQ(module.cubin.empty(), std::ranges::none_of(module.remarks, &SiteRemark::rewritten));
  }
  EXPECT_GT(sites, 0u);
}

}  // namespace
}  // namespace klap::jit
