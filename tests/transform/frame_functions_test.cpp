// The functions that give blocks their memory, in a unit whose own declarations stand before or behind them.
#include "transform/suspension/frame_functions.h"

#include <gtest/gtest.h>

#include "assembling.h"
#include "ptx/tree.h"

namespace klap::transform {
namespace {

const std::string kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";
const std::string kFree = ".extern .func free (.param .b64 a);\n";

const std::string kFrames = kHeader + kFree +
                            ".visible .func __klap_give_frame (.param .b64 a)\n{\n.reg .b64 %rd<2>;\n"
                            "ld.param.b64 %rd1, [a];\n{ .param .b64 b; st.param.b64 [b], %rd1; call.uni "
                            "free, (b); }\nret;\n}\n";

const std::string kDeclared = ".extern .func __klap_give_frame (.param .b64 a);\n";
const std::string kKernel =
    ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [p];\n"
    "{ .param .b64 b; st.param.b64 [b], %rd1; call.uni free, (b); }\n"
    "{ .param .b64 b; st.param.b64 [b], %rd1; call.uni __klap_give_frame, (b); }\nret;\n}\n";

TEST(FrameFunctions, KnowWhatTheyCall) {
  const ptx::Module frames = ptx::parse(kFrames, "frames");
  for (const std::string& declarations : {kFree + kDeclared, kDeclared + kFree})
    expect_assembles(with_frame_functions(kHeader + declarations + kKernel, frames, "unit"));
}

}  // namespace
}  // namespace klap::transform
