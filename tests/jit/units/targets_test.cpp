// Units whose PTX is for another version or target than the templates' or than the device's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "container/image.h"
#include "jit/compile/templates.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "ptx/dialect.h"
#include "support/file.h"

namespace klap::jit {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

Request request_for(uint32_t sm) {
  Request request;
  request.sm = sm;
  return request;
}

// The fixture with other directives at its head; made for sm_80 by a recent toolkit.
std::string fixture(const std::string& version, const std::string& target) {
  std::string text = read_file(KLAP_IDIOM_DIR "/cdp2.ptx");
  const auto set = [&](const std::string& directive, const std::string& value) {
    const size_t at = text.find(directive + " ") + directive.size() + 1;
    text.replace(at, text.find('\n', at) - at, value);
  };
  set(".version", version);
  set(".target", target);
  return text;
}

SiteRemark only_remark(const std::vector<SiteRemark>& remarks) {
  EXPECT_EQ(1u, remarks.size());
  return remarks.at(0);
}

RewrittenModule rewritten(const std::string& name, uint32_t sm) {
  const container::File file = container::open_file(KLAP_PROGRAMS + name);
  for (const container::FileImage& image : file.images) {
    if (image.kind == container::ImageKind::WrapperV2)
      return rewrite_module(program_from_fatbins(image.units, sm), request_for(sm));
  }
  ADD_FAILURE() << name << " has no relocatable device code";
  return {};
}

ptx::Dialect rewritten_dialect(const std::string& version, const std::string& target) {
  const Program program = program_from_ptx(fixture(version, target), "unit");
  std::vector<SiteRemark> remarks;
  const std::string text = rewrite_ptx(program.units[0], request_for(90), &remarks);
  EXPECT_TRUE(only_remark(remarks).rewritten) << only_remark(remarks).detail;
  return ptx::dialect_of(ptx::parse(text, "rewritten"));
}

ptx::Dialect template_dialect() {
  transform::ConsumerShape shape;
  shape.layout = {16, 32};
  return ptx::dialect_of(*record_template(shape, 0, std::nullopt));
}

TEST(Targets, OlderUnitsAreRaisedToWhatTheTemplatesNeed) {
  const ptx::Dialect raised = rewritten_dialect("7.8", "sm_70");
  EXPECT_EQ(template_dialect(), raised);
  EXPECT_LT((ptx::Version{7, 8}), raised.version);
}

TEST(Targets, NewerUnitsStayWhatTheyAre) {
  EXPECT_EQ((ptx::Target{90, '\0'}), rewritten_dialect("8.0", "sm_90").target);
  EXPECT_EQ((ptx::Target{90, 'a'}), rewritten_dialect("8.0", "sm_90a").target);
}

TEST(Targets, RaisedUnitsLink) {
  const RewrittenModule module =
      rewrite_module(program_from_ptx(fixture("7.8", "sm_70"), "unit"), request_for(90));
  EXPECT_FALSE(module.cubin.empty());
}

TEST(Targets, LockstepUnitsAreLeft) {
  const auto remarks = explain_module(program_from_ptx(fixture("7.8", "sm_61"), "unit"), request_for(90));
  EXPECT_EQ("target-too-old", only_remark(remarks).reason);
  EXPECT_THAT(only_remark(remarks).detail, HasSubstr("sm_61"));
}

TEST(Targets, UnknownTargetsAreLeft) {
  const auto remarks = explain_module(program_from_ptx(fixture("8.0", "other_90"), "unit"), request_for(90));
  EXPECT_EQ("not-understood", only_remark(remarks).reason);
}

// ---- PTX for a newer target, alone: the assembler decides ----

TEST(NewerTargets, BarePtxThatNeedsNothingNewIsRetargeted) {
  for (const char* target : {"sm_100", "sm_100a", "sm_100f", "sm_120"}) {
    const Program program = program_from_ptx(fixture("9.0", target), "unit");
    const RewrittenModule module = rewrite_module(program, request_for(90));
    EXPECT_FALSE(module.cubin.empty()) << target;
    EXPECT_THAT(only_remark(module.remarks).notes, Contains(HasSubstr("is for " + std::string(target))));
    EXPECT_THAT(rewrite_ptx(program.units[0], request_for(90), nullptr), HasSubstr(".target sm_90\n"));
  }
}

TEST(NewerTargets, ArchitectureSpecificPtxOfAnOlderDeviceIsToo) {
  const Program program = program_from_ptx(fixture("9.0", "sm_90a"), "unit");
  EXPECT_THAT(rewrite_ptx(program.units[0], request_for(100), nullptr), HasSubstr(".target sm_90\n"));
  EXPECT_FALSE(rewrite_module(program, request_for(100)).cubin.empty());
}

TEST(NewerTargets, BarePtxThatNeedsThemIsLeft) {
  std::string text = fixture("9.0", "sm_100a");
  // In the parent, where instructions are not listed: the assembler has to find it.
  const size_t parent = text.find("_Z6parentPiPKi(");
  ASSERT_NE(std::string::npos, parent);
  text.insert(text.find("ret;", parent), "tcgen05.fence::before_thread_sync;\n\t");
  const RewrittenModule module = rewrite_module(program_from_ptx(text, "unit"), request_for(90));
  EXPECT_TRUE(module.cubin.empty());
  EXPECT_EQ("target-too-new", only_remark(module.remarks).reason);
  EXPECT_FALSE(rewrite_module(program_from_ptx(text, "unit"), request_for(100)).cubin.empty())
      << "where the target is the device's there is nothing to object to";
}

// A link for sm_90 takes nothing that was made for sm_90a, and so on.
TEST(Targets, ArchitectureAndFamilySpecificUnitsLinkForTheirDevices) {
  constexpr struct {
    const char* target;
    uint32_t sm;
  } kCases[] = {{"sm_90a", 90}, {"sm_100a", 100}, {"sm_100f", 100}, {"sm_100f", 103}, {"sm_103a", 103}};
  for (const auto& [target, sm] : kCases) {
    const RewrittenModule module =
        rewrite_module(program_from_ptx(fixture("9.0", target), "unit"), request_for(sm));
    EXPECT_FALSE(module.cubin.empty()) << target << " on " << sm;
  }
}

TEST(Targets, ProgramsForOneArchitectureAreRewritten) {
  const RewrittenModule module = rewritten("architecture_specific", 90);
  EXPECT_TRUE(only_remark(module.remarks).rewritten) << only_remark(module.remarks).detail;
  EXPECT_FALSE(module.cubin.empty());
}

// ---- programs with machine code for the device and newer PTX ----

TEST(NewerTargets, ProgramsWhoseCodeIsTheSameAreRewritten) {
  const RewrittenModule module = rewritten("newer_ptx", 80);
  EXPECT_TRUE(only_remark(module.remarks).rewritten) << only_remark(module.remarks).detail;
  EXPECT_FALSE(module.cubin.empty());
}

TEST(NewerTargets, ProgramsThatLookAtTheTargetAreLeft) {
  const RewrittenModule module = rewritten("depends_on_target", 80);
  EXPECT_TRUE(module.cubin.empty());
  EXPECT_EQ("target-too-new", only_remark(module.remarks).reason);
  EXPECT_EQ(
      "_Z6weighti assembled from the PTX for sm_90 is not the machine code that the program has for sm_80",
      only_remark(module.remarks).detail)
      << "the difference is in a function that the child calls";
}

TEST(NewerTargets, ProgramsThatNeedTheTargetAreLeft) {
  const RewrittenModule module = rewritten("needs_target", 80);
  EXPECT_TRUE(module.cubin.empty());
  EXPECT_EQ("target-too-new", only_remark(module.remarks).reason);
  EXPECT_THAT(only_remark(module.remarks).detail,
              AllOf(StartsWith("for sm_80 the PTX for sm_90 is refused: "), HasSubstr("griddepcontrol")));
}

}  // namespace
}  // namespace klap::jit
