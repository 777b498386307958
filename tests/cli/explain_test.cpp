// The filters of explain, and its exit code for CI.
#include <gmock/gmock.h>

#include "command.h"

namespace klap::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

class ExplainFilters : public Command {
 protected:
  // launches.ptx has a site that is rewritten and, over the grid, one that is left for parent-waits.
  Result explain(const Words& options) {
    Words words = {"explain", program("launches.ptx"), "--granularity", "grid"};
    words.insert(words.end(), options.begin(), options.end());
    return klap_ptx(words);
  }
};

TEST_F(ExplainFilters, CheckFailsIfASiteIsLeft) {
  struct Row {
    Words options;
    int exit_code;
    const char* summary;
  };
  for (const Row& row : {
           Row{{}, 0, "\n2 launch sites: 1 rewritten, 1 left\n"},
           Row{{"--check"}, 3, "\n2 launch sites: 1 rewritten, 1 left\n"},
           Row{{"--check", "--only", "_Z6parentPii"}, 0, "\n1 of 2 launch sites: 1 rewritten, 0 left\n"},
           Row{{"--check", "--only", "looping"}, 3, "\n1 of 2 launch sites: 0 rewritten, 1 left\n"},
           Row{{"--check", "--only", "child(int*"}, 3, "\n2 launch sites: 1 rewritten, 1 left\n"},
           Row{{"--reason", "parent-waits"}, 0, "\n1 of 2 launch sites: 0 rewritten, 1 left\n"},
           Row{{"--check", "--reason", "parent-waits"}, 3, "\n1 of 2 launch sites: 0 rewritten, 1 left\n"},
           Row{{"--check", "--reason", "site-in-loop"}, 0, "0 of 2 launch sites: 0 rewritten, 0 left\n"},
       }) {
    const Result result = explain(row.options);
    EXPECT_EQ(result.exit_code, row.exit_code) << testing::PrintToString(row.options);
    EXPECT_THAT("\n" + result.out, HasSubstr(row.summary)) << testing::PrintToString(row.options);
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(ExplainFilters, CheckPassesIfAllAreRewritten) {
  const Result result = klap_ptx({"explain", "--check", program("program")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("2 launch sites: 2 rewritten, 0 left\n"));
}

TEST_F(ExplainFilters, CheckDoesNotMindCodeThatNothingCalls) {
  EXPECT_EQ(klap_ptx({"explain", "--check", program("hidden.ptx")}).exit_code, 0);
  EXPECT_EQ(klap_ptx({"explain", "--check", "--granularity", "none", program("hidden.ptx")}).exit_code, 3);
}

// An object file with a unit that has PTX, and one that has none.
TEST_F(ExplainFilters, UnitsWithoutPtxCountForCheck) {
  std::string units = read(program("launches.fatbin"));
  units.resize((units.size() + 7) / 8 * 8);
  const std::string file = path("mixed.o");
  const Result made = command({"objcopy", "--update-section",
                               "__nv_relfatbin=" + write("units", units + read(program("unread.fatbin"))),
                               program("launches.o"), file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Result result = klap_ptx({"explain", file, "--check"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, HasSubstr(": remark: its launches are left: the unit launches"));
  EXPECT_THAT(result.out, HasSubstr("2 launch sites: 2 rewritten, 0 left; 1 unit could not be judged\n"));
  EXPECT_EQ(klap_ptx({"explain", file}).exit_code, 0);
  EXPECT_EQ(klap_ptx({"explain", file, "--check", "--only", "parent"}).exit_code, 0);
}

TEST_F(ExplainFilters, OnlySitesOfAKernelAreShown) {
  const Result result = explain({"--only", "looping"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("from looping_parent("), Not(HasSubstr("from parent("))));
  EXPECT_EQ(explain({"--only", "looping", "--json"}).json()["sites"].size(), 1u);
  EXPECT_EQ(explain({"--only", "looping", "--reason", "site-in-loop", "--json"}).json()["sites"].size(), 0u);
}

TEST_F(ExplainFilters, AKernelThatIsNotThereIsAnError) {
  struct Row {
    const char *kernel, *fix;
  };
  for (const Row& row : {Row{"chidl", "did you mean 'child'?"}, Row{"parrent", "did you mean 'parent'?"},
                         Row{"_Z5chidlPii", "did you mean '_Z5childPii'?"},
                         Row{"quite_another", "there are child, looping_parent, parent"}}) {
    for (const Words& options : {Words{}, Words{"--json"}, Words{"--check"}}) {
      Words words = {"--only", row.kernel};
      words.insert(words.end(), options.begin(), options.end());
      const Result result = explain(words);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err,
                  HasSubstr(std::string("no kernel that launches or is launched has '") + row.kernel));
      EXPECT_THAT(result.err, HasSubstr(row.fix));
    }
  }
  const Result result = klap_ptx({"explain", program("no_launches.ptx"), "--only", "clear"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no kernel here launches kernels"));
}

TEST_F(ExplainFilters, AReasonThatIsNoneIsWrongUsage) {
  const Result near = explain({"--reason", "parent-wait"});
  EXPECT_EQ(near.exit_code, 2);
  EXPECT_EQ(near.out, "");
  EXPECT_THAT(near.err, HasSubstr("unknown reason 'parent-wait'; did you mean 'parent-waits'?"));
  const Result far = explain({"--reason", "because"});
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_THAT(far.err, HasSubstr("unknown reason 'because'; klap-ptx reasons lists them"));
}

TEST_F(ExplainFilters, ColoursAreForTerminals) {
  const std::string line = KLAP_PTX " explain --granularity grid " + program("launches.ptx");
  const auto on_terminal = [&](const Words& environment) {
    return command({"script", "-qec", line, "/dev/null"}, environment).out;
  };
  EXPECT_THAT(on_terminal({"TERM=xterm", "NO_COLOR="}),
              AllOf(HasSubstr("\033[32mrewritten:\033[0m"), HasSubstr("\033[33mleft:\033[0m")));
  EXPECT_THAT(on_terminal({"TERM=xterm", "NO_COLOR=1"}),
              AllOf(HasSubstr("rewritten:"), Not(HasSubstr("\033"))));
  EXPECT_THAT(on_terminal({"TERM=dumb", "NO_COLOR="}),
              AllOf(HasSubstr("rewritten:"), Not(HasSubstr("\033"))));
  EXPECT_THAT(explain({}).out, Not(HasSubstr("\033")));
}

class InspectKernel : public Command {};

TEST_F(InspectKernel, ShowsThatKernelAlone) {
  const std::string out = klap_ptx({"inspect", program("launches.ptx"), "--kernel", "parent(*"}).out;
  EXPECT_THAT(out,
              AllOf(HasSubstr("kernel parent("), HasSubstr("from parent("), Not(HasSubstr("kernel child("))));
  EXPECT_THAT(out, Not(HasSubstr("from looping_parent(")));
}

TEST_F(InspectKernel, OneThatIsNotThereIsAnError) {
  for (const Words& options : {Words{}, Words{"--cfg"}, Words{"--json"}, Words{"--dump-after=plan"}}) {
    Words words = {"inspect", program("launches.ptx"), "--kernel", "nosuch"};
    words.insert(words.end(), options.begin(), options.end());
    const Result result = klap_ptx(words);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                HasSubstr("there is no kernel 'nosuch' (fix: there are child, looping_parent, parent)"));
  }
  EXPECT_THAT(klap_ptx({"inspect", program("program"), "--kernel", "chidl"}).err,
              HasSubstr("there is no kernel 'chidl' (fix: did you mean 'child'?)"));
}

TEST_F(InspectKernel, AnalysesNeedPtx) {
  const Result result = klap_ptx({"inspect", program("unread.fatbin"), "--cfg"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no unit has PTX for sm_90 to look into"));
}

}  // namespace
}  // namespace klap::cli_test
