// Which shared variables of several kernels may lie in one place.
#include "analysis/legality/shared_overlay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "ptx/tree.h"

namespace klap::test {
namespace {

// "12 bytes by 4: a at 0, b at 8 | c at 0", where the bar divides the kernels.
std::string overlay_of(const std::string& unit, const std::string& first, const std::string& second) {
  const ptx::Module module =
      ptx::parse(".version 9.0\n.target sm_90\n.address_size 64\n" + unit +
                     ".visible .entry one() {\n.reg .b32 %r<9>;\n" + first +
                     "\nret;\n}\n.visible .entry two() {\n.reg .b32 %r<9>;\n" + second + "\nret;\n}\n",
                 "test");
  const std::array functions = {module.find_function("one"), module.find_function("two")};
  const analysis::SharedOverlay overlay = analysis::shared_overlay(module, functions);
  std::string out = fmt::format("{} bytes by {}:", overlay.bytes, overlay.align);
  for (size_t k = 0; k < overlay.kernels.size(); ++k) {
    out += k == 0 ? "" : " |";
    for (const analysis::OverlaidVariable& v : overlay.kernels[k])
      out += fmt::format(" {} at {}", v.name, v.offset);
  }
  return out;
}

TEST(SharedOverlay, HasTheVariablesOfEachKernel) {
  const std::string unit = ".weak .shared .align 16 .b8 big[100];\n.shared .align 4 .b32 word;\n";
  EXPECT_EQ("112 bytes by 16: big at 0 | word at 0",
            overlay_of(unit, "mov.u32 %r1, big;", "ld.shared.u32 %r1, [word];"));
  EXPECT_EQ(
      "32 bytes by 8: a at 0 b at 8 | c at 0",
      overlay_of(
          "",
          ".shared .align 2 .b16 a[3];\n.shared .align 8 .b64 b[3];\nst.shared.u16 [a], 1; mov.u32 %r1, b;",
          ".shared .align 4 .b8 c[8];\nmov.u32 %r1, c;"));
}

TEST(SharedOverlay, IsNotForOneKernelAlone) {
  EXPECT_EQ("0 bytes by 1: |", overlay_of(".shared .align 4 .b32 word;\n", "ld.shared.u32 %r1, [word];", ""));
}

TEST(SharedOverlay, HasNoneThatOthersName) {
  const std::string unit =
      ".shared .align 4 .b32 word;\n.shared .align 4 .b32 other;\n.extern .shared .align 4 .b8 dynamic[];\n"
      ".func helper() { .reg .b32 %x; ld.shared.u32 %x, [word]; ret; }\n";
  EXPECT_EQ("0 bytes by 1: |",
            overlay_of(unit, "call helper, ();\nld.shared.u32 %r1, [word];", "ld.shared.u32 %r1, [other];"));
  EXPECT_EQ("0 bytes by 1: |", overlay_of(unit, "mov.u32 %r1, dynamic;", "ld.shared.u32 %r1, [other];"));
}

}  // namespace
}  // namespace klap::test
