// What explain says of each kind of file: one exact line, and 1 where nothing could be judged.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>

#include "command.h"

namespace klap::cli_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Judged : public Command {
 protected:
  // Nothing is on standard output, and one line on standard error names the file and says what is wrong.
  void expect_unjudged(const std::string& file, const std::string& message,
                       std::vector<std::string> options = {}) {
    SCOPED_TRACE(file);
    for (const bool check : {false, true}) {
      std::vector<std::string> words = {"explain", file};
      if (check) words.emplace_back("--check");
      words.insert(words.end(), options.begin(), options.end());
      const Result result = klap_ptx(words);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err, StartsWith("klap-ptx: " + file));
      EXPECT_THAT(result.err, HasSubstr(message));
      EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    }
  }

  void expect_nothing_to_do(const std::string& file) {
    SCOPED_TRACE(file);
    const Result result = klap_ptx({"explain", file, "--check"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "0 launch sites: no kernel here launches kernels\n");
    EXPECT_EQ(result.err, "");
  }

  // The beginning of a file of the build, as a copy that was broken off leaves it.
  std::string cut(const std::string& name, size_t bytes) {
    return write("cut", read(program(name)).substr(0, bytes));
  }
};

TEST_F(Judged, MachineCodeAloneCannotBe) {
  struct Row {
    const char *file, *message;
  };
  for (const Row& row : {Row{"other_target", "holds nothing for sm_90, only machine code for sm_80"},
                         Row{"other_target.fatbin", "holds nothing for sm_90, only machine code for sm_100"},
                         Row{"older_target.cubin", "carries no PTX, only machine code"},
                         Row{"unread.cubin", "carries no PTX, only machine code"},
                         Row{"unread.fatbin", "carries no PTX, only machine code"}}) {
    expect_unjudged(program(row.file), ": nothing could be judged: the unit launches kernels but ");
    expect_unjudged(program(row.file), row.message);
    expect_unjudged(program(row.file), "-gencode arch=compute_90,code=compute_90");
  }
}

TEST_F(Judged, CodeForNewerDevicesAloneCannotBe) {
  expect_unjudged(program("newer_ptx.fatbin"), "holds nothing for sm_90, only code for compute_100");
  expect_unjudged(program("program"), "holds nothing for sm_75, only code for compute_90, sm_90",
                  {"--sm", "75"});
}

TEST_F(Judged, UnreadUnitsAreInTheJsonToo) {
  const Result result = klap_ptx({"explain", "--json", program("unread.fatbin")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.json()["sites"][0]["reason"], "child-not-found");
  EXPECT_THAT(result.err, HasSubstr("nothing could be judged"));
}

TEST_F(Judged, ProgramsThatLaunchNothingAreFine) {
  for (const char* const name : {"whole_program", "no_launches.ptx", "no_launches.fatbin"})
    expect_nothing_to_do(program(name));
}

TEST_F(Judged, FilesWithoutDeviceCode) {
  struct Row {
    const char *bytes, *message;
  };
  expect_unjudged("/bin/true", "no CUDA device code in this file");
  expect_unjudged(path("absent"), "No such file or directory");
  for (const Row& row :
       {Row{"", "the file is empty"}, Row{"x", "is neither PTX, fatbin, cubin nor a host ELF file"},
        Row{"Dear diary,\nno kernels today.\n", "is neither PTX"},
        Row{"#!/bin/sh\nexec app\n", "is neither PTX"}, Row{"!<arch>\n", "is an archive of object files"},
        Row{"\x7f"
            "ELF",
            "the file is truncated, after 4 bytes"},
        Row{".version 9.0\n.target sm_90\n.address_size 64\n", "defines no kernel and no function"},
        Row{".version 9.0\n.target sm_90\n.address_size 64\n.extern .func f;\n",
            "defines no kernel and no function"}})
    expect_unjudged(write("file", row.bytes), row.message);
}

TEST_F(Judged, TruncatedFilesAreCalledSo) {
  for (const char* const name :
       {"program", "other_target", "whole_program", "library.so", "launches.o", "launches.fatbin",
        "no_launches.fatbin", "unread.cubin", "older_target.cubin"}) {
    const size_t whole = read(program(name)).size();
    for (const size_t bytes : {size_t{8}, whole / 10, whole / 2, whole - 1})
      expect_unjudged(cut(name, bytes),
                      ": the file is truncated, after " + std::to_string(bytes) + " bytes: ");
  }
}

// PTX does not say how long it is, so only where a function or a declaration is open can it be known.
TEST_F(Judged, TruncatedPtxIsCalledSo) {
  for (const char* const name : {"launches.ptx", "no_launches.ptx", "hidden.ptx"}) {
    const std::string text = read(program(name));
    const size_t body = text.find("\n{"), end = text.rfind('}');
    ASSERT_NE(body, std::string::npos);
    for (const size_t bytes : {body + 2, (body + end) / 2, end})
      if (std::ranges::count(text.substr(0, bytes), '{') != std::ranges::count(text.substr(0, bytes), '}'))
        expect_unjudged(cut(name, bytes), ": the file is truncated, or a bracket is never closed: ");
    expect_unjudged(cut(name, text.find("(") + 3), ": the file is truncated, or a bracket is never closed: ");
  }
}

}  // namespace
}  // namespace klap::cli_test
