// Machine code of NVRTC and its PTX.
#include "runtime/links/compiled_code.h"

#include <gtest/gtest.h>

#include "jit/data/unit.h"
#include "runtime/links/link_files.h"
#include "runtime/links/program_links.h"

namespace klap::runtime {
namespace {

TEST(CompiledCode, IsFoundByItsBytes) {
  CompiledCode code;
  EXPECT_EQ("", code.ptx_of("machine code"));
  code.keep("machine code", "ptx");
  code.keep("machine code", "another text");
  EXPECT_EQ("ptx", code.ptx_of("machine code"));
  EXPECT_EQ("", code.ptx_of("machine codes"));
}

TEST(CompiledCode, TheOldestIsForgotten) {
  CompiledCode code(10);
  for (const char* const each : {"a", "b", "c"}) code.keep(each, each + std::string("1234"));
  EXPECT_EQ("", code.ptx_of("a"));
  EXPECT_EQ("b1234", code.ptx_of("b"));
  EXPECT_EQ("c1234", code.ptx_of("c"));
  code.keep("large", std::string(11, 'x'));
  EXPECT_EQ("", code.ptx_of("large"));
  EXPECT_EQ("", code.ptx_of("c"));
}

TEST(CompiledCode, StaysWithTheLinkInItsFile) {
  const ProgramLink link{{{CodeKind::Binary, "module", "machine code", "", "ptx"}}, {}, ""};
  const ProgramLink again = decode_link(encode(link));
  ASSERT_EQ(1u, again.inputs.size());
  EXPECT_EQ("ptx", again.inputs[0].ptx);
  EXPECT_EQ(15u, again.bytes());
}

}  // namespace
}  // namespace klap::runtime
