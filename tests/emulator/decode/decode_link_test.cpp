// Which definition a name means, over several units.
#include "decode_fixture.h"
#include "emulator/decode/builtins.h"

namespace klap::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string function(const char* linkage, const char* name, int line_count) {
  std::string out = std::string(linkage) + " .func " + name + "() {";
  for (int i = 0; i < line_count; ++i) out += " brkpt;";
  return out + " ret; }\n";
}
std::string caller(const char* entry, const char* callee) {
  return std::string(".visible .entry ") + entry + "() { call " + callee + "; ret; }\n";
}
// Instructions of the function that the first call of a kernel goes to, the Return not counted.
size_t callee_size(const Linked& linked, const char* kernel) {
  return linked.image().functions.at(linked.function(kernel).calls.at(0).function)->code.size() - 1;
}

TEST(Linking, StrongBeatsWeakWhereverItStands) {
  const std::string weak = function(".weak", "f", 1) + caller("k", "f");
  const std::string strong = function(".visible", "f", 2) + caller("l", "f");
  for (const auto& units : {std::vector{weak, strong}, std::vector{strong, weak}}) {
    const Linked linked(units);
    EXPECT_EQ(callee_size(linked, "k"), 2u);
    EXPECT_EQ(callee_size(linked, "l"), 2u);
    EXPECT_EQ(linked.image().functions.size(), 3u);
  }
}

TEST(Linking, OfWeakOnesTheFirstStays) {
  const Linked linked(
      {function(".weak", "f", 1) + caller("k", "f"), function(".weak", "f", 2) + caller("l", "f")});
  EXPECT_EQ(callee_size(linked, "k"), 1u);
  EXPECT_EQ(callee_size(linked, "l"), 1u);
}

TEST(Linking, WhatIsNotVisibleBelongsToItsUnit) {
  const Linked linked({function("", "f", 1) + caller("k", "f"), function("", "f", 2) + caller("l", "f"),
                       ".extern .func f();\n" + caller("m", "f"), function(".visible", "f", 3)});
  EXPECT_EQ(callee_size(linked, "k"), 1u);
  EXPECT_EQ(callee_size(linked, "l"), 2u);
  EXPECT_EQ(callee_size(linked, "m"), 3u);
}

TEST(Linking, ExternBindsToAnyUnit) {
  const Linked linked(
      {".extern .func f();\n.extern .global .u32 x;\n.visible .global .u64 p = generic(x);\n" +
           caller("k", "f"),
       function(".visible", "f", 4) + ".visible .global .u32 x = 7;\n"});
  EXPECT_EQ(callee_size(linked, "k"), 4u);
  EXPECT_EQ(linked.value<uint64_t>("p"), linked.variable("x").address);
  EXPECT_EQ(linked.image().variables.size(), 2u);
}

TEST(Linking, TwoStrongDefinitionsAreAnError) {
  EXPECT_THAT(
      link_failure({function(".visible", "f", 1), "\n" + function(".visible", "f", 1)}, ErrorCode::Link),
      StartsWith("b.ptx:5:16: 'f' is defined more than once, first in a.ptx:4"));
  EXPECT_THAT(link_failure({".visible .global .u32 x;", ".visible .global .u32 x;"}, ErrorCode::Link),
              HasSubstr("'x' is defined more than once"));
  EXPECT_THAT(link_failure({".visible .entry k() {ret;}", ".visible .entry k() {ret;}"}, ErrorCode::Link),
              HasSubstr("'k' is defined more than once"));
  EXPECT_THAT(link_failure({function("", "f", 1) + function("", "f", 1)}, ErrorCode::Parse),
              HasSubstr("'f'"));
}

TEST(Linking, UndefinedSymbolsAreNamedWhereTheyAreUsed) {
  EXPECT_THAT(link_failure({".extern .func f();\n" + caller("k", "f")}, ErrorCode::Link),
              StartsWith("a.ptx:5:28: undefined symbol 'f' [in kernel k]"));
  EXPECT_THAT(
      link_failure({".entry ok() {ret;}", ".extern .global .u32 x;\n.global .u64 p = x;"}, ErrorCode::Link),
      StartsWith("b.ptx:5:18: undefined symbol 'x'"));
  // What is declared and not used need not exist.
  EXPECT_EQ(link_failure({".extern .func f();\n.extern .global .u32 x;\n"}, ErrorCode::Link), "");
}

TEST(Linking, CommonVariablesAreOneOfTheLargestSize) {
  const Linked linked({".common .global .align 4 .b8 x[4];", ".common .global .align 4 .b8 x[16];"});
  ASSERT_EQ(linked.image().variables.size(), 1u);
  EXPECT_EQ(linked.variable("x").bytes, 16u);
  const Linked defined({".common .global .align 4 .b8 x[16];", ".visible .global .u32 x = 5;"});
  EXPECT_EQ(defined.variable("x").bytes, 4u);
  EXPECT_EQ(defined.value<uint32_t>("x"), 5u);
}

TEST(Linking, OfWeakVariablesTheFirstStaysWhateverItsSize) {
  const Linked linked({".weak .global .align 4 .b8 x[4];", ".weak .global .align 4 .b8 x[16];"});
  EXPECT_EQ(linked.variable("x").bytes, 4u);
  const Linked common({".weak .global .align 4 .b8 x[4] = {1};", ".common .global .align 4 .b8 x[4];"});
  EXPECT_EQ(common.value<uint8_t>("x"), 0);
}

TEST(Linking, WeakSharedVariablesAreOne) {
  const std::string unit = ".weak .shared .align 4 .b8 s[8];\n";
  const auto uses = [](const char* name) {
    return std::string(".visible .func ") + name + "() { .reg .b32 %r<2>; ld.shared.u32 %r1, [s]; ret; }\n";
  };
  const Linked linked(
      {unit + uses("f") + ".extern .func g();\n.entry k() { call f; call g; ret; }", unit + uses("g")});
  EXPECT_EQ(linked.function("k").shared_bytes, 8u);
}

TEST(Linking, AliasesAreOtherNames) {
  const Linked linked(
      {".visible .func g();\n" + function(".visible", "f", 2) + ".alias g, f;\n" + caller("k", "g"),
       ".extern .func g();\n" + caller("l", "g")});
  EXPECT_EQ(callee_size(linked, "k"), 2u);
  EXPECT_EQ(callee_size(linked, "l"), 2u);
}

TEST(Linking, AUnitsOwnFunctionBeatsTheMachines) {
  const Linked own(
      {".visible .func (.param .b64 r) malloc(.param .b64 n) { ret; }\n.entry k() { .param .b64 n; .param "
       ".b64 r; call "
       "(r), malloc, (n); ret; }"});
  EXPECT_EQ(own.function("malloc").builtin, -1);
  const Linked machine(
      {".extern .func (.param .b64 r) malloc(.param .b64 n);\n.entry k() { .param .b64 n; .param .b64 r; "
       "call (r), "
       "malloc, (n); ret; }"});
  EXPECT_EQ(machine.function("malloc").builtin, find_builtin("malloc"));
}

TEST(Linking, TheToolkitsDeviceRuntimeIsLeftOut) {
  const Linked linked(
      {".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"
       ".entry k() { .param .b32 r; call (r), __cudaCDP2GetLastError; ret; }",
       ".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLastError();\n"
       ".visible .func (.param .b32 r) __cudaCDP2GetLastError() { call (r), "
       "__cuda_syscall_cnpv2GetLastError; ret; }\n"});
  EXPECT_GE(linked.function("__cudaCDP2GetLastError").builtin, 0);
  EXPECT_EQ(linked.image().functions.size(), 2u);
}

TEST(Linking, HostsFindKernelsAndVariablesByName) {
  const Linked linked({".entry own() {ret;}\n.global .u32 x = 1;\n",
                       ".visible .entry k() {ret;}\n.visible .global .u32 x = 2;\n",
                       ".entry own() {brkpt; ret;}\n"});
  EXPECT_EQ(linked.image().kernels.size(), 2u);
  EXPECT_EQ(linked.image().functions[linked.image().kernels.find("own")->second]->unit, "a.ptx");
  for (const Variable& v : linked.image().variables) {
    EXPECT_EQ(v.visible, *reinterpret_cast<const uint32_t*>(v.address) == 2) << v.address;
  }
}

TEST(Linking, GivesMemoryBackWhenItFails) {
  Memory memory(uint64_t{1} << 24);
  const ptx::Module m =
      ptx::parse(std::string(kHeader) + ".global .b8 x[4096];\n.global .u64 p = nothing;\n", "a.ptx");
  const uint64_t before = memory.used();
  EXPECT_THROW(link_image({&m}, memory), Error);
  EXPECT_EQ(memory.used(), before);
}

TEST(Linking, FailsWhereThereIsNoMemory) {
  EXPECT_THAT(link_failure({".global .b8 x[0x10000000];"}, ErrorCode::Link),
              AllOf(StartsWith("a.ptx:4:13"), HasSubstr("no memory left")));
}

}  // namespace
}  // namespace klap::emulator
