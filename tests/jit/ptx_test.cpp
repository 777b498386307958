// The PTX front end: tokens, tree, errors with their place, and edits.
#include <gtest/gtest.h>

#include <random>

#include "ptx/edit.h"
#include "ptx/tree.h"

namespace klap::ptx {
namespace {

const std::string kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

Module body(const std::string& statements) {
  return parse(kHead + ".visible .entry k(.param .u64 p, .param .align 4 .b8 s[12], .param .u8 c)\n{\n" +
                   statements + "\nret;\n}\n",
               "test.ptx");
}

TEST(Lexer, KeepsEveryByteAndSplitsWhatPtxJoins) {
  const std::string source =
      "// c\nld.global.L2::128B.v4.f32 {%f1,_}, [%rd1+-16]; /* x */ tex.1d.v4 @!%p|%q 0f3F800000 1.5e-3 7U "
      "\"a\\\"b\"";
  const auto tokens = tokenize(source, "t");
  std::vector<std::string> texts;
  for (const Token& t : tokens) texts.push_back(source.substr(t.begin, t.end - t.begin));
  const std::vector<std::string> expected = {
      "ld", ".global", ".L2::128B", ".v4", ".f32",       "{",      "%f1", ",",          "_",   "}",   ",",
      "[",  "%rd1",    "+",         "-",   "16",         "]",      ";",   "tex",        ".1d", ".v4", "@",
      "!",  "%p",      "|",         "%q",  "0f3F800000", "1.5e-3", "7U",  "\"a\\\"b\"", ""};
  EXPECT_EQ(expected, texts);
}

TEST(Parser, ReadsWhatSurroundsKernels) {
  const std::string source = kHead + R"(.file 1 "a.cu", 12, 34
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)
;
.visible .global .align 4 .b8 table[8] = {1, 2, 3, 4};
.extern .shared .align 16 .b8 dynamic[];
.weak .func (.param .b64 r) f(.param .b32 x) .noreturn { ret; }
.alias g, f;
.visible .entry k() .maxntid 256, 1, 1 .minnctapersm 2 .pragma "nounroll"; {
  .loc 1 5 3, function_name $L__info+4, inlined_at 1 9 2
  { .reg .b32 %r<3>; { .reg .b32 %r<2>; mov.u32 %r1, 0; } }
$L1: @!%p1 bra $L1;
  prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _);
  ret;
}
.section .debug_str { $L__info: .b8 107, 0 }
)";
  const Module m = parse(source, "t.ptx");
  EXPECT_EQ(source, print(m));
  EXPECT_EQ("9.0", m.version);
  EXPECT_EQ("sm_90", m.target);
  ASSERT_EQ(3u, m.functions.size());
  EXPECT_FALSE(m.functions[0].is_definition);
  EXPECT_EQ(Linkage::Weak, m.functions[1].linkage);
  EXPECT_EQ(FunctionKind::Entry, m.functions[2].kind);
  ASSERT_EQ(2u, m.variables.size());
  EXPECT_EQ("dynamic", m.variables[1].name);
  EXPECT_EQ(".shared", m.variables[1].space);
  EXPECT_TRUE(m.variables[0].initialised);
}

TEST(Parser, LaysOutParameters) {
  const Module m = body("");
  const Function& f = m.functions[0];
  ASSERT_EQ(3u, f.parameters.size());
  EXPECT_EQ(0u, f.parameters[0].offset);
  EXPECT_EQ(8u, f.parameters[1].offset);
  EXPECT_EQ(12u, f.parameters[1].bytes);
  EXPECT_EQ(20u, f.parameters[2].offset);
  EXPECT_EQ(21u, f.parameter_bytes);
}

TEST(Parser, KeepsUnknownInstructionsOpaque) {
  const Module m = body("frobnicate.new.b77 {%r1, %r2}, [%rd1+8], %p1|_, 5;");
  const Statement& s = m.functions[0].body.body[0];
  EXPECT_EQ("frobnicate.new.b77", m.full_opcode(s));
  ASSERT_EQ(4u, s.operands.size());
  EXPECT_EQ("{%r1, %r2}", m.text(s.operands[0]));
  EXPECT_EQ("[%rd1+8]", m.text(s.operands[1]));
}

struct BadInput {
  const char* text;
  int line;
  const char* reason;
};

TEST(Parser, SaysWhereTextIsWrong) {
  const BadInput cases[] = {
      {"", 1, "no .version"},
      {"garbage", 1, "expected a directive"},
      {".version 9.0\n.target sm_90\n\x01", 3, "unexpected byte 1"},
      {".version 9.0\n/* never closed", 2, "comment is not closed"},
      {".version 9.0\n.visible .entry k() {\n  mov.u32 %r1, 0\n}", 3, "does not end with ';'"},
      {".version 9.0\n.visible .entry k() {\n ret;", 2, "scope is not closed"},
      {".version 9.0\n.visible .entry k(.param .u32 a", 2, "parameter list is not closed"},
      {".version 9.0\n.global .u32 x", 2, "does not end with ';'"},
      {".version 9.0\n.file 1 \"abc", 2, "string is not closed"},
      {".version 9.0\n.visible .entry k()", 2, "neither a body nor a ';'"},
  };
  for (const BadInput& bad : cases) {
    try {
      parse(bad.text, "bad.ptx");
      ADD_FAILURE() << "accepted: " << bad.text;
    } catch (const Error& error) {
      EXPECT_EQ(ErrorCode::Parse, error.code());
      EXPECT_EQ("bad.ptx", error.file());
      EXPECT_EQ(bad.line, error.line()) << bad.text << "\n" << error.what();
      EXPECT_NE(std::string::npos, error.reason().find(bad.reason)) << error.what();
    }
  }
}

// Cut and garbled text must give an error or a tree, never a crash; scopes cannot exhaust the stack.
TEST(Parser, SurvivesDamage) {
  const std::string good =
      kHead + ".visible .entry k(.param .u64 p) { .reg .b32 %r<2>; { mov.u32 %r1, %tid.x; } ret; }\n";
  std::mt19937 random(1);
  for (int iteration = 0; iteration < 4000; ++iteration) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (int flips = 0; flips < 3 && !text.empty(); ++flips)
      text[random() % text.size()] = static_cast<char>(random() % 128);
    try {
      EXPECT_EQ(text, print(parse(text, "damaged")));
    } catch (const Error& error) {
      EXPECT_EQ(ErrorCode::Parse, error.code());
    }
  }
  EXPECT_THROW(parse(kHead + ".visible .entry k() {" + std::string(100000, '{'), "deep"), Error);
}

TEST(Edits, ApplyTogetherAndRefuseHalfOverlaps) {
  const Module m = body("mov.u32 %r1, 1;\nmov.u32 %r2, 2;");
  const Statement& first = m.functions[0].body.body[0];
  const Statement& second = m.functions[0].body.body[1];
  Edits edits(m);
  edits.replace(first.tokens, "A;");
  edits.insert_before(first.tokens.first, "B;");
  edits.insert_after(second.tokens.last - 1, "C;");
  EXPECT_EQ("B;A;\nmov.u32 %r2, 2;C;", edits.apply({first.tokens.first, second.tokens.last}));
  Edits outer(m);
  outer.replace({first.head, first.head + 1}, "inner");
  outer.replace(first.tokens, "outer");
  EXPECT_EQ("outer", outer.apply(first.tokens));
  Edits overlap(m);
  overlap.replace({first.tokens.first, second.tokens.first + 1}, "x");
  overlap.replace(second.tokens, "y");
  EXPECT_THROW(static_cast<void>(overlap.apply({first.tokens.first, second.tokens.last})), Error);
}

TEST(Literals, AreReadInEveryBase) {
  EXPECT_EQ(12u, integer_value("12"));
  EXPECT_EQ(31u, integer_value("0x1F"));
  EXPECT_EQ(8u, integer_value("010"));
  EXPECT_EQ(5u, integer_value("0b101"));
  EXPECT_EQ(7u, integer_value("7U"));
  EXPECT_EQ(std::nullopt, integer_value("%r1"));
  EXPECT_EQ(std::nullopt, integer_value("0f3f800000"));
  EXPECT_EQ(std::nullopt, integer_value("99999999999999999999999"));
}

}  // namespace
}  // namespace klap::ptx
