// Parents that run small children themselves: what becomes of their own code, which no run can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/inspect.h"
#include "jit/module.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Thresholding : public testing::Test {
 protected:
  void change(const std::string& from, const std::string& to) {
    const size_t at = ptx_.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ptx_.replace(at, from.size(), to);
  }
  // The parent's variant.
  std::string rewritten(const std::string& threshold, jit::Launcher launcher = jit::Launcher::Host) {
    jit::Request request;
    request.setting =
        test::given({{"threshold", threshold}, {"granularity", "grid"}, {"launcher", to_string(launcher)}});
    std::vector<jit::SiteRemark> remarks;
    const std::string text = jit::rewrite_ptx(jit::program_from_ptx(ptx_, "own").units[0], request, &remarks);
    EXPECT_EQ(1u, remarks.size());
    EXPECT_TRUE(remarks.at(0).rewritten) << remarks.at(0).detail;
    const size_t begin = text.find(".entry _Z6parentB");
    return text.substr(begin, text.find("\n}", begin) - begin);
  }

  std::string ptx_ = read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx");
};

constexpr char kLoad[] = "ld.global.u32 \t%r1, [%rd1];", kPastCaches[] = "ld.global.nc.u32 \t%r1, [%rd1];";
constexpr char kUniformLoad[] = "ldu.global.u32 \t%r1, [%rd1];";
constexpr char kChild[] = "atom.global.add.u32 %klap_o_r6, [%klap_o_rd4], 1;";

// ptxas may move a load past the child's stores, or repeat it behind them, if it may take for granted that
// nobody writes what it reads.
TEST_F(Thresholding, MayWriteWhatTheParentReadsPastTheCaches) {
  change(kLoad, kPastCaches);
  for (const auto launcher : {jit::Launcher::Host, jit::Launcher::Device}) {
    EXPECT_THAT(rewritten("8", launcher), AllOf(HasSubstr(kChild), HasSubstr(kLoad), Not(HasSubstr(".nc"))));
    EXPECT_THAT(rewritten("0", launcher), AllOf(Not(HasSubstr(kChild)), HasSubstr(kPastCaches)));
  }
  change(kPastCaches, kUniformLoad);
  for (const char* const threshold : {"8", "0"})
    EXPECT_THAT(rewritten(threshold), AllOf(HasSubstr(kLoad), Not(HasSubstr("ldu"))));
}

TEST_F(Thresholding, KeepOutNoBlock) {
  constexpr char kRoom[] = ".maxntid 1024, 1, 1";
  EXPECT_THAT(rewritten("8"), HasSubstr(kRoom));
  EXPECT_THAT(rewritten("0"), Not(HasSubstr(kRoom)));
  change("\t.param .u64 _Z6parentPiPKi_param_1\n)", "\t.param .u64 _Z6parentPiPKi_param_1\n) .maxntid 64");
  EXPECT_THAT(rewritten("8"), Not(HasSubstr(kRoom)));
}

TEST_F(Thresholding, AreNeitherRecordedNorStored) {
  EXPECT_THAT(rewritten("off"), Not(HasSubstr("$klap_not_recorded")));
  const std::string none = rewritten("0");
  const size_t test = none.find("setp.gt.u64 %klap_recorded, %rd2, 0;"),
               store = none.find("st.u32 [%rd2+4], %r11;"),
               skipped = none.find("@!%klap_recorded bra $klap_not_recorded;"),
               end = none.find("\n$klap_not_recorded:");
  EXPECT_LT(test, skipped);
  EXPECT_LT(skipped, store);
  EXPECT_LT(store, end);
  EXPECT_NE(end, std::string::npos);
}

}  // namespace
}  // namespace klap::test
