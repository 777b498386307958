// Variables: sizes, alignment, first values.
#include "decode_fixture.h"

namespace klap::emulator {
namespace {

using testing::HasSubstr;

TEST(Variables, AreZeroWithoutAnInitialiser) {
  const Linked linked({".visible .global .align 4 .b8 x[64];\n.visible .global .u32 y[4] = {7};"});
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(linked.value<uint8_t>("x", i), 0);
  EXPECT_EQ(linked.value<uint32_t>("y", 0), 7u);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(linked.value<uint32_t>("y", i), 0u);
}

TEST(Variables, OfAllTypes) {
  const Linked linked(
      {".visible .global .s8 a = -3;\n.visible .global .u16 b = 65535;\n.visible .global .s64 c = -5;\n"
       ".visible .global .f32 d = 1.5;\n.visible .global .f64 e = -0d3ff8000000000000;\n"
       ".visible .global .b32 f = 0f40000000;\n.visible .const .u32 g = 2+3*4;\n"
       ".visible .global .v4 .f32 h = {1.0, 2.0, 3.0, 4.0};\n.visible .global .b8 i[3] = {0x10, 0377, 3};\n"
       ".visible .global .u32 j, k = 9, l<2>;"});
  EXPECT_EQ(linked.value<int8_t>("a"), -3);
  EXPECT_EQ(linked.value<uint16_t>("b"), 65535);
  EXPECT_EQ(linked.value<int64_t>("c"), -5);
  EXPECT_EQ(linked.value<float>("d"), 1.5f);
  EXPECT_EQ(linked.value<double>("e"), -1.5);
  EXPECT_EQ(linked.value<float>("f"), 2.0f);
  EXPECT_EQ(linked.value<uint32_t>("g"), 14u);
  EXPECT_TRUE(linked.variable("g").is_const);
  EXPECT_EQ(linked.value<float>("h", 3), 4.0f);
  EXPECT_EQ(linked.variable("h").address % 16, 0u);
  EXPECT_EQ(linked.value<uint8_t>("i", 1), 255);
  EXPECT_EQ(linked.value<uint32_t>("k"), 9u);
  EXPECT_NE(linked.variable("l0").address, linked.variable("l1").address);
}

TEST(Variables, NestedLists) {
  const Linked linked(
      {".visible .global .u32 a[2][3] = {{1, 2}, {4, 5, 6}};\n.visible .global .u32 b[2][3] = {1, 2, 3, 4};\n"
       ".visible .global .u8 c[] = {1, 2, 3, 4, 5};\n.visible .global .u16 d[][2] = {{1, 2}, {3}};\n"
       ".visible .global .f64 e[2] = {0d3ff0000000000000};"});
  const uint32_t a[] = {1, 2, 0, 4, 5, 6}, b[] = {1, 2, 3, 4, 0, 0};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(linked.value<uint32_t>("a", i), a[i]);
    EXPECT_EQ(linked.value<uint32_t>("b", i), b[i]);
  }
  EXPECT_EQ(linked.variable("c").bytes, 5u);
  EXPECT_EQ(linked.value<uint8_t>("c", 4), 5);
  EXPECT_EQ(linked.variable("d").bytes, 8u);
  EXPECT_EQ(linked.value<uint16_t>("d", 2), 3);
  EXPECT_EQ(linked.value<double>("e", 0), 1.0);
  EXPECT_EQ(linked.value<double>("e", 1), 0.0);
}

TEST(Variables, AddressesOfOthers) {
  const Linked linked(
      {".visible .global .u32 x[4];\n.visible .global .u64 p = x;\n.visible .global .u64 q[3] = {x+8, "
       "generic(x), "
       "generic(x)+4};\n"
       ".visible .global .u8 bytes[8] = {0xff(x), 0xff00(x), 0xFF0000(x), 0xFF000000(x), 0xFF00000000(x), "
       "0xFF0000000000(x), 0xFF000000000000(x), 0xFF00000000000000(x)};\n"
       ".visible .func f() { ret; }\n.visible .entry k() { ret; }\n.visible .global .u64 code[2] = {f, k};\n"
       ".visible .global .u64 later = after;\n.visible .global .u64 after = later;"});
  const uint64_t x = linked.variable("x").address;
  EXPECT_EQ(linked.value<uint64_t>("p"), x);
  EXPECT_EQ(linked.value<uint64_t>("q", 0), x + 8);
  EXPECT_EQ(linked.value<uint64_t>("q", 1), x);
  EXPECT_EQ(linked.value<uint64_t>("q", 2), x + 4);
  EXPECT_EQ(linked.value<uint64_t>("bytes"), x);
  const auto index = [&](std::string_view name) {
    return (linked.value<uint64_t>("code", name == "k" ? 1 : 0) - kCodeWindow) / 16;
  };
  EXPECT_EQ(linked.image().functions.at(index("f"))->name, "f");
  EXPECT_EQ(linked.image().functions.at(index("k"))->name, "k");
  EXPECT_EQ(linked.image().indirect_callees.size(), 1u);  // a kernel cannot be called
  EXPECT_EQ(linked.value<uint64_t>("later"), linked.variable("after").address);
  EXPECT_EQ(linked.value<uint64_t>("after"), linked.variable("later").address);
}

TEST(Variables, ManagedAndAligned) {
  Linked linked(
      {".visible .global .attribute(.managed) .align 4 .u32 m = 3;\n.visible .global .align 512 .b8 big[3];\n"
       ".visible .global .u8 plain;"});
  EXPECT_TRUE(linked.variable("m").is_managed);
  EXPECT_EQ(linked.memory().find(linked.variable("m").address, 4)->owner, Owner::Managed);
  EXPECT_EQ(linked.variable("big").address % 512, 0u);
  const Allocation* piece = linked.memory().find(linked.variable("plain").address, 1);
  ASSERT_NE(piece, nullptr);
  EXPECT_EQ(piece->owner, Owner::Module);
  EXPECT_EQ(piece->name, "plain");
  EXPECT_EQ(linked.memory().find(linked.variable("plain").address, 2), nullptr);
}

TEST(Variables, InsideFunctions) {
  const Linked linked(
      {".entry k() { .reg .b64 %rd<3>; .global .u32 count = 4; { .global .u32 count = 5; mov.u64 %rd1, "
       "count; } "
       "mov.u64 %rd2, count; ret; }"});
  const Function& k = linked.function("k");
  ASSERT_EQ(linked.image().variables.size(), 2u);
  const auto at = [&](size_t i) {
    return *reinterpret_cast<const uint32_t*>(k.constants[size_t{k.code[i].sources[0].index} * kLanes]);
  };
  EXPECT_EQ(at(0), 5u);
  EXPECT_EQ(at(1), 4u);
  for (const Variable& v : linked.image().variables) EXPECT_FALSE(v.visible);
}

TEST(Variables, TextureReferencesAreOnlyNamed) {
  const Linked linked({".global .texref t;\n.tex .u64 u;"});
  EXPECT_THAT(linked.image().texture_names, testing::ElementsAre("t", "u"));
}

TEST(Variables, WrongInitialisers) {
  const auto failure = [](const char* text, ErrorCode code) { return link_failure({text}, code); };
  EXPECT_THAT(failure(".global .u32 x[2] = {1, 2, 3};", ErrorCode::Parse),
              HasSubstr("a.ptx:4:28: more values"));
  EXPECT_THAT(failure(".global .u32 x[2] = {{{1}}};", ErrorCode::Parse), HasSubstr("more braces"));
  EXPECT_THAT(failure(".global .u32 x = 1.5;", ErrorCode::Parse), HasSubstr("does not fit"));
  EXPECT_THAT(failure(".global .u8 y;\n.global .u32 x = y;", ErrorCode::Link),
              HasSubstr("a.ptx:5:18: address does not fit"));
  EXPECT_THAT(failure(".shared .u8 y[8];\n.global .u64 x = y;", ErrorCode::Link),
              HasSubstr("no address before"));
  EXPECT_THAT(failure(".global .u32 x = 1 2;", ErrorCode::Parse), HasSubstr("unexpected text"));
}

}  // namespace
}  // namespace klap::emulator
