// Every construct of PTX that other tools stumble over, in small modules written by hand: each prints byte
// for byte, is taken for what it is (the outline), and keeps its meaning when everything is renamed, which
// ptxas decides.
#include <gtest/gtest.h>

#include "golden.h"
#include "machine_code.h"
#include "outline.h"
#include "rename.h"

namespace klap::test {
namespace {

class Fixture : public testing::TestWithParam<std::filesystem::path> {
 protected:
  static ptx::Module read() {
    return ptx::parse(read_golden(GetParam()).section("ptx"), GetParam().stem().string());
  }
};

TEST_P(Fixture, PrintsByteForByte) {
  const ptx::Module module = read();
  EXPECT_EQ(read_golden(GetParam()).section("ptx"), print(module));
  uint32_t next = 0;  // the items cover the text without gap or overlap
  for (const ptx::Item& item : module.items) {
    EXPECT_EQ(next, item.tokens.first);
    next = item.tokens.last;
  }
  EXPECT_EQ(module.tokens.size() - 1, next);
}

TEST_P(Fixture, IsTakenForWhatItIs) { expect_section(read_golden(GetParam()), "outline", outline(read())); }

TEST_P(Fixture, MeansTheSameWithEverythingRenamed) {
  const ptx::Module module = read();
  const ptx::Module renamed = ptx::parse(rename_everything(module), module.name + "_renamed");
  expect_section(read_golden(GetParam()), "renamed", print(renamed));
  const std::string options = module.debug ? "-c -g" : "-c";
  const MachineCode want = assemble(module, options, testing::TempDir()),
                    got = assemble(renamed, options, testing::TempDir());
  ASSERT_EQ("", want.problem);
  ASSERT_EQ("", got.problem);
  // Of debug modules the machine code depends on names.
  EXPECT_EQ("", module.debug ? "" : difference(want.cubin, got.cubin));
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& file) {
  std::string name = file.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Fixture, testing::ValuesIn(golden_files()), test_name);

// What tells two programs apart must be able to.
TEST(Difference, IsFound) {
  const auto code = [](const std::string& value) {
    return assemble(ptx::parse(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 "
                               "p) { .reg .b64 "
                               "a; ld.param.u64 a, [p]; st.global.u32 [a], " +
                                   value + "; ret; }\n",
                               "difference" + value),
                    "-c", testing::TempDir())
        .cubin;
  };
  EXPECT_EQ("", difference(code("1"), code("1")));
  EXPECT_EQ("section .text.k differs", difference(code("1"), code("2")));
}

TEST(Renaming, LeavesNoNameOfAFunctionAsItWas) {
  const ptx::Module m = ptx::parse(
      ".version 9.0\n.target sm_90\n.visible .entry k(.param .u64 p) { .reg .b64 %a<3>, x; L: ld.param.u64 "
      "%a2, [p]; { .reg "
      ".b32 x; .reg .b32 %a<2>; mov.b32 x, %a1; mov.b64 %a2, 0; } bra L; }\n",
      "m");
  const std::string renamed = rename_everything(m);
  for (const char* name : {"%a", " x", "L:", "bra L", "[p]"}) {
    EXPECT_EQ(std::string::npos, renamed.find(name)) << name << " in\n" << renamed;
  }
}

}  // namespace
}  // namespace klap::test
