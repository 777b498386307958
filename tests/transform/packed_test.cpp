// What a recording parent stores of a child's arguments, where the stores are not those that nvcc makes.
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

constexpr char kPointerStore[] = "\tst.u64 \t[%rd2], %rd3;\n";
constexpr char kNumberStore[] = "\tst.u32 \t[%rd2+8], %r11;\n";

class Packed : public testing::Test {
 protected:
  void change(const std::string& from, const std::string& to) {
    const size_t at = ptx_.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ptx_.replace(at, from.size(), to);
  }
  // The variants of the fixture, and what is said of its launch.
  void rewrite() {
    std::vector<jit::SiteRemark> remarks;
    text_ = jit::rewrite_ptx(jit::program_from_ptx(ptx_, "packed").units[0], request_, &remarks);
    ASSERT_EQ(1u, remarks.size());
    ASSERT_TRUE(remarks[0].rewritten) << remarks[0].detail;
    detail_ = remarks[0].detail;
  }
  [[nodiscard]] size_t place(const std::string& what) const {
    return text_.find(what, text_.find("klap_grid"));
  }

  std::string ptx_ = read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx");
  jit::Request request_;
  std::string text_, detail_;
};

TEST_F(Packed, StoresOnceWhatIsTheSameAndTheRestBehindTheGrid) {
  rewrite();
  EXPECT_THAT(detail_, HasSubstr("1 of 2 arguments grid-uniform, passed once, record 8 bytes"));
  EXPECT_NE(place("@%klap_is_first st.relaxed.gpu.global.u64 [%klap_once+0], %rd3;"), std::string::npos);
  EXPECT_NE(place("st.u32 [%rd2+4], %r11;"), std::string::npos);
}

TEST_F(Packed, StoresOnceForABlockWhatIsTheSameForIt) {
  change(kNumberStore, std::string("\tmov.u32 \t%r11, %ctaid.x;\n") + kNumberStore);
  const auto detail_for = [&](jit::Granularity granularity) {
    request_.setting = test::given({{"granularity", to_string(granularity)}, {"launcher", "host"}});
    rewrite();
    return detail_;
  };
  EXPECT_THAT(detail_for(jit::Granularity::Block),
              HasSubstr("2 of 2 arguments block-uniform, passed once, record 4 bytes"));
  for (const auto granularity : {jit::Granularity::Grid, jit::Granularity::MultiBlock}) {
    EXPECT_THAT(detail_for(granularity),
                HasSubstr("1 of 2 arguments grid-uniform, passed once, record 8 bytes"));
  }
}

TEST_F(Packed, IsSwitchedOff) {
  request_.setting = test::given({{"pack_records", "off"}});
  rewrite();
  EXPECT_THAT(detail_, Not(HasSubstr("passed once")));
  EXPECT_THAT(text_, Not(HasSubstr("%klap_is_first")));
  EXPECT_NE(place(kPointerStore), std::string::npos);
}

// The last one counts, and it is not the same for all.
TEST_F(Packed, KeepsAnArgumentThatIsStoredAgain) {
  change(kPointerStore, std::string(kPointerStore) + "\tmov.u64 \t%rd3, %rd1;\n" + kPointerStore);
  rewrite();
  EXPECT_THAT(detail_, HasSubstr("record 16 bytes"));
  EXPECT_THAT(text_, Not(HasSubstr("%klap_is_first")));
}

TEST_F(Packed, KeepsAnArgumentThatIsStoredOverInPart) {
  change(kNumberStore, std::string("\tst.u32 \t[%rd2+4], %r11;\n") + kNumberStore);
  rewrite();
  EXPECT_THAT(text_, Not(HasSubstr("%klap_is_first")));
  const size_t whole = place("st.u64 [%rd2+8], %rd3;"), part = place("st.u32 [%rd2+12], %r11;");
  ASSERT_NE(whole, std::string::npos);
  ASSERT_NE(part, std::string::npos);
  EXPECT_LT(whole, part);
}

TEST_F(Packed, StoresAnArgumentTwiceInItsOrder) {
  change(kNumberStore, std::string("\tst.u32 \t[%rd2+8], 7;\n") + kNumberStore);
  rewrite();
  const size_t first = place("st.u32 [%rd2+4], 7;"), second = place("st.u32 [%rd2+4], %r11;");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(first, second);
}

TEST_F(Packed, PartsAVectorWhoseElementsLieApart) {
  change(
      std::string(kPointerStore) + kNumberStore,
      "\tcvt.u32.u64 \t%r2, %rd3;\n\tst.v2.u32 \t[%rd2], {%r2, 0};\n\tst.v2.u32 \t[%rd2+8], {%r11, %r11};\n");
  std::vector<jit::SiteRemark> remarks;
  jit::rewrite_ptx(jit::program_from_ptx(ptx_, "packed").units[0], request_, &remarks);
  EXPECT_EQ("argument-mismatch", remarks.at(0).reason) << "beyond the parameters";
  change("{%r11, %r11}", "{%r11}");
  change("st.v2.u32 \t[%rd2+8], {%r11}", "st.u32 \t[%rd2+8], %r11");
  rewrite();
  EXPECT_NE(place("@%klap_is_first st.relaxed.gpu.global.u32 [%klap_once+0], %r2;"), std::string::npos);
  EXPECT_NE(place("@%klap_is_first st.relaxed.gpu.global.u32 [%klap_once+4], 0;"), std::string::npos);
}

}  // namespace
}  // namespace klap::test
