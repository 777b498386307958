// Every error message of the lexer and the parser, each provoked by the smallest text, with its file, line,
// column and the line itself: errors.golden. A message in the sources that no text there provokes fails the
// test, so that a new message comes with an example.
//
// In the file's input sections a backslash and two hexadecimal digits stand for a byte that cannot be written
// there, and a section ends without the line feed before the next. KLAP_REBASE=1 rewrites the messages.
#include <gtest/gtest.h>

#include <regex>

#include "golden.h"
#include "literals.h"
#include "ptx/tree.h"
#include "support/file.h"

namespace klap::test {
namespace {

std::string unescape(const std::string& section) {
  static const std::regex byte(R"(\\([0-9a-f]{2}))");
  std::string text;
  const std::string body = section.substr(0, section.size() - 1);
  auto last = body.begin();
  for (std::sregex_iterator at(body.begin(), body.end(), byte), end; at != end; ++at) {
    text.append(last, (*at)[0].first);
    text += static_cast<char>(std::stoi((*at)[1].str(), nullptr, 16));
    last = (*at)[0].second;
  }
  return text.append(last, body.end());
}

// What parsing says; a line of its own where it says nothing.
std::string message_of(const std::string& text) {
  try {
    ptx::parse(text, "bad.ptx");
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Parse, error.code()) << error.what();
    EXPECT_EQ("bad.ptx", error.file()) << error.what();
    EXPECT_GT(error.line(), 0) << error.what();
    EXPECT_GT(error.column(), 0) << error.what();
    return std::string(error.what()) + "\n";
  }
  return "accepted\n";
}

TEST(Errors, AreTheExpectedOnesAtTheExpectedPlaces) {
  const size_t sections = read_golden(KLAP_ERRORS_FILE).sections.size();
  ASSERT_EQ(0u, sections % 2) << "input and message take turns";
  for (size_t i = 0; i + 1 < sections; i += 2) {
    const Golden golden = read_golden(KLAP_ERRORS_FILE);  // anew: rebasing writes it
    const auto& [name, input] = golden.sections[i];
    EXPECT_EQ(name + ": message", golden.sections[i + 1].first);
    SCOPED_TRACE(name);
    const std::string message = message_of(unescape(input));
    EXPECT_NE("accepted\n", message);
    expect_section(golden, name + ": message", message);
  }
}

constexpr char kTooLong[] = "long.ptx:1:1: PTX text of 512 MiB or more";

TEST(Errors, SayThatATextIsTooLong) {
  // The length alone decides, so no text of that length is needed.
  try {
    ptx::tokenize(std::string_view("", size_t{1} << 32), "long.ptx");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Parse, error.code());
    EXPECT_STREQ(kTooLong, error.what());
  }
}

// The literals of statements that make an error or give one its context.
std::vector<std::string> literals_of_messages() {
  static const std::regex site(R"(\b(fail|error_at|expect|found|number|ErrorCode::Parse)\b[^;{]*)");
  static const std::regex number("\"([0-9]+)\"");
  std::vector<std::string> found;
  for (const char* file : {"lexer.cpp", "parser.cpp"}) {
    std::vector<std::string> literals;
    const std::string source =
        take_literals(read_file(std::filesystem::path(KLAP_PTX_SOURCE_DIR) / file), literals);
    for (std::sregex_iterator at(source.begin(), source.end(), site), end; at != end; ++at) {
      const std::string statement = at->str();
      for (std::sregex_iterator in(statement.begin(), statement.end(), number); in != end; ++in) {
        found.push_back(literals[std::stoul((*in)[1].str())]);
      }
    }
  }
  return found;
}

TEST(Errors, AreAllProvoked) {
  std::string messages = kTooLong;
  const Golden golden = read_golden(KLAP_ERRORS_FILE);
  for (size_t i = 1; i < golden.sections.size(); i += 2) messages += golden.sections[i].second;
  const std::vector<std::string> literals = literals_of_messages();
  EXPECT_GE(literals.size(), 30u) << "the sources are not read as they are written now";
  for (const std::string& literal : literals) {
    EXPECT_NE(std::string::npos, messages.find(literal)) << "no text in errors.golden provokes: " << literal;
  }
}

}  // namespace
}  // namespace klap::test
