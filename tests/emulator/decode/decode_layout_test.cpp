// Where things lie: shared memory per kernel, parameters, limits.
#include <cstddef>

#include "decode_fixture.h"

namespace klap::emulator {
namespace {

using testing::ElementsAre;

uint64_t shared_offset(const Linked& linked, std::string_view kernel, std::string_view variable) {
  for (size_t v = 0; v < linked.image().shared_variables.size(); ++v) {
    if (linked.image().shared_variables[v].name == variable)
      return linked.function(kernel).shared_offsets.at(v);
  }
  ADD_FAILURE() << "no " << variable;
  return 0;
}
constexpr uint64_t kNotThere = ~uint64_t{0};

constexpr const char* kShared =
    ".shared .align 1 .b8 bytes[5];\n.shared .align 8 .b8 words[16];\n.extern .shared .align 16 .b8 rest[];\n"
    ".extern .shared .align 4 .b8 other_rest[];\n"
    ".func deep() { .reg .b32 %r<2>; .shared .align 4 .b8 own[12]; ld.shared.u32 %r1, [own]; ld.shared.u32 "
    "%r1, [words]; ret; }\n"
    ".func middle() { call deep; ret; }\n"
    ".entry all() { .reg .b32 %r<2>; ld.shared.u8 %r1, [bytes]; ld.shared.u32 %r1, [rest]; ld.shared.u32 "
    "%r1, [other_rest]; call "
    "middle; ret; }\n"
    ".entry some() { .reg .b32 %r<2>; ld.shared.u8 %r1, [bytes]; ret; }\n"
    ".entry none() { ret; }\n";

TEST(SharedLayout, IsThatOfWhatTheKernelReaches) {
  const Linked linked({kShared});
  EXPECT_EQ(shared_offset(linked, "all", "bytes"), 0u);
  EXPECT_EQ(shared_offset(linked, "all", "own"), 8u);
  EXPECT_EQ(shared_offset(linked, "all", "words"), 24u);
  EXPECT_EQ(shared_offset(linked, "all", "rest"), 48u);
  EXPECT_EQ(shared_offset(linked, "all", "other_rest"), 48u);
  EXPECT_EQ(linked.function("all").shared_bytes, 48u);
  EXPECT_EQ(linked.function("all").shared.size(), 5u);
  EXPECT_EQ(shared_offset(linked, "some", "bytes"), 0u);
  EXPECT_EQ(shared_offset(linked, "some", "own"), kNotThere);
  EXPECT_EQ(linked.function("some").shared_bytes, 5u);
  EXPECT_EQ(linked.function("none").shared_bytes, 0u);
}

TEST(SharedLayout, IndirectCallsReachEveryFunctionWithAnAddress) {
  const Linked linked(
      {std::string(kShared) +
       ".global .u64 table[2] = {deep, deep};\n"
       ".entry indirect() { .reg .b64 %rd<2>; p: .callprototype _ (); call %rd1, (), p; ret; }\n"});
  EXPECT_EQ(shared_offset(linked, "indirect", "own"), 0u);
  EXPECT_EQ(shared_offset(linked, "indirect", "words"), 16u);
  EXPECT_EQ(shared_offset(linked, "indirect", "bytes"), kNotThere);
}

TEST(SharedLayout, VariablesOfOneNameInTwoFunctionsAreTwo) {
  const Linked linked(
      {".func f() { .reg .b32 %r<2>; .shared .u32 x; ld.shared.u32 %r1, [x]; ret; }\n"
       ".entry k() { .reg .b32 %r<2>; .shared .u32 x; ld.shared.u32 %r1, [x]; call f; ret; }\n"});
  EXPECT_EQ(linked.function("k").shared_bytes, 8u);
  EXPECT_EQ(linked.function("k").shared.size(), 2u);
}

TEST(Parameters, LieAsTheHostLaysOutAStruct) {
  struct Pair {
    double x;
    char y;
  };
  struct Host {
    char a;
    double b;
    short c;
    int d[3];
    Pair e;
    char f;
  };
  const Linked linked(
      {".entry k(.param .u8 a, .param .f64 b, .param .u16 c, .param .align 4 .b8 d[12], .param .align 8 .b8 "
       "e[16], "
       ".param .u8 f) .maxntid 128 { ret; }\n.entry l() .reqntid 16, 8, 2 .maxnreg 32 { ret; }"});
  const Function& k = linked.function("k");
  EXPECT_THAT(k.parameter_offsets, ElementsAre(offsetof(Host, a), offsetof(Host, b), offsetof(Host, c),
                                               offsetof(Host, d), offsetof(Host, e), offsetof(Host, f)));
  EXPECT_THAT(k.parameter_sizes, ElementsAre(1u, 8u, 2u, 12u, 16u, 1u));
  EXPECT_EQ(k.parameter_bytes, offsetof(Host, f) + 1);
  EXPECT_THAT(k.limits.maximum, ElementsAre(128u, 1u, 1u));
  EXPECT_THAT(k.limits.required, ElementsAre(0u, 0u, 0u));
  EXPECT_THAT(linked.function("l").limits.required, ElementsAre(16u, 8u, 2u));
  EXPECT_LE(linked.function("l").register_estimate, 32u);
}

}  // namespace
}  // namespace klap::emulator
