// Remarks of explain and rewrite on PTX with and without lines of its source (nvcc -lineinfo).
#include <gmock/gmock.h>

#include <sstream>

#include "command.h"

namespace klap::cli_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// The line of a source file that ends in the comment.
std::string line_of(const std::string& file, const std::string& comment) {
  std::istringstream lines(read(KLAP_CLI_SOURCES + file));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with("// " + comment)) return std::to_string(number);
  }
  ADD_FAILURE() << file << " has no line that ends in // " << comment;
  return "";
}

class SourceLines : public Command {
 protected:
  std::string explain(const std::string& file, const std::string& only, const std::string& option = "") {
    std::vector<std::string> words = {"explain", file, "--granularity", "grid", "--only", only};
    if (!option.empty()) words.push_back(option);
    return klap_ptx(words).out;
  }
  // The first line of what is said of the launches of a kernel.
  std::string remark(const std::string& parent) {
    const std::string out = explain(program("lines.ptx"), parent);
    return out.substr(0, out.find('\n') + 1);
  }
};

TEST_F(SourceLines, ALaunchIsWhereTheUserWroteIt) {
  struct Row {
    const char *parent, *file, *comment;
  };
  for (const Row& row :
       {Row{"plain_parent", "lines.cu", "in the kernel"}, Row{"inlining_parent", "lines.cu", "in a function"},
        Row{"header_parent", "lines.h", "in a header"}, Row{"macro_parent", "lines.cu", "by a macro"},
        Row{"level_parent", "lines.cu", "of a structure"}}) {
    const std::string text = remark(row.parent), place = row.file + (":" + line_of(row.file, row.comment));
    EXPECT_THAT(text, HasSubstr("programs/" + place + ":3: remark: launch of mark"));
    EXPECT_THAT(text, AllOf(HasSubstr(std::string("from ") + row.parent), HasSubstr("[-Rklap=grid]\n")));
    EXPECT_LE(text.size() - text.find(": remark"), 160u) << text;
  }
}

TEST_F(SourceLines, PlacesInTextsAreLinesOfTheSourceToo) {
  EXPECT_THAT(remark("waiting_parent"),
              AllOf(HasSubstr("lines.cu:" + line_of("lines.cu", "that is left") + ":3: remark:"),
                    HasSubstr("left: atom"), HasSubstr("(lines.cu:" + line_of("lines.cu", "waits") + ":"),
                    HasSubstr("[-Rklap=parent-waits]\n"), Not(HasSubstr("(line "))));
}

TEST_F(SourceLines, FilesBelowTheCurrentFolderAreShort) {
  const std::string go = std::string("cd ") + KLAP_CLI_SOURCES + ".. && ";
  const std::string out =
      command({"sh", "-c", go + KLAP_PTX + " explain --only plain_parent " + program("lines.ptx")}).out;
  EXPECT_THAT(out, testing::StartsWith("programs/lines.cu:" + line_of("lines.cu", "in the kernel") + ":3: "));
}

TEST_F(SourceLines, WithoutThemThePlaceIsInThePtx) {
  const std::string file = program("plain_lines.ptx");
  const std::string out = explain(file, "plain_parent");
  EXPECT_THAT(out, testing::StartsWith(file + ":"));
  EXPECT_THAT(out,
              AllOf(ContainsRegex(":[0-9]+:[0-9]+: remark: launch of mark"), Not(HasSubstr("lines.cu"))));
  const nlohmann::json sites =
      klap_ptx({"explain", file, "--only", "plain_parent", "--json"}).json()["sites"];
  EXPECT_EQ(sites.at(0)["source"], nullptr);
}

// A `.loc` that says too little is as if it were not there.
TEST_F(SourceLines, DirectivesThatWereCutAreNoneAtAll) {
  std::string text = read(program("lines.ptx"));
  const std::string number = line_of("lines.cu", "in the kernel");
  for (size_t at = 0; (at = text.find(".loc\t", at)) != std::string::npos; ++at) {
    const size_t end = text.find('\n', at);
    if (text.substr(at, end - at).find(" " + number + " 3") != std::string::npos) text.erase(end - 2, 2);
  }
  const Result result = klap_ptx({"explain", write("cut.ptx", text), "--only", "plain_parent"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(": remark: launch of mark"), Not(HasSubstr(":" + number + ":3:"))));
}

TEST_F(SourceLines, VerboseHasFactsAndMangledNames) {
  const std::string brief = explain(program("lines.ptx"), "level_parent");
  EXPECT_THAT(brief, AllOf(Not(HasSubstr("_Z")), Not(HasSubstr("block="))));
  const std::string out = explain(program("lines.ptx"), "level_parent", "--verbose");
  EXPECT_THAT(out, testing::StartsWith(brief.substr(0, brief.find("1 of "))));
  EXPECT_THAT(out,
              AllOf(HasSubstr(":3: note: granularity=grid launcher=host block=32x1x1 moldable=yes run=\""),
                    HasSubstr("i < argument 1 of mark_level (Level), byte 24, "), Not(HasSubstr("p[")),
                    HasSubstr(" stream=NULL parent=_Z12level_parent5Level child=_Z10mark_level"),
                    ContainsRegex(" unit=[^ ]*lines.ptx ptx=[0-9]+:[0-9]+\n")));
}

TEST_F(SourceLines, JsonHasThePlacesOfBoth) {
  const nlohmann::json site =
      klap_ptx({"explain", program("lines.ptx"), "--only", "plain_parent", "--json"}).json()["sites"].at(0);
  EXPECT_EQ(site["source"]["file"], std::string(KLAP_CLI_SOURCES) + "lines.cu");
  EXPECT_EQ(std::to_string(site["source"]["line"].get<int>()), line_of("lines.cu", "in the kernel"));
  EXPECT_EQ(site["source"]["column"], 3);
  EXPECT_GT(site["line"], 0);
  EXPECT_EQ(site["facts"]["block"], "32x1x1");
  EXPECT_EQ(site["facts"]["argument_bytes"], "12");
}

TEST_F(SourceLines, RewriteSaysTheSame) {
  const std::string explained = klap_ptx({"explain", program("lines.ptx"), "--verbose"}).out;
  const std::string rewritten =
      klap_ptx({"rewrite", program("lines.ptx"), "--verbose", "-o", path("out.ptx")}).out;
  EXPECT_EQ(rewritten.substr(0, rewritten.find("wrote ")), explained);
}

}  // namespace
}  // namespace klap::cli_test
