// A module whose parent launches a small child, with the parts that matter as text.
//
// `parent(a, b, n)` launches `child(p, q, i, m)`. Unless a test changes it, the arguments are a, b,
// threadIdx.x and n.
//  - In the parent, %r1 is threadIdx.x, %r2 blockIdx.x, %r3 n, %r4 the argument i; %rd1 is a and %rd2 is b.
//  - In the child, %r1 is i, %r2 m, %r3 threadIdx.x; %rd1 is p and %rd2 is q as global addresses, and %rd3 is
//    the address of p[i], %rd4 that of q[i], for elements of 4 bytes.
#pragma once

#include <algorithm>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/order/launch_order.h"
#include "kernel.h"

namespace klap::test {

// A launch; its labels and registers end with `name`.
inline std::string launch(const std::string& name = "0") {
  const std::string text = R"({
.reg .b64 %function@, %buffer@; .reg .b32 %error@; .reg .pred %full@;
mov.u64 %function@, child;
{
.param .b64 param0;
st.param.b64 [param0+0], %function@;
.param .align 4 .b8 param1[12];
st.param.b32 [param1+0], 1;
st.param.b32 [param1+4], 1;
st.param.b32 [param1+8], 1;
.param .align 4 .b8 param2[12];
st.param.b32 [param2+0], 32;
st.param.b32 [param2+4], 1;
st.param.b32 [param2+8], 1;
.param .b32 param3;
st.param.b32 [param3+0], 0;
.param .b64 retval0;
call.uni (retval0), __cudaCDP2GetParameterBufferV2, (param0, param1, param2, param3);
ld.param.b64 %buffer@, [retval0+0];
}
setp.eq.s64 %full@, %buffer@, 0;
$%full@ bra BEHIND@;
st.u64 [%buffer@], %rd1;
st.u64 [%buffer@+8], %rd2;
st.u32 [%buffer@+16], %r4;
st.u32 [%buffer@+20], %r3;
{
.param .b64 param0;
st.param.b64 [param0+0], %buffer@;
.param .b64 param1;
st.param.b64 [param1+0], 0;
.param .b32 retval0;
call.uni (retval0), __cudaCDP2LaunchDeviceV2, (param0, param1);
ld.param.b32 %error@, [retval0+0];
}
}
BEHIND@:
)";
  return std::regex_replace(std::regex_replace(text, std::regex("@"), name), std::regex("\\$"), "@");
}

struct Launches {
  std::string child = "";                      // its body
  std::string argument = "mov.u32 %r4, %r1;";  // computes %r4 of the parent
  std::string launches = launch();             // what the parent does then
};

inline std::string text_of(const Launches& l) {
  return R"(.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
  (.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.global .u32 counter;
.global .u32 table[64];
.visible .entry child(.param .u64 p, .param .u64 q, .param .u32 i, .param .u32 m)
{
.reg .pred %p<20>; .reg .f32 %f<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
ld.param.u64 %rd30, [p];
ld.param.u64 %rd31, [q];
ld.param.u32 %r1, [i];
ld.param.u32 %r2, [m];
mov.u32 %r3, %tid.x;
cvta.to.global.u64 %rd1, %rd30;
cvta.to.global.u64 %rd2, %rd31;
mul.wide.s32 %rd32, %r1, 4;
add.s64 %rd3, %rd1, %rd32;
add.s64 %rd4, %rd2, %rd32;
)" + l.child +
         R"(
ret;
}
.visible .entry parent(.param .u64 a, .param .u64 b, .param .u32 n)
{
.reg .pred %p<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u32 %r3, [n];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
)" + l.argument +
         "\n" + l.launches + "ret;\n}\n";
}

// The child writes the word whose number is its argument.
constexpr char kOwnWord[] = "st.global.u32 [%rd3], %r3;";

// Blocks of one dimension, as most are.
constexpr analysis::KnownExtents kOneRow = {std::nullopt, 1, 1};

struct Judged {
  explicit Judged(const Launches& l, const analysis::KnownExtents& block = kOneRow)
      : parent(text_of(l), "parent") {
    const auto child =
        std::make_shared<const analysis::FunctionFacts>(parent.module, *parent.module.find_function("child"));
    std::vector<analysis::LaunchedChild> children;
    for (const analysis::Site& site : parent.facts->sites) children.push_back({&site, child});
    sites = children.size();
    order = std::make_unique<analysis::LaunchOrder>(*parent.facts, std::move(children), block);
  }
  Kernel parent;
  size_t sites = 0;
  std::unique_ptr<analysis::LaunchOrder> order;
};

// A verdict is written as "kept: WHY", "proven if 0 and 8 from its end are apart" or "tolerated with several
// blocks: WHY". The lines of the places are left out.
inline std::string verdict(const Launches& l, size_t a = 0, size_t b = 0) {
  const Judged judged(l);
  if (judged.sites <= std::max(a, b)) throw std::runtime_error("there are not so many launches");
  const analysis::OrderVerdict& is = judged.order->of_pair(a, b);
  std::string out = to_string(is.order);
  const auto name = [](const analysis::HostMemory& memory) {
    if (!memory.variable.empty()) return memory.variable;
    std::string text = std::to_string(memory.parameter_offset) + (memory.only_upwards ? "" : " from its end");
    for (const analysis::HostDistance& distance : memory.distances)
      text += " (+ " + to_string(distance) + ")";
    return text;
  };
  for (const auto& [x, y] : is.conditions.apart) out += " if " + name(x) + " and " + name(y) + " are apart";
  for (const auto& [offset, bytes] : is.conditions.not_negative)
    out += " if " + std::to_string(offset) + ":" + std::to_string(bytes) + " is not negative";
  if (is.conditions.several_blocks) out += " with several blocks";
  for (const analysis::BlockLimit& limit : is.conditions.block_limits)
    out += " below " + to_string(limit.bound);
  if (!is.why.empty()) out += ": " + is.why;
  return std::regex_replace(out, std::regex(R"( \(line \d+:\d+\))"), "");
}

}  // namespace klap::test
