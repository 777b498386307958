// The line on standard error that says what a command is at.
#include "klap_ptx/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace klap::tool {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;

// Standard error is another file for as long as this lives.
class StandardError {
 public:
  explicit StandardError(int file) : kept_(dup(STDERR_FILENO)) { dup2(file, STDERR_FILENO); }
  ~StandardError() {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  int kept_;
};

// All that can be read without waiting.
std::string read_all(int file) {
  fcntl(file, F_SETFL, O_NONBLOCK);
  std::string text;
  char buffer[1024];
  for (ssize_t count = 0; (count = read(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  return text;
}

class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    const winsize size = {24, 60, 0, 0};
    ASSERT_EQ(0, openpty(&shown_, &used_, nullptr, nullptr, &size));
  }
  void TearDown() override {
    close(shown_);
    close(used_);
  }
  int shown_ = -1, used_ = -1;
};

TEST_F(Terminal, ShowsWhatTakesLong) {
  {
    const StandardError here(used_);
    Progress progress("rewriting", milliseconds(1));
    progress.at("app: unit 1");
    std::this_thread::sleep_for(milliseconds(300));
  }
  const std::string shown = read_all(shown_);
  EXPECT_THAT(shown, HasSubstr("klap: rewriting app: unit 1 (0 s)"));
  EXPECT_THAT(shown, EndsWith("\r\x1b[K")) << "nothing stays";
}

TEST_F(Terminal, ShowsNothingOfWhatIsShort) {
  {
    const StandardError here(used_);
    Progress progress("rewriting");
    progress.at("app");
  }
  EXPECT_EQ(read_all(shown_), "");
}

TEST_F(Terminal, FitsInALine) {
  {
    const StandardError here(used_);
    Progress progress("rewriting", milliseconds(1));
    progress.at(std::string(100, 'x'));
    std::this_thread::sleep_for(milliseconds(300));
  }
  const std::string shown = read_all(shown_);
  const size_t begin = shown.find("klap: "), end = shown.find(" s)");
  ASSERT_NE(end, std::string::npos);
  EXPECT_LT(end + 3 - begin, 60u);
}

TEST_F(Terminal, IsEmptyWhileTheCommandPrints) {
  {
    const StandardError here(used_);
    Progress progress("rewriting", milliseconds(1));
    std::this_thread::sleep_for(milliseconds(300));
    const auto pause = progress.pause();
    EXPECT_THAT(read_all(shown_), EndsWith("\r\x1b[K"));
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(read_all(shown_), "");
  }
}

TEST(NoTerminal, ShowsNothing) {
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  {
    const StandardError here(ends[1]);
    Progress progress("rewriting", milliseconds(1));
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_EQ(read_all(ends[0]), "");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace klap::tool
