// Stand-ins for code that waits: which inputs have them, and what becomes of the others.
#include "runtime/load/stand_ins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/error.h"
#include "support/file.h"

namespace klap::runtime::stand_ins_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kWaiting = read_file(KLAP_WAITING_PTX);
constexpr char kQuiet[] = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry quiet() { ret; }\n";

AddedCode ptx(const std::string& text, const std::string& options = "") {
  return {CodeKind::Ptx, "input", text, options};
}
AddedCode binary(const std::string& file) { return {CodeKind::Binary, "input", read_file(file), ""}; }

std::string stand_in_for(const AddedCode& code, const std::string& options = "") {
  const std::vector<LinkPiece> pieces = with_stand_ins(code, options, 90);
  return pieces.size() == 1 ? pieces[0].bytes : "";
}

std::vector<LinkPiece::Kind> kinds_of(const std::vector<LinkPiece>& pieces) {
  std::vector<LinkPiece::Kind> kinds;
  for (const LinkPiece& piece : pieces) kinds.push_back(piece.kind);
  return kinds;
}

TEST(StandIns, AreForCodeThatWaits) {
  EXPECT_TRUE(may_wait(ptx(kWaiting), 90));
  EXPECT_FALSE(may_wait(ptx(kQuiet), 90));
  EXPECT_TRUE(may_wait(binary(KLAP_WAITING_FATBIN), 90));
  EXPECT_FALSE(may_wait(binary(KLAP_FATBIN), 90));
  EXPECT_FALSE(may_wait(binary(KLAP_CUDADEVRT), 90)) << "which has machine code for that device";
  EXPECT_FALSE(may_wait({CodeKind::LtoIr, "input", kWaiting, ""}, 90));
}

TEST(StandIns, AreToldFromOtherCode) {
  EXPECT_FALSE(holds_stand_in(kWaiting));
  EXPECT_TRUE(holds_stand_in(stand_in_for(ptx(kWaiting))));
  EXPECT_THAT(stand_in_for(ptx(kWaiting)), Not(HasSubstr("call.uni")));
}

// Results of links are told by their bytes, and what is missing is not in them.
TEST(StandIns, DifferForDifferentCode) {
  std::string other = kWaiting;
  other.insert(other.find("ret;"), "membar.gl;\n");
  const std::set<std::string> different = {
      stand_in_for(ptx(kWaiting)), stand_in_for(ptx(other)), stand_in_for(ptx(kWaiting, " -maxrregcount=32")),
      stand_in_for(ptx(kWaiting), " -maxrregcount=32"), stand_in_for(binary(KLAP_WAITING_FATBIN))};
  EXPECT_EQ(5u, different.size());
  EXPECT_EQ(stand_in_for(ptx(kWaiting)), stand_in_for(ptx(kWaiting)));
}

TEST(StandIns, LeaveWhatDoesNotWait) {
  EXPECT_THAT(kinds_of(with_stand_ins(binary(KLAP_WAITING_FATBIN), "", 90)),
              ElementsAre(LinkPiece::Kind::Ptx));
  const std::vector<LinkPiece> pieces = with_stand_ins(binary(KLAP_FATBIN), "", 90);
  EXPECT_THAT(kinds_of(pieces), ElementsAre(LinkPiece::Kind::Fatbin));
  EXPECT_EQ(read_file(KLAP_FATBIN), pieces[0].bytes);
}

std::string why_not(const std::string& text) {
  try {
    with_stand_ins(ptx(text), "", 90);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The linker's own answer is the best for code that cannot be rewritten.
TEST(StandIns, AreNotForCodeThatCannotBeRewritten) {
  std::string other = kWaiting;
  other.insert(other.find("ld.param"), "bar.sync 1, 32;\n");
  EXPECT_EQ("", why_not(kWaiting));
  EXPECT_THAT(why_not(other), HasSubstr("a barrier of some threads"));
}

class CalledLinkerTest : public testing::Test {
 protected:
  CalledLinkerTest() {
    linker_.link = this;
    linker_.refuses = [this](const std::string& target) {
      asked_.push_back(target);
      return refuses_;
    };
    linker_.add = [this](const LinkPiece& piece) {
      added_.push_back(piece.bytes);
      return result_;
    };
    ProgramLinks::instance().begin(this, "", {}, "-arch=sm_90a");
  }
  ~CalledLinkerTest() override { ProgramLinks::instance().end(this); }

  size_t kept() {
    const auto link = ProgramLinks::instance().complete(this, "machine code");
    return link->inputs.size();
  }

  CalledLinker linker_;
  bool refuses_ = true;
  int result_ = 0;
  std::vector<std::string> asked_, added_;
};

TEST_F(CalledLinkerTest, IsGivenTheStandIn) {
  EXPECT_EQ(0, add_stand_in(linker_, ptx(kWaiting)));
  EXPECT_THAT(asked_, ElementsAre("-arch=sm_90a"));
  ASSERT_EQ(1u, added_.size());
  EXPECT_TRUE(holds_stand_in(added_[0]));
  EXPECT_EQ(1u, kept());
}

TEST_F(CalledLinkerTest, IsLeftAloneIfItTakesTheCode) {
  refuses_ = false;
  EXPECT_EQ(std::nullopt, add_stand_in(linker_, ptx(kWaiting)));
  EXPECT_EQ(0u, added_.size() + kept());
}

TEST_F(CalledLinkerTest, IsNotAskedAboutOtherCode) {
  EXPECT_EQ(std::nullopt, add_stand_in(linker_, ptx(kQuiet)));
  EXPECT_EQ(0u, asked_.size());
}

TEST_F(CalledLinkerTest, HasTheLastWord) {
  result_ = 218;
  EXPECT_EQ(218, add_stand_in(linker_, ptx(kWaiting)));
  EXPECT_EQ(0u, kept());
}

// Nothing could be made of its result.
TEST_F(CalledLinkerTest, IsLeftAloneIfItsLinkIsNotUnderstood) {
  ProgramLinks::instance().spoil(this, "for a test");
  EXPECT_EQ(std::nullopt, add_stand_in(linker_, ptx(kWaiting)));
  ProgramLinks::instance().end(this);
  EXPECT_EQ(std::nullopt, add_stand_in(linker_, ptx(kWaiting)));
}

}  // namespace
}  // namespace klap::runtime::stand_ins_test
