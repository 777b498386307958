// What klap-ptx inspect shows on request: the stages of a pass, and the analyses.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "command.h"

namespace klap::cli_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Stages : public Command {
 protected:
  // The results of one pass over launches.ptx.
  json results(const std::string& pass, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"inspect", "--json", "--dump-after=" + pass, program("launches.ptx")});
    const Result result = klap_ptx(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json()["results"];
  }

  std::vector<std::string> passes() {
    std::istringstream lines(klap_ptx({"inspect", "--dump-after=help"}).out);
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      words >> names.emplace_back();
    }
    return names;
  }
};

TEST_F(Stages, HelpListsThePassesInTheirOrderWithoutAFile) {
  const Result result = klap_ptx({"inspect", "--dump-after=help"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(passes(), testing::ElementsAre("load", "parse", "sites", "legality", "plan", "splice",
                                             "aggregate", "unit", "link"));
}

TEST_F(Stages, EveryPassLeavesSomething) {
  for (const std::string& pass : passes()) {
    SCOPED_TRACE(pass);
    const json stages = results(pass);
    EXPECT_GE(stages.size(), 1);
    for (const json& stage : stages) {
      EXPECT_EQ(stage["pass"], pass);
      EXPECT_NE(stage["text"], "");
    }
  }
}

TEST_F(Stages, LoadIsThePtxAsItIs) { EXPECT_EQ(results("load")[0]["text"], read(program("launches.ptx"))); }

TEST_F(Stages, ParseNamesKernelsAndParameters) {
  const std::string text = results("parse")[0]["text"];
  EXPECT_THAT(text, HasSubstr("visible kernel parent(int*, int) [_Z6parentPii]"));
  EXPECT_THAT(text, ContainsRegex("parameter _Z6parentPii_param_1 at 8, 4 bytes"));
  EXPECT_THAT(text, ContainsRegex("[0-9]+ instructions, [0-9]+ labels"));
}

TEST_F(Stages, SitesAndVerdictsAreOnePerSite) {
  for (const char* const pass : {"sites", "legality"}) {
    const json stages = results(pass);
    ASSERT_EQ(stages.size(), 2) << pass;
    std::set<std::string> kernels;
    for (const json& stage : stages) kernels.insert(stage["kernel"]);
    EXPECT_EQ(kernels, (std::set<std::string>{"_Z6parentPii", "_Z14looping_parentPii"}));
  }
  EXPECT_EQ(results("plan", {"--granularity", "grid"}).size(), 1) << "one of the two is left";
}

TEST_F(Stages, LegalityGivesTheReason) {
  const json stages = results("legality", {"--granularity", "grid", "--kernel", "_Z14*"});
  ASSERT_EQ(stages.size(), 1);
  EXPECT_THAT(stages[0]["text"].get<std::string>(),
              AllOf(HasSubstr(" [-Rklap=parent-waits]\n"), HasSubstr("note: reason=parent-waits ")));
}

TEST_F(Stages, KernelIsMatchedByEitherNameAndForVariantsToo) {
  for (const char* const name : {"_Z6parentPii", "parent(*", "_Z6*"}) {
    SCOPED_TRACE(name);
    const json stages = results("aggregate", {"--kernel", name, "--launcher", "host"});  // one variant
    ASSERT_EQ(stages.size(), 1);
    EXPECT_THAT(stages[0]["kernel"].get<std::string>(), StartsWith("_Z6parentB18klap_grid_"));
  }
}

TEST_F(Stages, SpliceIsTheChildsBodyAndPartOfTheConsumer) {
  const json splice = results("splice", {"--granularity", "grid", "--launcher", "host"}),
             kernels = results("aggregate", {"--granularity", "grid", "--kernel", "_Z5childPii"});
  ASSERT_EQ(splice.size(), 1);
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_THAT(splice[0]["kernel"].get<std::string>(), StartsWith("_Z5childB"));
  const std::string body = splice[0]["text"];
  EXPECT_THAT(body, HasSubstr("%klap_c0_"));
  EXPECT_THAT(kernels[0]["text"].get<std::string>(), HasSubstr(body.substr(0, body.size() / 2)));
}

TEST_F(Stages, UnitIsAcceptedByPtxas) {
  const json units = results("unit");
  ASSERT_EQ(units.size(), 1);
  const std::string file = write("unit.ptx", units[0]["text"]);
  const Result assembled = command({PTXAS, "-arch=sm_90", "-c", file, "-o", path("unit.o")});
  EXPECT_EQ(assembled.exit_code, 0) << assembled.err;
}

TEST_F(Stages, LinkNamesInputsOptionsAndKernels) {
  const Result result = klap_ptx({"inspect", "--dump-after=link", program("launches.ptx")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("options -arch=sm_90"), HasSubstr("libcudadevrt.a"),
                                HasSubstr("_Z6parentB18klap_grid_"), HasSubstr("bytes of machine code")));
}

TEST_F(Stages, OptionsOfThePolicyCount) {
  EXPECT_EQ(results("plan", {"--granularity", "none"}).size(), 0);
  EXPECT_THAT(results("plan", {"--launcher", "device"})[0]["text"].get<std::string>(),
              ContainsRegex("launcher +device"));
}

TEST_F(Stages, PassesUpToThePlanNeedNoToolkit) {
  for (const char* const pass : {"load", "parse", "sites", "legality", "plan"}) {
    const Result result = klap_ptx({"inspect", std::string("--dump-after=") + pass, program("launches.ptx")},
                                   {"KLAP_NVRTC=/nowhere", "KLAP_NVJITLINK=/nowhere"});
    EXPECT_EQ(result.exit_code, 0) << pass << ": " << result.err;
  }
  const Result result = klap_ptx({"inspect", "--dump-after=aggregate", program("launches.ptx")},
                                 {"KLAP_NVRTC=/nowhere", "KLAP_NVJITLINK=/nowhere"});
  EXPECT_EQ(result.exit_code, 1);
}

TEST_F(Stages, UnknownPassesAreWrongUsage) {
  const Result near = klap_ptx({"inspect", "--dump-after=sitse", program("launches.ptx")});
  EXPECT_EQ(near.exit_code, 2);
  EXPECT_THAT(near.err, HasSubstr("unknown pass 'sitse'; did you mean 'sites'?"));
  const Result far = klap_ptx({"inspect", "--dump-after=frobnicate", program("launches.ptx")});
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_THAT(far.err, HasSubstr("--dump-after=help lists them"));
}

// The folder of KLAP_DUMP_DIR holds the same, a file for each.
TEST_F(Stages, AreTheFilesOfTheDumpFolder) {
  const std::string folder = path("dump");
  ASSERT_EQ(
      klap_ptx({"rewrite", program("launches.ptx"), "-o", path("out.cubin")}, {"KLAP_DUMP_DIR=" + folder})
          .exit_code,
      0);
  std::set<std::string> expected, found;
  for (const std::string& pass : passes()) {
    for (const json& stage : results(pass)) {
      const std::string file = stage["stage"];
      expected.insert(file);
      if (file.ends_with(".cubin")) continue;
      EXPECT_EQ(stage["text"], read(std::filesystem::path(folder) / file)) << file;
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) found.insert(entry.path().filename());
  EXPECT_EQ(found, expected);
}

// ---- analyses ----

class Analyses : public Command {};

TEST_F(Analyses, CfgIsAGraphForEachFunction) {
  const Result result =
      klap_ptx({"inspect", "--cfg", program("launches.ptx"), "--kernel", "looping_parent(*"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("digraph"), HasSubstr("->"), HasSubstr("looping_parent")));
  EXPECT_THAT(result.out, Not(HasSubstr("_Z5childPii]\n")));
}

TEST_F(Analyses, UniformityIsTheAnnotatedPtx) {
  const Result result =
      klap_ptx({"inspect", "--uniformity", program("launches.ptx"), "--kernel", "_Z5childPii"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("/\\*g g\\*/ [^\n]*ld.param"));  // the same for the whole grid
  EXPECT_THAT(result.out, ContainsRegex("/\\*t g\\*/ [^\n]*%tid.x"));    // a thread's own
}

TEST_F(Analyses, AllThatAreOfferedGiveAResultForEveryFunction) {
  std::istringstream lines(klap_ptx({"inspect", "--help"}).out);
  size_t offered = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Print for each function") == std::string::npos) continue;
    std::istringstream words(line);
    std::string option;
    words >> option;
    ++offered;
    SCOPED_TRACE(option);
    const Result result = klap_ptx({"inspect", "--json", option, program("launches.ptx")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json results = result.json()["results"];
    EXPECT_EQ(results.size(), 3);
    for (const json& entry : results) {
      EXPECT_EQ("--" + entry["analysis"].get<std::string>(), option);
      EXPECT_FALSE(entry["text"].get<std::string>().empty());
    }
  }
  EXPECT_GE(offered, 10);
}

// ---- debug builds ----

TEST_F(Stages, DebugUnitsAreTreatedWhenAskedFor) {
  std::string text = read(program("launches.ptx"));
  const size_t target = text.find('\n', text.find("\n.target ") + 1);
  const std::string file = write("debug.ptx", text.insert(target, ", debug"));
  for (const char* const command : {"explain", "inspect"}) {
    std::vector<std::string> arguments{command, file};
    if (std::string(command) == "inspect") arguments.emplace_back("--dump-after=legality");
    EXPECT_THAT(klap_ptx(arguments).out, HasSubstr(" [-Rklap=debug-build]\n"));
    arguments.emplace_back("--debug-units");
    EXPECT_THAT(klap_ptx(arguments).out, HasSubstr("rewritten: granularity grid"));
  }
  EXPECT_EQ(klap_ptx({"rewrite", file, "-o", path("left.ptx")}).exit_code, 1);
  const Result rewritten = klap_ptx({"rewrite", file, "--debug-units", "-o", path("done.ptx")});
  EXPECT_EQ(rewritten.exit_code, 0) << rewritten.err;
  EXPECT_THAT(read(path("done.ptx")), AllOf(HasSubstr(", debug"), HasSubstr("klap_grid_")));
}

}  // namespace
}  // namespace klap::cli_test
