#include "analysis/graph/module_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kName = "_Z1fIfEvPT_$6";
const std::string kVariable =
    ".weak .global .align 4 .b8 " + kName + "[12] = {64, 0, 0, 0, 1, 2, 0, 0, 1};\n";

std::string unit(const std::string& variable, const std::string& body = "", const std::string& rest = "") {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + variable +
         ".visible .entry k(.param .u64 a) {\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n" + body + "\nret;\n}\n" +
         rest;
}
// What a load from there gives.
std::optional<uint64_t> constant(const std::string& text, const std::string& place = kName,
                                 const std::string& type = "u32") {
  const std::string load = "ld.global." + type + " %r1, [" + place + "];";
  const Kernel kernel(text + ".entry l() {\n.reg .b64 %r<9>;\n" + load + " ret;\n}\n", "l");
  return analysis::loaded_constant(kernel.module, *kernel.flow.instructions()[0].statement);
}
std::string operand_of(const std::string& text, const std::string& operand) {
  return analysis::to_string(Kernel(text, "k").symbolic.value(operand, 32));
}
std::string load(const std::string& place) { return "ld.global.u32 %r1, [" + place + "];"; }

TEST(ModuleConstants, AreWhatTheInitialiserSays) {
  EXPECT_EQ(64u, constant(unit(kVariable)));
  EXPECT_EQ(513u, constant(unit(kVariable), kName + "+4"));
  EXPECT_EQ(1u, constant(unit(kVariable), kName + "+8")) << "what is not named is 0";
  EXPECT_EQ(0x20100000000u + 0x40u, constant(unit(kVariable), kName, "u64"));
  EXPECT_EQ(2u, constant(unit(kVariable), kName + "+5", "u8"));
  const std::string words = ".global .align 4 .u32 " + kName + "[3] = {64, 0x101};\n";
  EXPECT_EQ(257u, constant(unit(words), kName + "+4"));
  EXPECT_EQ(0u, constant(unit(words), kName + "+8"));
  EXPECT_EQ("64", operand_of(unit(kVariable, load(kName)), "%r1"));
  EXPECT_EQ("1", operand_of(unit(kVariable, "ld.global.v2.u32 {%r1, %r2}, [" + kName + "+4];"), "%r2"));
}

TEST(ModuleConstants, AreNothingOutsideTheVariable) {
  EXPECT_EQ(std::nullopt, constant(unit(kVariable), kName + "+12"));
  EXPECT_EQ(std::nullopt, constant(unit(kVariable), kName + "+10"));
  EXPECT_EQ(std::nullopt, constant(unit(kVariable), kName + "+-4"));
}

// A variable that the program names, the host and other units know.
TEST(ModuleConstants, AreTheCompilersOnly) {
  for (const char* name : {"size", "_ZN1a4sizeE", "f$6", "_Z1fv$", "_Z1fv$a", "$6", "_ZL3f$6", "_ZL1f$6",
                           "_ZN1a4sizeE$6", "_ZZ1fvE4size$6", "_Z1f$6"}) {
    const std::string variable = std::string(".global .align 4 .u32 ") + name + "[1] = {64};\n";
    EXPECT_EQ(std::nullopt, constant(unit(variable), name)) << name;
  }
  const std::string rest = " .global .align 4 .u32 " + kName + "[1] = {64};\n";
  EXPECT_EQ(64u, constant(unit(rest)));
  EXPECT_EQ(std::nullopt, constant(unit(".visible" + rest)));
  EXPECT_EQ(std::nullopt, constant(unit(".weak .global .align 4 .u32 " + kName + "[1];\n")))
      << "no initialiser";
  EXPECT_EQ(std::nullopt, constant(unit(".extern .global .align 4 .u32 " + kName + "[1];\n")));
}

TEST(ModuleConstants, AreOnlyLoaded) {
  const auto with = [](const std::string& code) {
    return constant(unit(kVariable, load(kName) + "\n" + code));
  };
  EXPECT_EQ(64u, with(load(kName + "+8")));
  EXPECT_EQ(std::nullopt, with("st.global.u32 [" + kName + "+4], %r1;"));
  EXPECT_EQ(std::nullopt, with("atom.global.add.u32 %r1, [" + kName + "], 1;"));
  EXPECT_EQ(std::nullopt, with("red.global.add.u32 [" + kName + "], 1;"));
  EXPECT_EQ(std::nullopt, with("mov.u64 %rd1, " + kName + ";")) << "its address";
  EXPECT_EQ(std::nullopt, with("{ .local .u32 " + kName + "; }")) << "another variable of that name";
  // Elsewhere in the unit.
  const std::string other = ".func g() {\nst.global.u32 [" + kName + "], 1;\nret;\n}\n";
  EXPECT_EQ(std::nullopt, constant(unit(kVariable, "", other)));
  const std::string table = ".global .align 8 .u64 table[1] = {" + kName + "};\n";
  EXPECT_EQ(std::nullopt, constant(unit(kVariable + table)));
  EXPECT_EQ("%r1", operand_of(unit(kVariable, load(kName) + " st.global.u32 [" + kName + "], 1;"), "%r1"));
  EXPECT_EQ("%r1", operand_of(unit(kVariable, "ld.u32 %r1, [" + kName + "];"), "%r1")) << "in no space";
}

TEST(ModuleConstants, AreIntegersInAnArray) {
  const auto of = [](const std::string& type_and_size, const std::string& values) {
    const size_t name = type_and_size.find('[');
    return constant(unit(".global " + type_and_size.substr(0, name) + " " + kName +
                         type_and_size.substr(name) + " = " + values + ";\n"));
  };
  EXPECT_EQ(7u, of(".u32[2]", "{7, 8}"));
  EXPECT_EQ(std::nullopt, of(".f32[2]", "{7, 8}"));
  EXPECT_EQ(std::nullopt, of(".u32[2]", "{k, 8}"));
  EXPECT_EQ(std::nullopt, of(".u32[2]", "{-7, 8}"));
  EXPECT_EQ(std::nullopt, of(".u32[1]", "{7, 8}"));
  EXPECT_EQ(std::nullopt, of(".u8[4]", "{700}"));
  EXPECT_EQ(std::nullopt, of(".u32[2][2]", "{{7, 8}, {9, 10}}"));
  EXPECT_EQ(std::nullopt, of(".attribute(.managed) .u32[2]", "{7, 8}"));
}

TEST(ModuleConstants, AreDisputedWhereUnitsDiffer) {
  const std::string same = unit(kVariable, "", ".weak .entry e(.param .u64 x) { ret; }\n");
  const std::string other = unit(".weak .global .align 4 .b8 " + kName + "[12] = {32};\n");
  EXPECT_THAT(analysis::disputed_constants({same, same}, true), IsEmpty());
  EXPECT_THAT(analysis::disputed_constants({same, unit(""), other}, true), ElementsAre(kName));
  EXPECT_THAT(analysis::disputed_constants({same, same}, false), ElementsAre(kName));
  Kernel kernel(unit(kVariable, load(kName)), "k");
  const ptx::Statement& first = *kernel.flow.instructions()[0].statement;
  EXPECT_EQ(64u, analysis::loaded_constant(kernel.module, first));
  ptx::Module origin;
  origin.disputed = {kName};
  kernel.module.made_from.module = &origin;
  EXPECT_EQ(std::nullopt, analysis::loaded_constant(kernel.module, first)) << "of a unit made from another";
}

}  // namespace
}  // namespace klap::test
