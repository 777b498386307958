// Links of the program's own: which are kept, how a result is found again, and the units that they become.
#include "runtime/load/program_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "jit/module.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Machine code as far as its headers go: a table of one section behind `content`.
std::string machine_code(const std::string& content) {
  std::string bytes(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  bytes.resize(64);
  const uint64_t sections = 64 + content.size();
  const uint16_t entry_bytes = 64, entries = 1;
  std::memcpy(bytes.data() + 40, &sections, sizeof sections);
  std::memcpy(bytes.data() + 58, &entry_bytes, sizeof entry_bytes);
  std::memcpy(bytes.data() + 60, &entries, sizeof entries);
  return bytes + content + std::string(64, '\0');
}

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
  const std::string image = machine_code("code");
  link(image, {ptx(kLaunching)});
  EXPECT_FALSE(links_.none());
  const std::string copy = image;
  const auto found = links_.link_of(copy);
  ASSERT_NE(nullptr, found);
  ASSERT_EQ(1u, found->inputs.size());
  EXPECT_EQ(kLaunching, found->inputs[0].bytes);
  EXPECT_EQ(nullptr, links_.link_of(machine_code("node")));
  EXPECT_EQ(nullptr, links_.link_of(machine_code("codes")));
}

TEST_F(ProgramLinksTest, LinksThatDoNotLaunchAreForgotten) {
  const std::string image = machine_code("code");
  link(image, {ptx(kQuiet)});
  EXPECT_TRUE(links_.none());
  EXPECT_EQ(nullptr, links_.link_of(image));
}

TEST_F(ProgramLinksTest, AHandleMayBecomeAnotherLinks) {
  link(machine_code("first"), {ptx(kLaunching), ptx(kQuiet)});
  const std::string image = machine_code("second");
  link(image, {ptx(kLaunching)});
  ASSERT_NE(nullptr, links_.link_of(image));
  EXPECT_EQ(1u, links_.link_of(image)->inputs.size());
}

// The program may link the same code again and again.
TEST_F(ProgramLinksTest, EqualResultsAreKeptOnce) {
  const std::string other = machine_code("other"), image = machine_code("code");
  link(other, {ptx(kLaunching)});
  for (int i = 0; i < 1000; ++i) link(image, {ptx(kLaunching)});
  EXPECT_NE(nullptr, links_.link_of(other));
}

TEST_F(ProgramLinksTest, TheOldestAreForgotten) {
  for (int i = 0; i < 300; ++i) link(machine_code(std::to_string(i)), {ptx(kLaunching)});
  EXPECT_EQ(nullptr, links_.link_of(machine_code("0")));
  EXPECT_NE(nullptr, links_.link_of(machine_code("299")));
}

TEST_F(ProgramLinksTest, LargeInputsForgetOthers) {
  const std::string padding(40 << 20, ' ');
  link(machine_code("0"), {ptx(kLaunching + padding)});
  link(machine_code("1"), {ptx(kLaunching + padding)});
  EXPECT_EQ(nullptr, links_.link_of(machine_code("0")));
  EXPECT_NE(nullptr, links_.link_of(machine_code("1")));
}

TEST_F(ProgramLinksTest, TooMuchCodeIsSaid) {
  const std::string image = machine_code("code");
  link(image, {ptx(kLaunching), ptx(kQuiet + std::string(70 << 20, ' ')), ptx(kLaunching)});
  const auto found = links_.link_of(image);
  ASSERT_NE(nullptr, found);
  EXPECT_THAT(found->inputs, IsEmpty());
  EXPECT_THROW(program_from(*found, 90), Error);
}

TEST_F(ProgramLinksTest, CodeThatCannotBeReadIsSaid) {
  const std::string image = machine_code("code");
  link(image, {ptx(kLaunching), {CodeKind::Binary, "garbage", "no code at all", ""}});
  link(image, {{CodeKind::Binary, "garbage", "no code at all", ""}, ptx(kLaunching)});
  ASSERT_NE(nullptr, links_.link_of(image));
  EXPECT_THAT(links_.link_of(image)->problem, HasSubstr("neither"));
}

TEST_F(ProgramLinksTest, OptionsOfTheLinkComeBeforeThoseOfItsInput) {
  const std::string image = machine_code("code");
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
  EXPECT_TRUE(launches(link));
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

}  // namespace
}  // namespace klap::runtime
