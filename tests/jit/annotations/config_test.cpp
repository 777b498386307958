// klap-ptx with hinted programs: what is in force for a kernel and who says so, and variants that assemble.
#include <gmock/gmock.h>

#include "cli/command.h"

namespace klap::test {
namespace {

using testing::HasSubstr;

class Hinted : public cli_test::Command {
 protected:
  // The row of a key, for launches of the child by the parent.
  nlohmann::json row(const std::string& key, const std::string& parent,
                     const std::vector<std::string>& environment = {}) {
    const auto result = klap_ptx({"config", "--json", parent, "--child", "_Z5childPii", "--program",
                                  cli_test::program("annotated.fatbin")},
                                 environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json printed = result.json();
    for (const nlohmann::json& row : printed["settings"]) {
      if (row["key"] == key) return row;
    }
    return nullptr;
  }
};

TEST_F(Hinted, ProgramsHaveTheirHintsInForce) {
  const nlohmann::json multiblock = row("multiblock", "whole_kernel");
  EXPECT_EQ(multiblock["value"], "8");
  EXPECT_EQ(multiblock["from"], "program");
  EXPECT_THAT(multiblock["place"], HasSubstr("annotated.fatbin: unit 0: line "));
  EXPECT_EQ(row("granularity", "kernel_and_launch")["value"], "warp") << "the launch's own";
  EXPECT_EQ(row("granularity", "unhinted")["from"], "default");
}

TEST_F(Hinted, ProgramsGiveWayToSettings) {
  const nlohmann::json set = row("granularity", "whole_kernel", {"KLAP_GRANULARITY=grid"});
  EXPECT_EQ(set["value"], "grid");
  EXPECT_EQ(set["from"], "environment");
  const std::string config =
      write("klap.toml", "[[kernel]]\nname = \"whole_*\"\nchild = \"child(*\"\ngranularity = \"block\"\n");
  EXPECT_EQ(row("granularity", "whole_kernel", {"KLAP_CONFIG=" + config})["place"], config + ":4");
}

TEST_F(Hinted, KernelsHaveVariantsThatAssemble) {
  const std::string out = path("out.ptx");
  const auto result = klap_ptx({"rewrite", cli_test::program("annotated.ptx"), "-o", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(cli_test::read(out), HasSubstr("whole_kernel$klap_multi8_"));
  EXPECT_THAT(cli_test::read(out), HasSubstr("kernel_and_launch$klap_warp_"));
  const auto assembled = command({KLAP_PTXAS, "-arch=sm_90", "-c", out, "-o", path("out.cubin")});
  EXPECT_EQ(assembled.exit_code, 0) << assembled.err;
}

}  // namespace
}  // namespace klap::test
