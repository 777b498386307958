// A block that nvcc keeps in a variable is known only where all units of the program say the same of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.h"
#include "jit/module.h"

namespace klap::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string golden_ptx() {
  return read_golden(KLAP_GOLDEN_DIR "/rewritten-block-in-template.golden").section("ptx");
}

// What becomes of the launch of a program that has another unit as well.
jit::SiteRemark beside(const std::string& ptx, const std::string& cubin = "") {
  jit::Request request;
  request.sm = 90;
  jit::Program program = jit::program_from_ptx(golden_ptx(), "unit 0");
  jit::Unit other;
  other.name = "unit 1";
  other.ptx = ptx;
  other.cubin = cubin;
  program.units.push_back(other);
  return explain_module(program, request).at(0);
}

std::string variable(const std::string& values) {
  const std::string ptx = golden_ptx();
  const size_t begin = ptx.find(".weak .global"), values_begin = ptx.find("{64", begin);
  return ptx.substr(0, ptx.find(".extern")) + ptx.substr(begin, values_begin - begin) + values + ";\n";
}

TEST(ModuleConstants, AreKnownWhereUnitsAgree) {
  EXPECT_THAT(beside(variable("{64, 0, 0, 0, 1, 0, 0, 0, 1}")).detail, HasSubstr("block 64x1x1"));
  EXPECT_THAT(beside(variable("{32, 0, 0, 0, 1, 0, 0, 0, 1}")).detail, Not(HasSubstr("block 64x1x1")));
}
TEST(ModuleConstants, AreUnknownWhereAUnitCannotBeRead) {
  EXPECT_THAT(beside("", "machine code").detail, Not(HasSubstr("block 64x1x1")));
}

}  // namespace
}  // namespace klap::test
