// Bad input: whatever the file, klap-ptx names it, says what is wrong in one message, and exits with 1.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>

#include "command.h"

namespace klap::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Input : public Command {
 protected:
  // Every subcommand must refuse the file in the same way.
  void expect_refused(const std::string& file, const std::string& message) {
    for (const std::vector<std::string>& arguments : commands_on(file)) {
      const Result result = klap_ptx(arguments);
      EXPECT_EQ(result.exit_code, 1) << arguments[0] << ": " << result.out << result.err;
      EXPECT_THAT(result.err, StartsWith("klap-ptx: " + file)) << arguments[0];
      EXPECT_THAT(result.err, HasSubstr(message)) << arguments[0];
    }
    EXPECT_FALSE(std::filesystem::exists(path("out.cubin")));
    EXPECT_FALSE(std::filesystem::exists(path("out.ptx")));
  }

  std::vector<std::vector<std::string>> commands_on(const std::string& file) {
    return {{"inspect", file},
            {"inspect", "--json", file},
            {"extract", file, "-o", path("extracted")},
            {"explain", file},
            {"rewrite", file, "-o", path("out.cubin")},
            {"rewrite", file, "-o", path("out.ptx")}};
  }
};

TEST_F(Input, MissingFile) { expect_refused(path("absent"), "No such file or directory"); }

TEST_F(Input, Folder) {
  std::filesystem::create_directory(path("folder"));
  expect_refused(path("folder"), "folder");
}

TEST_F(Input, EmptyFile) { expect_refused(write("empty", ""), ""); }

TEST_F(Input, TextThatIsNotPtx) {
  expect_refused(write("notes.txt", "Dear diary,\nno kernels today.\n"), "");
}

TEST_F(Input, Noise) {
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  expect_refused(write("noise", noise), "");
}

TEST_F(Input, HostProgramWithoutDeviceCode) { expect_refused("/bin/true", "no CUDA device code"); }

TEST_F(Input, TruncatedFatbin) {
  const std::string whole = read(program("launches.fatbin"));
  for (const size_t bytes :
       {size_t{4}, size_t{15}, size_t{16}, size_t{40}, whole.size() / 2, whole.size() - 1}) {
    SCOPED_TRACE(bytes);
    expect_refused(write("short.fatbin", whole.substr(0, bytes)), "");
  }
}

TEST_F(Input, TruncatedProgram) {
  const std::string whole = read(program("program"));
  expect_refused(write("short", whole.substr(0, whole.size() / 2)), "");
}

// extract does not read the PTX and must not mind; all others point at the place.
TEST_F(Input, BrokenPtxHasItsPlace) {
  std::string text = read(program("launches.ptx"));
  const size_t at = text.find("setp.");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "}}} ");
  const long line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
  const std::string file = write("broken.ptx", text);
  for (const std::vector<std::string>& arguments : commands_on(file)) {
    const Result result = klap_ptx(arguments);
    if (arguments[0] == "extract") {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      continue;
    }
    EXPECT_EQ(result.exit_code, 1) << arguments[0];
    EXPECT_THAT(result.err, StartsWith("klap-ptx: " + file + ":" + std::to_string(line) + ":"))
        << arguments[0];
  }
}

TEST_F(Input, MissingConfigFileIsAnError) {
  const Result result = klap_ptx({"explain", program("launches.ptx"), "--config", path("absent.toml")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("klap-ptx: " + path("absent.toml") + ": cannot open"));
}

// As in the library: told, and the rest goes on.
TEST_F(Input, SlipInTheConfigFileIsAWarning) {
  const std::string config = write("klap.toml", "[defaults]\ngranularty = \"none\"\n");
  const Result result = klap_ptx({"explain", program("launches.ptx"), "--config", config});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, StartsWith("klap-ptx: warning: " + config + ":2:1: unknown key 'granularty'"));
  EXPECT_THAT(result.err, HasSubstr("did you mean 'granularity'?"));
}

TEST_F(Input, OutputThatCannotBeWritten) {
  write("file", "");
  const Result result = klap_ptx({"extract", program("launches.ptx"), "-o", path("file/folder")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("klap-ptx: " + path("file/folder") + ": cannot make the folder"));
}

// A mistyped path is no new tree.
TEST_F(Input, OutputWithoutAFolder) {
  const Result extracted = klap_ptx({"extract", program("launches.ptx"), "-o", path("absent/folder")});
  EXPECT_EQ(extracted.exit_code, 1);
  EXPECT_THAT(extracted.err, HasSubstr("cannot make the folder: No such file or directory"));
  const Result rewritten = klap_ptx({"rewrite", program("launches.ptx"), "-o", path("absent/out.cubin")});
  EXPECT_EQ(rewritten.exit_code, 1);
  EXPECT_THAT(rewritten.err, HasSubstr("there is no folder " + path("absent")));
  EXPECT_FALSE(std::filesystem::exists(path("absent")));
}

}  // namespace
}  // namespace klap::cli_test
