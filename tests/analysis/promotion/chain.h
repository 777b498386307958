// A small chain, changes of it, and the text that klap-ptx prints of the changed chain.
//
// Each link sums a value into an argument: `k(p, q, n, x, sum)` reads p, launches `k(p, q, n, x + 1, sum +
// v)` by its first thread if x + 1 < n, and writes q. Parameters are at the offsets 0, 8, 16, 20 and 24.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/promotion/promotion.h"
#include "kernel.h"

namespace klap::test {

using Changes = std::vector<std::pair<std::string, std::string>>;

inline std::string chain_text(const Changes& changes) {
  std::string text = R"(.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
  (.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.global .u32 table[64];
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 x, .param .u32 sum)
{
.reg .pred %p<20>; .reg .f32 %f<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
.shared .align 4 .b8 room[256];
ld.param.u64 %rd1, [p];
ld.param.u64 %rd2, [q];
ld.param.u32 %r1, [n];
ld.param.u32 %r2, [x];
ld.param.u32 %r3, [sum];
mov.u32 %r4, %tid.x;
cvta.to.global.u64 %rd3, %rd1;
cvta.to.global.u64 %rd4, %rd2;
mul.wide.u32 %rd5, %r4, 4;
add.s64 %rd6, %rd3, %rd5;
add.s64 %rd7, %rd4, %rd5;
ld.global.u32 %r5, [%rd6];
bar.sync 0;
add.s32 %r6, %r2, 1;
setp.ne.s32 %p1, %r4, 0;
setp.ge.s32 %p2, %r6, %r1;
or.pred %p3, %p1, %p2;
@%p3 bra DONE;
mov.u64 %rd10, k;
{
.param .b64 param0;
st.param.b64 [param0+0], %rd10;
.param .align 4 .b8 param1[12];
st.param.b32 [param1+0], 1;
st.param.b32 [param1+4], 1;
st.param.b32 [param1+8], 1;
.param .align 4 .b8 param2[12];
st.param.b32 [param2+0], 64;
st.param.b32 [param2+4], 1;
st.param.b32 [param2+8], 1;
.param .b32 param3;
st.param.b32 [param3+0], 0;
.param .b64 retval0;
call.uni (retval0), __cudaCDP2GetParameterBufferV2, (param0, param1, param2, param3);
ld.param.b64 %rd11, [retval0+0];
}
setp.eq.s64 %p4, %rd11, 0;
@%p4 bra DONE;
add.s32 %r7, %r3, %r5;
st.u64 [%rd11], %rd1;
st.u64 [%rd11+8], %rd2;
st.u32 [%rd11+16], %r1;
st.u32 [%rd11+20], %r6;
st.u32 [%rd11+24], %r7;
{
.param .b64 param0;
st.param.b64 [param0+0], %rd11;
.param .b64 param1;
st.param.b64 [param1+0], 0;
.param .b32 retval0;
call.uni (retval0), __cudaCDP2LaunchDeviceV2, (param0, param1);
ld.param.b32 %r8, [retval0+0];
}
DONE:
add.s32 %r9, %r3, %r5;
st.global.u32 [%rd7], %r9;
ret;
}
)";
  for (const auto& [old, now] : changes) {
    const size_t at = text.find(old);
    if (at == std::string::npos) throw std::runtime_error("no such text: " + old);
    text.replace(at, old.size(), now);
  }
  return text;
}

inline Kernel chain_kernel(const Changes& changes) { return {chain_text(changes), "k"}; }

inline std::string chain(const Changes& changes) {
  return analysis::print_promotion(*chain_kernel(changes).facts);
}

}  // namespace klap::test
