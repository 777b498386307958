// Links of the program's own: which are kept, how a result is found again, and the units that they become.
#include "runtime/links/program_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/module.h"
#include "support/error.h"
#include "support/file.h"
#include "tests/container/synthetic.h"

namespace klap::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using container::minimal_machine_code;

const std::string kLaunching = read_file(KLAP_IDIOM_DIR "/cdp2.ptx");
constexpr char kQuiet[] = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry quiet() { ret; }\n";

AddedCode ptx(const std::string& text) { return {CodeKind::Ptx, "module", text, ""}; }

class ProgramLinksTest : public testing::Test {
 protected:
  // A link of that code, from its beginning to its end.
  void link(const std::string& image, const std::vector<AddedCode>& codes) {
    links_.begin(this, "");
    for (const AddedCode& code : codes) links_.add(this, code);
    links_.complete(this, image);
    links_.end(this);
  }
  ProgramLinks links_;
};

TEST_F(ProgramLinksTest, AResultIsFoundByItsBytes) {
  EXPECT_TRUE(links_.none());
  const std::string image = minimal_machine_code("code");
  link(image, {ptx(kLaunching)});
  EXPECT_FALSE(links_.none());
  const std::string copy = image;
  const auto found = links_.link_of(copy);
  ASSERT_NE(nullptr, found);
  ASSERT_EQ(1u, found->inputs.size());
  EXPECT_EQ(kLaunching, found->inputs[0].bytes);
  EXPECT_EQ(nullptr, links_.link_of(minimal_machine_code("node")));
  EXPECT_EQ(nullptr, links_.link_of(minimal_machine_code("codes")));
}

TEST_F(ProgramLinksTest, AHandleMayBecomeAnotherLinks) {
  link(minimal_machine_code("first"), {ptx(kLaunching), ptx(kQuiet)});
  const std::string image = minimal_machine_code("second");
  link(image, {ptx(kLaunching)});
  ASSERT_NE(nullptr, links_.link_of(image));
  EXPECT_EQ(1u, links_.link_of(image)->inputs.size());
}

// The program may link the same code again and again.
TEST_F(ProgramLinksTest, EqualResultsAreKeptOnce) {
  const std::string other = minimal_machine_code("other"), image = minimal_machine_code("code");
  link(other, {ptx(kLaunching)});
  for (int i = 0; i < 1000; ++i) link(image, {ptx(kLaunching)});
  EXPECT_NE(nullptr, links_.link_of(other));
}

TEST_F(ProgramLinksTest, TheOldestAreForgotten) {
  for (int i = 0; i < 300; ++i) link(minimal_machine_code(std::to_string(i)), {ptx(kLaunching)});
  EXPECT_EQ(nullptr, links_.link_of(minimal_machine_code("0")));
  EXPECT_NE(nullptr, links_.link_of(minimal_machine_code("299")));
}

TEST_F(ProgramLinksTest, LargeInputsForgetOthers) {
  const std::string padding(40 << 20, ' ');
  link(minimal_machine_code("0"), {ptx(kLaunching + padding)});
  link(minimal_machine_code("1"), {ptx(kLaunching + padding)});
  EXPECT_EQ(nullptr, links_.link_of(minimal_machine_code("0")));
  EXPECT_NE(nullptr, links_.link_of(minimal_machine_code("1")));
}

TEST_F(ProgramLinksTest, TooMuchCodeIsSaid) {
  const std::string image = minimal_machine_code("code");
  link(image, {ptx(kLaunching), ptx(kQuiet + std::string(70 << 20, ' ')), ptx(kLaunching)});
  const auto found = links_.link_of(image);
  ASSERT_NE(nullptr, found);
  EXPECT_THAT(found->inputs, IsEmpty());
  EXPECT_THROW(program_from(*found, 90), Error);
}

TEST_F(ProgramLinksTest, OptionsOfTheLinkComeBeforeThoseOfItsInput) {
  const std::string image = minimal_machine_code("code");
  links_.begin(this, " -maxrregcount=64");
  links_.add(this, {CodeKind::Ptx, "module", kLaunching, " -lineinfo"});
  links_.complete(this, image);
  ASSERT_NE(nullptr, links_.link_of(image));
  EXPECT_EQ(" -maxrregcount=64 -lineinfo", program_from(*links_.link_of(image), 90).units[0].options);
}

std::string why_not(const ProgramLink& link) {
  try {
    program_from(link, 90);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_F(ProgramLinksTest, WhatIsNotUnderstoodIsSaid) {
  EXPECT_EQ("", why_not({{ptx(kLaunching)}, {}, ""}));
  EXPECT_THAT(why_not({{{CodeKind::LtoIr, "ir", "BC", ""}}, {}, ""}), HasSubstr("nvJitLink"));
  EXPECT_THAT(why_not({{ptx(kLaunching)}, {}, "it binds symbols"}), HasSubstr("it binds symbols"));
  EXPECT_THAT(why_not({{{CodeKind::Binary, "garbage", "no code at all", ""}}, {}, ""}), HasSubstr("neither"));
}

// Both from PTX to the end: the units of a link become a module with a variant.
TEST_F(ProgramLinksTest, BecomeAModule) {
  const ProgramLink link{
      {{CodeKind::Binary, "libcudadevrt.a", read_file(KLAP_CUDADEVRT), ""}, ptx(kLaunching), ptx(kQuiet)},
      {},
      ""};
  const jit::Program program = program_from(link, 90);
  std::vector<bool> launching;
  for (const jit::Unit& unit : program.units) {
    if (!unit.is_device_runtime) launching.push_back(unit.launches);
  }
  EXPECT_THAT(launching, ElementsAre(true, false));
  EXPECT_LT(2u, program.units.size()) << "the runtime is among them";
  jit::Request request;
  request.sm = 90;
  const jit::RewrittenModule module = jit::rewrite_module(program, request);
  ASSERT_LE(1u, module.variants.size());
  EXPECT_EQ("_Z6parentPiPKi", module.variants[0].parent);
  EXPECT_THAT(module.cubin, AllOf(HasSubstr("quiet"), HasSubstr("_Z5childPii")));
}

// A static library of one member, which has the name "module.o".
std::string archive_of(const std::string& member) {
  std::string header(60, ' ');
  header.replace(0, 9, "module.o/");
  header.replace(48, std::to_string(member.size()).size(), std::to_string(member.size()));
  header.replace(58, 2, "`\n");
  return "!<arch>\n" + header + member + (member.size() % 2 == 0 ? "" : "\n");
}

// Code for link-time optimisation becomes PTX, as it is and in a library.
TEST_F(ProgramLinksTest, CompileWhatIsNotMachineCodeYet) {
  const std::string lto_ir = read_file(KLAP_LTO_IR);
  for (const std::string& bytes : {lto_ir, archive_of(lto_ir)}) {
    const ProgramLink link{{{CodeKind::Binary, "module", bytes, ""}}, {"-arch=sm_90"}, ""};
    const jit::Program program = program_from(link, 90);
    ASSERT_EQ(1u, program.units.size());
    EXPECT_TRUE(program.units[0].launches);
    EXPECT_THAT(program.units[0].ptx, HasSubstr(".visible .entry launch_all("));
  }
}

TEST_F(ProgramLinksTest, OptionsHoldForCodeThatTheLinkerCompiles) {
  const std::string module = read_file(KLAP_FATBIN), only_ptx = archive_of(kLaunching);
  const ProgramLink link{
      {{CodeKind::Binary, "module", module, " -maxrregcount=64", "the PTX of machine code"},
       {CodeKind::Binary, "text", only_ptx, " -maxrregcount=64"}},
      {},
      ""};
  const jit::Program program = program_from(link, 90);
  ASSERT_EQ(2u, program.units.size());
  EXPECT_THAT(program.units[0].options, Not(HasSubstr("maxrregcount"))) << "it has machine code";
  EXPECT_THAT(program.units[0].ptx, HasSubstr("launch_all")) << "and PTX of its own";
  EXPECT_EQ(" -maxrregcount=64", program.units[1].options);
}

}  // namespace
}  // namespace klap::runtime
