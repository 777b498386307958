// These tests take functions without instructions, without a way out, or with code that nothing leads to
// through the whole pipeline: as the child, and as what the child or the parent calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/module.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::jit {
namespace {

struct Form {
  const char* name;
  std::string body;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"nothing", ""},
      {"declarations", ".reg .pred %p<3>; .reg .b32 %r<3>; .local .align 4 .b8 depot[8];"},
      {"one label", "L:"},
      {"a label in a block", "{ L: }"},
      {"no way out", ".reg .b32 %r<3>; mov.u32 %r1, %tid.x;"},
      {"a trap", "trap;"},
      {"an unreachable loop",
       ".reg .pred %p<3>; .reg .b32 %r<3>; ret; L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 9; @%p1 bra L; "
       "ret;"},
      {"a branch to the end", ".reg .pred %p<3>; @%p1 bra L; ret; L:"},
      {"an unreachable barrier", "bra.uni L; bar.sync 0; L: ret;"},
  };
  return all;
}

enum class Place { Child, CalledByChild, CalledByParent };

std::string program(const Form& form, Place place) {
  std::string text = read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx");
  const size_t child = text.find(".visible .entry _Z5childPii");
  const size_t body = text.find("{\n", child), end = text.find("}\n", body);
  if (place == Place::Child) return text.replace(body + 2, end - body - 2, form.body + "\n");
  const std::string kernel = place == Place::CalledByChild ? "_Z5childPii(" : "_Z6parentPiPKi(";
  const size_t first = text.find("\tld.param", text.find(".visible .entry " + kernel));
  text.insert(first, "\t{\n\tcall.uni strange;\n\t}\n");
  return text.insert(child, ".func strange()\n{\n" + form.body + "\n}\n");
}

Request request_for(Granularity granularity, Launcher launcher) {
  Request request;
  request.setting = test::given({{"granularity", to_string(granularity)}, {"launcher", to_string(launcher)}});
  return request;
}

const std::vector<std::pair<Granularity, Launcher>> kWays = {
    {Granularity::Grid, Launcher::Host},  {Granularity::Grid, Launcher::Device},
    {Granularity::Block, Launcher::Auto}, {Granularity::MultiBlock, Launcher::Auto},
    {Granularity::Warp, Launcher::Auto},
};

void expect_as_explained(const Program& program, const Request& request) {
  const std::vector<SiteRemark> explained = explain_module(program, request);
  ASSERT_EQ(1u, explained.size());
  const RewrittenModule module = rewrite_module(program, request);
  ASSERT_EQ(1u, module.remarks.size());
  EXPECT_EQ(explained[0].rewritten, module.remarks[0].rewritten) << module.remarks[0].detail;
  EXPECT_EQ(explained[0].detail, module.remarks[0].detail);
  EXPECT_EQ(explained[0].rewritten, !module.cubin.empty());
}

TEST(EmptyFunctions, AreRewrittenAsExplained) {
  for (const Form& form : forms()) {
    for (const Place place : {Place::Child, Place::CalledByChild, Place::CalledByParent}) {
      SCOPED_TRACE(std::string(form.name) + ", place " + std::to_string(static_cast<int>(place)));
      const Program of_form = program_from_ptx(program(form, place), "unit");
      for (const auto& [granularity, launcher] : kWays)
        expect_as_explained(of_form, request_for(granularity, launcher));
    }
  }
}

TEST(EmptyFunctions, AreChildrenLikeOthers) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const Request request = request_for(Granularity::Grid, Launcher::Host);
    const auto remarks = explain_module(program_from_ptx(program(form, Place::Child), "unit"), request);
    ASSERT_EQ(1u, remarks.size());
    EXPECT_TRUE(remarks[0].rewritten) << remarks[0].detail;
  }
}

}  // namespace
}  // namespace klap::jit
