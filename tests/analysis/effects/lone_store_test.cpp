// Stores that only one thread of a block can make.
#include "analysis/values/lone_store.h"

#include <gtest/gtest.h>

#include "analysis/values/values.h"
#include "kernel.h"

namespace klap::test {
namespace {

// Whether the `add.f64` of a kernel stands behind one.
bool is_behind(const std::string& body) {
  const Kernel k = kernel(body);
  return analysis::is_behind_lone_store(k.facts->values(), k.find("add.f64"));
}

const std::string kPointer = "ld.param.u64 %rd9, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; ";
const std::string kAt = " add.f64 %rd1, %rd2, %rd3; ret;";

TEST(LoneStore, AtAnAddressOfTheBlock) {
  EXPECT_TRUE(is_behind(kPointer + "st.global.u32 [%rd9], %r1;" + kAt));
  EXPECT_TRUE(is_behind(kPointer + "mad.wide.u32 %rd8, %r2, 4, %rd9; st.u32 [%rd8+4], %r1;" + kAt));
  EXPECT_TRUE(
      is_behind(kPointer + "atom.global.add.u32 %r3, [%rd9], 1; bar.sync 0; st.u32 [%rd9], %r3;" + kAt));
  EXPECT_TRUE(is_behind(
      kPointer + "atom.global.add.u32 %r3, [%rd9], 1; membar.gl; bar.sync 0; st.u32 [%rd9], %r3;" + kAt));
  EXPECT_FALSE(is_behind(kPointer + "mad.wide.u32 %rd8, %r1, 4, %rd9; st.u32 [%rd8], %r1;" + kAt));
  EXPECT_FALSE(is_behind(kPointer + kAt));
}

TEST(LoneStore, IsPlainAndMadeByAll) {
  for (const char* store : {"st.volatile.global.u32 [%rd9], %r1;", "st.relaxed.gpu.global.u32 [%rd9], %r1;",
                            "st.release.gpu.u32 [%rd9], %r1;", "st.local.u32 [%rd9], %r1;",
                            "setp.eq.u32 %p1, %r1, 0; @%p1 st.u32 [%rd9], %r1;",
                            "setp.eq.u32 %p1, %r1, 0; @%p1 bra L; st.u32 [%rd9], %r1; L:",
                            "mov.u32 %r3, 0; L: st.u32 [%rd9], %r1; add.u32 %r3, %r3, 1; "
                            "setp.lt.u32 %p1, %r3, 4; @%p1 bra L;"}) {
    EXPECT_FALSE(is_behind(kPointer + store + kAt)) << store;
  }
}

// Behind what synchronises, the stores of two threads may be in an order.
TEST(LoneStore, ComesBeforeAllThatSynchronises) {
  for (const char* before :
       {"bar.warp.sync -1;", "ld.acquire.gpu.u32 %r3, [%rd9];", "ld.volatile.u32 %r3, [%rd9];",
        "atom.global.add.u32 %r3, [%rd9], 1; membar.gl;", "bar.sync 0, 64;",
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra L; bar.sync 0; L:", "call.uni unknown;",
        "call.uni unknown; bar.sync 0;", "bar.sync 0, 64; bar.sync 0;", "bar.sync 0; bar.warp.sync -1;"}) {
    EXPECT_FALSE(is_behind(kPointer + before + " st.u32 [%rd9], %r1;" + kAt)) << before;
  }
}

}  // namespace
}  // namespace klap::test
