// What each subcommand says about good input, in every form nvcc makes.
#include <gmock/gmock.h>

#include <sstream>

#include "command.h"

namespace klap::cli_test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kForms[] = {"program",    "capped",          "library.so",
                                  "launches.o", "launches.fatbin", "launches.ptx"};

class Inspect : public Command {};
class Extract : public Command {};
class Explain : public Command {};
class Rewrite : public Command {};

// The unit that holds programs/launches.cu.
json launching_unit(const json& inspected) {
  for (const json& image : inspected["images"]) {
    for (const json& unit : image["units"]) {
      if (unit["launches"] == true) return unit;
    }
  }
  ADD_FAILURE() << "no unit launches in " << inspected.dump(2);
  return {};
}

// The verdict on the only site of a parent.
json site_of(const json& explained, const std::string& parent) {
  for (const json& site : explained["sites"]) {
    if (site["parent_demangled"] == parent) return site;
  }
  ADD_FAILURE() << "no site in " << parent << ": " << explained.dump(2);
  return {};
}

TEST_F(Inspect, FindsKernelsSitesAndArgumentsInEveryForm) {
  for (const char* const form : kForms) {
    SCOPED_TRACE(form);
    const json unit = launching_unit(klap_ptx({"inspect", "--json", program(form)}).json());
    EXPECT_EQ(unit["kernels"].size(), 3);
    EXPECT_EQ(unit["has_ptx"], true);
    ASSERT_EQ(unit["sites"].size(), 2);
    for (const json& site : unit["sites"]) {
      EXPECT_EQ(site["child"], "_Z5childPii");
      EXPECT_EQ(site["child_demangled"], "child(int*, int)");
      EXPECT_EQ(site["idiom"], "cdp2");
      const bool is_looping = site["parent_demangled"] == "looping_parent(int*, int)";
      EXPECT_EQ(site["block"] == "32, 1, 1", !is_looping);
      EXPECT_EQ(site["in_loop"], is_looping);
      ASSERT_EQ(site["arguments"].size(), 2);
      EXPECT_EQ(site["arguments"][0]["offset"], 0);
      EXPECT_EQ(site["arguments"][0]["bytes"], 8);
      EXPECT_EQ(site["arguments"][1]["offset"], 8);
      EXPECT_EQ(site["arguments"][1]["bytes"], 4);
      EXPECT_NE(site["arguments"][1]["source"], "");
    }
  }
}

TEST_F(Inspect, LineIsThatOfTheFirstCallOfTheLaunch) {
  std::vector<std::string> lines;
  std::istringstream text(read(program("launches.ptx")));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const json unit = launching_unit(klap_ptx({"inspect", "--json", program("launches.ptx")}).json());
  for (const json& site : unit["sites"]) {
    const size_t at = site["line"].get<size_t>();
    ASSERT_GE(at, 1);
    ASSERT_LE(at + 1, lines.size());
    // The call may be on the line of its opcode or, reflowed, on that of its target.
    EXPECT_THAT(lines[at - 1] + lines[at], HasSubstr("__cudaCDP2GetParameterBufferV2")) << at;
  }
}

TEST_F(Inspect, ExecutableShowsUnitsAndDeviceRuntime) {
  const json images = klap_ptx({"inspect", "--json", program("program")}).json()["images"];
  ASSERT_EQ(images.size(), 1);
  int runtimes = 0, plain = 0, launching = 0;
  for (const json& unit : images[0]["units"]) {
    if (unit["device_runtime"] == true) {
      ++runtimes;
    } else {
      ++(unit["launches"] == true ? launching : plain);
    }
  }
  EXPECT_EQ(runtimes, 1);
  EXPECT_EQ(launching, 1);
  EXPECT_EQ(plain, 1);
}

TEST_F(Inspect, TextShowsBothNamesOptionsAndWhereArgumentsComeFrom) {
  const Result result = klap_ptx({"inspect", program("capped")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("kernel child(int*, int) [_Z5childPii]"));
  EXPECT_THAT(result.out, HasSubstr("options -maxrregcount"));
  EXPECT_THAT(result.out, ContainsRegex("launch at line [0-9]+:[0-9]+, in a loop: child"));
  EXPECT_THAT(result.out, ContainsRegex("argument at 8, 4 bytes: [a-z]+"));
}

TEST_F(Inspect, ProgramWithoutRelocatableCodeHasNoSites) {
  const Result result = klap_ptx({"inspect", "--json", program("whole_program")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("clear"));
  const json inspected = result.json();
  for (const json& image : inspected["images"]) {
    for (const json& unit : image["units"]) EXPECT_EQ(unit["sites"], json::array());
  }
}

TEST_F(Extract, IndexNamesFilesThatExistInEveryForm) {
  for (const char* const form : kForms) {
    SCOPED_TRACE(form);
    const std::string folder = path(form + std::string(".extracted"));
    const Result result = klap_ptx({"extract", "--json", program(form), "-o", folder});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json index = json::parse(read(folder + "/index.json"));
    EXPECT_EQ(index, result.json());
    int units_that_launch = 0;
    for (const json& image : index["images"]) {
      for (const json& unit : image["units"]) {
        for (const json& entry : unit["entries"]) {
          const std::string name = entry["file"];
          const std::string bytes = read(std::filesystem::path(folder) / name);
          EXPECT_EQ(entry["bytes"], bytes.size());
          if (!name.ends_with(".ptx") || name.find("cudadevrt") != std::string::npos) continue;
          if (bytes.find("__cudaCDP2LaunchDeviceV2") != std::string::npos) ++units_that_launch;
        }
      }
    }
    EXPECT_EQ(units_that_launch, 1);
  }
}

TEST_F(Extract, NamesTellArchitectureAndDeviceRuntime) {
  ASSERT_EQ(klap_ptx({"extract", program("program"), "-o", path("out")}).exit_code, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path("out")))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::Contains(testing::MatchesRegex("unit[0-9].compute_90.ptx")));
  EXPECT_THAT(names, testing::Contains(testing::MatchesRegex("unit[0-9].sm_90.cubin")));
  EXPECT_THAT(names, testing::Contains(testing::MatchesRegex("unit[0-9]-cudadevrt.*.cubin")));
}

TEST_F(Extract, OptionsOfTheBuildAreFilesToo) {
  ASSERT_EQ(klap_ptx({"extract", program("capped"), "-o", path("out")}).exit_code, 0);
  EXPECT_EQ(read(path("out/unit0.compute_90.ptx.options")), "-maxrregcount=64\n");
  EXPECT_EQ(read(path("out/unit1.compute_90.ptx.options")), "-maxrregcount=64\n");
  ASSERT_EQ(klap_ptx({"extract", program("program"), "-o", path("plain")}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("plain/unit0.compute_90.ptx.options")));
}

TEST_F(Explain, SaysRewrittenOrTheReasonInEveryForm) {
  for (const char* const form : kForms) {
    SCOPED_TRACE(form);
    const Result result = klap_ptx({"explain", "--json", "--granularity", "grid", program(form)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json explained = result.json();
    EXPECT_EQ(explained["sites"].size(), 2);
    const json rewritten = site_of(explained, "parent(int*, int)");
    EXPECT_EQ(rewritten["verdict"], "rewritten");
    EXPECT_EQ(rewritten["granularity"], "grid");
    EXPECT_EQ(rewritten["launcher"], "host");
    const json left = site_of(explained, "looping_parent(int*, int)");
    EXPECT_EQ(left["verdict"], "left");
    EXPECT_EQ(left["reason"], "parent-waits");
  }
}

TEST_F(Explain, RemarksReadLikeTheCompilers) {
  const Result result = klap_ptx({"explain", "--granularity", "grid", program("launches.ptx")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              ContainsRegex("launches.ptx:[0-9]+:[0-9]+: remark: launch of child\\(int\\*, int\\) "
                            "from parent\\(int\\*, int\\) rewritten: granularity grid, launched by the host, "
                            "block by block \\[-Rklap=grid\\]\n"));
  EXPECT_THAT(result.out, ContainsRegex("from looping_parent\\(int\\*, int\\) left: atom[^\n]* "
                                        "\\[-Rklap=parent-waits\\]\n"));
  EXPECT_THAT(result.out, HasSubstr("2 launch sites: 1 rewritten, 1 left\n"));
}

TEST_F(Explain, UnitsOfExecutablesAreNamed) {
  EXPECT_THAT(klap_ptx({"explain", program("program")}).out,
              ContainsRegex("program: unit [0-9]+:[0-9]+:[0-9]+: remark: "));
}

TEST_F(Explain, GranularityOfTheCommandLineBeatsEnvironmentBeatsFile) {
  const std::string file = program("launches.ptx");
  const auto verdict = [&](const std::vector<std::string>& options,
                           const std::vector<std::string>& environment) {
    std::vector<std::string> arguments{"explain", "--json", file};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return site_of(klap_ptx(arguments, environment).json(), "parent(int*, int)")["verdict"]
        .get<std::string>();
  };
  const std::string none = write("none.toml", "[defaults]\ngranularity = \"none\"\n");
  const std::string grid = write("grid.toml", "[defaults]\ngranularity = \"grid\"\n");
  EXPECT_EQ(verdict({"--granularity", "none"}, {}), "left");
  EXPECT_EQ(verdict({"--config", none}, {}), "left");
  EXPECT_EQ(verdict({}, {"KLAP_CONFIG=" + none}), "left");
  EXPECT_EQ(verdict({"--config", grid}, {"KLAP_CONFIG=" + none}), "rewritten");
  EXPECT_EQ(verdict({"--config", none}, {"KLAP_GRANULARITY=grid"}), "rewritten");
  EXPECT_EQ(verdict({"--granularity", "grid"}, {"KLAP_GRANULARITY=none"}), "rewritten");
}

TEST_F(Explain, KernelTablesMatchByDemangledName) {
  const std::string config =
      write("klap.toml",
            "[[kernel]]\nname = \"parent(*\"\ngranularity = \"none\"\n[[kernel]]\nname = \"parent\"\n");
  const Result result = klap_ptx({"explain", "--json", program("launches.ptx"), "--config", config});
  EXPECT_EQ(site_of(result.json(), "parent(int*, int)")["reason"], "config-none");
  EXPECT_THAT(result.err, HasSubstr(config + ":4: [[kernel]] 'parent' matches no kernel that launches"));
  EXPECT_THAT(result.err, Not(HasSubstr("'parent(*' matches no")));
}

TEST_F(Explain, CopiesThatNothingCallsAreNotCountedAsLeft) {
  const Result result = klap_ptx({"explain", program("hidden.ptx")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              ContainsRegex("from launch\\(int\\*\\) left: no code here[^\n]*\\[-Rklap=never-called\\]\n"));
  EXPECT_THAT(result.out, HasSubstr("3 launch sites: 2 rewritten, 0 left, 1 in code that is never called\n"));
}

TEST_F(Explain, KernelsThatOtherUnitsCannotSeeHaveTheirNames) {
  const std::string out = klap_ptx({"explain", program("hidden.ptx")}).out;
  EXPECT_THAT(out, HasSubstr(": remark: launch of child(int*) from "));
  EXPECT_THAT(out, HasSubstr(": remark: launch of other(int*) from "));
}

TEST_F(Rewrite, PtxIsAcceptedByPtxasInEveryForm) {
  for (const char* const form : kForms) {
    SCOPED_TRACE(form);
    const std::string out = path(std::string(form) + ".out.ptx");
    const Result result = klap_ptx({"rewrite", program(form), "-o", out});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string ptx = read(out);
    EXPECT_THAT(ptx, HasSubstr(".entry _Z6parentPii")) << "originals stay";
    EXPECT_THAT(ptx, HasSubstr(".entry _Z14looping_parentPii"));
    const Result assembled = command({PTXAS, "-arch=sm_90", "-c", out, "-o", path("assembled.cubin")});
    EXPECT_EQ(assembled.exit_code, 0) << assembled.err;
  }
}

TEST_F(Rewrite, PtxOfSeveralUnitsIsNumbered) {
  const Result result =
      klap_ptx({"rewrite", "--json", program("two_launching_units"), "-o", path("out.ptx")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["outputs"].size(), 2);
  EXPECT_THAT(read(path("out-0.ptx")), HasSubstr(".entry _Z6parentPii"));
  EXPECT_THAT(read(path("out-1.ptx")), HasSubstr(".entry _Z12other_parentPi"));
  EXPECT_FALSE(std::filesystem::exists(path("out.ptx")));
}

TEST_F(Rewrite, CubinIsALinkedImageWithOriginalsAndVariantsInEveryForm) {
  for (const char* const form : kForms) {
    SCOPED_TRACE(form);
    const std::string out = path(std::string(form) + ".cubin");
    const Result result = klap_ptx({"rewrite", "--json", program(form), "-o", out});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.json()["outputs"][0]["file"], out);
    const std::string cubin = read(out);
    EXPECT_EQ(cubin.substr(0, 4), "\177ELF");
    EXPECT_THAT(cubin, HasSubstr("_Z6parentPii"));
    EXPECT_THAT(cubin, HasSubstr("_Z14looping_parentPii"));
  }
}

TEST_F(Rewrite, NothingToRewriteWritesNothingAndSaysSo) {
  for (const char* const out : {"out.ptx", "out.cubin"}) {
    const Result result = klap_ptx({"rewrite", program("program"), "-o", path(out), "--granularity", "none"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("no launch site could be rewritten"));
    EXPECT_THAT(result.out, HasSubstr(" left: granularity none for this parent [-Rklap=config-none]\n"));
    EXPECT_FALSE(std::filesystem::exists(path(out)));
  }
}

TEST_F(Rewrite, DumpFolderReceivesTheStages) {
  const Result result = klap_ptx({"rewrite", program("launches.ptx"), "-o", path("out.cubin")},
                                 {"KLAP_DUMP_DIR=" + path("stages")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(std::filesystem::is_empty(path("stages")));
}

}  // namespace
}  // namespace klap::cli_test
