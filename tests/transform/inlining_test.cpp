// Calls written out in kernels: what each form of a call becomes, which calls stay, and that messages speak
// of the text as the program has it. Every text that comes out is also assembled.
#include "analysis/inline/inlining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembling.h"
#include "golden.h"
#include "jit/module.h"
#include "jit/plan/plan.h"
#include "transform/text/inliner.h"

namespace klap {
namespace {

using testing::HasSubstr;
using testing::Not;

// A unit with a function and a kernel that calls it. Behind the function's own text comes one line of its own
// that makes it worth writing out.
constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";
constexpr std::string_view kPlace = "\t.reg .b32 %place;\n\tmov.u32 %place, %tid.x;\n";

std::string unit(const std::string& functions, const std::string& kernel_body) {
  return std::string(kHead) + functions + ".visible .entry kernel(.param .u64 kernel_param_0)\n{\n" +
         kernel_body + "\tret;\n}\n";
}

// A function of that header (results, name and parameters) and body, which reads its place.
std::string function(const std::string& header, const std::string& body) {
  return ".func " + header + "\n{\n" + std::string(kPlace) + body + "}\n";
}

// The kernel as it then is; empty if nothing is written out.
std::string inlined(const std::string& text) {
  expect_assembles(text);
  const ptx::Module module = ptx::parse(text, "unit");
  const auto kernels = analysis::kernels_to_inline(module, {"kernel"});
  if (kernels.empty()) return "";
  const ptx::Module made = transform::with_inlined_calls(module, kernels);
  expect_assembles(made.source);
  // What stands outside the kernel is what it was.
  const std::string_view before = std::string_view(text).substr(0, text.find(".visible .entry kernel"));
  EXPECT_TRUE(made.source.starts_with(before));
  std::string out(made.text(made.find_function("kernel")->tokens));
  EXPECT_EQ(std::string::npos, out.find('\x01'));
  return out;
}

// The same with runs of blanks as one, for looking at a few instructions.
std::string flat(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank || (!out.empty() && out.back() != ' ')) out += blank ? ' ' : c;
  }
  return out;
}

constexpr std::string_view kCallPlain = "\t{\n\tcall.uni f, ();\n\t}\n";

// Why a call of `f` stays.
std::string stays(const std::string& text) {
  EXPECT_EQ("", inlined(text));
  const ptx::Module module = ptx::parse(text, "unit");
  return analysis::not_inlined_text(module, *module.find_function("f"));
}

// ---- parameters and results ----

TEST(Inlining, ScalarsTravelInRegisters) {
  const std::string out = flat(inlined(unit(
      function(
          "(.param .b32 r) f(.param .b32 p, .param .b64 q)",
          "\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<2>;\n\tld.param.u32 %r1, [p];\n\tld.param.u64 %rd1, [q];\n"
          "\tst.u32 [%rd1], %r1;\n\tst.param.b32 [r+0], %r1;\n\tret;\n"),
      "\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<2>;\n\tmov.u32 %r1, 7;\n\tld.param.u64 %rd1, [kernel_param_0];\n"
      "\t{\n\t.reg .b32 temp_param_reg;\n\t.param .b32 param0;\n\tst.param.b32 [param0+0], %r1;\n"
      "\t.param .b64 param1;\n\tst.param.b64 [param1+0], %rd1;\n\t.param .b32 retval0;\n"
      "\tcall.uni (retval0), f, (param0, param1);\n\tld.param.b32 %r2, [retval0+0];\n\t}\n"
      "\tst.u32 [%rd1], %r2;\n")));
  EXPECT_THAT(out, HasSubstr("mov.b32 %klap_i0_in0_0, %r1;"));
  EXPECT_THAT(out, HasSubstr("mov.b32 %klap_i0_r1, %klap_i0_in0_0; mov.b64 %klap_i0_rd1, %klap_i0_in1_0;"));
  EXPECT_THAT(out, HasSubstr("mov.b32 %klap_i0_out0_0, %klap_i0_r1; mov.b32 %r2, %klap_i0_out0_0; }"));
  EXPECT_THAT(out, Not(HasSubstr("call")));
  EXPECT_THAT(out, Not(HasSubstr("temp_param_reg;\n\t.param")));
}

// The call of a function with one parameter, an array of 16 bytes.
std::string with_array(const std::string& loads, const std::string& stores) {
  return inlined(
      unit(function("f(.param .align 8 .b8 p[16])",
                    "\t.reg .b16 %rs<4>;\n\t.reg .b32 %r<4>;\n\t.reg .f32 %f<3>;\n\t.reg .b64 %rd<4>;\n" +
                        loads + "\tret;\n"),
           "\t.reg .b16 %rs<4>;\n\t.reg .b32 %r<4>;\n\t.reg .f32 %f<3>;\n\t.reg .b64 %rd<4>;\n\t{\n"
           "\t.param .align 8 .b8 param0[16];\n" +
               stores + "\tcall.uni f, (param0);\n\t}\n"));
}

TEST(Inlining, PiecesOfAnArrayTravelEachInItsRegister) {
  const std::string out =
      flat(with_array("\tld.param.v2.f32 {%f1, %f2}, [p+8];\n\tld.param.u32 %r1, [p];\n",
                      "\tst.param.b32 [param0+0], -5;\n\tst.param.v2.f32 [param0+8], {%f1, 0f3F800000};\n"));
  EXPECT_THAT(out, HasSubstr("mov.b32 %klap_i0_in0_0, -5; mov.b32 %klap_i0_in0_8, %f1; "
                             "mov.f32 %klap_i0_in0_12, 0f3F800000;"));
  EXPECT_THAT(out, HasSubstr("mov.b32 %klap_i0_f1, %klap_i0_in0_8; mov.b32 %klap_i0_f2, %klap_i0_in0_12;"));
}

TEST(Inlining, WidthsAreThoseOfTheLoadsAndStores) {
  const std::string out = flat(with_array(
      "\tld.param.s8 %rs1, [p+4];\n\tld.param.u8 %rs2, [p+8];\n\tld.param.u16 %rs3, [p];\n"
      "\tld.param.s32 %rd1, [p+12];\n",
      "\tst.param.b32 [param0+0], %r1;\n\tst.param.b32 [param0+4], %r2;\n\tst.param.b8 [param0+8], %rs1;\n"
      "\tst.param.b32 [param0+12], %rd1;\n"));
  EXPECT_THAT(out, HasSubstr("mov.b16 %klap_i0_in0_8, %rs1; cvt.u32.u64 %klap_i0_in0_12, %rd1;"));
  EXPECT_THAT(out, HasSubstr("cvt.s16.s8 %klap_i0_rs1, %klap_i0_in0_4;"));
  EXPECT_THAT(out, HasSubstr("cvt.u16.u8 %klap_i0_rs2, %klap_i0_in0_8;"));
  EXPECT_THAT(out, HasSubstr("cvt.u16.u32 %klap_i0_rs3, %klap_i0_in0_0;"));
  EXPECT_THAT(out, HasSubstr("cvt.s64.s32 %klap_i0_rd1, %klap_i0_in0_12;"));
}

TEST(Inlining, WhatDoesNotFitTravelsInMemory) {
  const std::string out =
      flat(with_array("\tld.param.v2.u32 {%r1, %r2}, [p];\n\tld.param.u16 %rs1, [p+10];\n",
                      "\tst.param.b64 [param0+0], %rd1;\n\tst.param.b64 [param0+8], 1;\n"));
  EXPECT_THAT(out, HasSubstr(".local .align 8 .b8 klap_i0_in0[16];"));
  EXPECT_THAT(out, HasSubstr("st.local.b64 [klap_i0_in0+0], %rd1; st.local.b64 [klap_i0_in0+8], 1;"));
  EXPECT_THAT(out, HasSubstr("ld.local.v2.u32 {%klap_i0_r1, %klap_i0_r2}, [klap_i0_in0+0];"));
  EXPECT_THAT(out, HasSubstr("ld.local.u16 %klap_i0_rs1, [klap_i0_in0+10];"));
}

TEST(Inlining, AnAddressIsThatOfTheArray) {
  const std::string out =
      flat(with_array("\tmov.b64 %rd1, p;\n\tadd.s64 %rd2, %rd1, 4;\n\tld.local.u32 %r1, [%rd2];\n",
                      "\tst.param.b32 [param0+4], %r1;\n"));
  EXPECT_THAT(out, HasSubstr("mov.u64 %klap_i0_rd1, klap_i0_in0;"));
  EXPECT_THAT(out, HasSubstr("st.local.b32 [klap_i0_in0+4], %r1;"));
}

// ---- control flow ----

TEST(Inlining, ReturnsGoBehindTheBody) {
  const std::string out = flat(inlined(unit(
      function("f()",
               "\t.reg .pred %p<2>;\n\tsetp.eq.u32 %p1, %place, 0;\n\t@%p1 ret;\n\t{\n\t@!%p1 ret.uni;\n\t}\n"
               "$there:\n\tret;\n"),
      std::string(kCallPlain))));
  EXPECT_THAT(out,
              HasSubstr("@%klap_i0_p1 bra $klap_i0_end; { @!%klap_i0_p1 bra $klap_i0_end; } $klap_i0_there: "
                        "$klap_i0_end: .reg .pred %klap_i0_end; mov.pred %klap_i0_end, 0; } ret;"));
}

TEST(Inlining, ABodyThatEndsInItsReturnFallsThrough) {
  const std::string out = inlined(unit(function("f()", "\tret;\n"), std::string(kCallPlain)));
  EXPECT_THAT(out, Not(HasSubstr("bra")));
  EXPECT_THAT(out, Not(HasSubstr("$klap_i0_end")));
}

TEST(Inlining, AnExitStillEndsTheThread) {
  EXPECT_THAT(inlined(unit(function("f()", "\texit;\n"), std::string(kCallPlain))), HasSubstr("\texit;"));
}

TEST(Inlining, APredicatedCallIsJumpedOver) {
  const std::string out =
      flat(inlined(unit(function("f()", "\tret;\n"),
                        "\t.reg .pred %p1;\n\tsetp.eq.u32 %p1, 1, 1;\n\t{\n\t@!%p1 call f, ();\n\t}\n")));
  EXPECT_THAT(out, HasSubstr("@%p1 bra $klap_i0_skip;"));
  EXPECT_THAT(out, HasSubstr("$klap_i0_skip:"));
}

TEST(Inlining, TablesOfBranchesKeepTheirTargets) {
  const std::string body =
      "\t$table: .branchtargets $a, $b;\n\tbrx.idx %place, $table;\n$a:\n\tret;\n$b:\n\tret;\n";
  EXPECT_THAT(inlined(unit(function("f()", body), std::string(kCallPlain))),
              HasSubstr(".branchtargets $klap_i0_a, $klap_i0_b;"));
}

// ---- names ----

TEST(Inlining, EachCallHasNamesOfItsOwn) {
  const std::string out =
      inlined(unit(function("g()", "\tret;\n") + function("f()", "\t{\n\tcall.uni g, ();\n\t}\n\tret;\n"),
                   std::string(kCallPlain) + std::string(kCallPlain)));
  for (const char* name : {"%klap_i0__place;", "%klap_i1__place;", "%klap_i2__place;", "%klap_i3__place;"})
    EXPECT_THAT(out, HasSubstr(name));
  EXPECT_THAT(out, Not(HasSubstr("call")));
}

TEST(Inlining, AnnotationsKeepTheirs) {
  EXPECT_THAT(
      inlined(unit(function("f()", "\t{\n\t.reg .pred __klap_launch$granularity$warp;\n\t}\n\tret;\n"),
                   std::string(kCallPlain))),
      HasSubstr(".reg .pred __klap_launch$granularity$warp;"));
}

constexpr std::string_view kShared =
    "\t.shared .align 4 .b8 held[64];\n\t.reg .b32 %r1;\n\tmov.u32 %r1, held;\n\tst.shared.u32 [%r1], "
    "1;\n\tret;\n";

TEST(Inlining, ABlocksMemoryIsThereOnceHoweverOftenItIsCalled) {
  const std::string out =
      inlined(unit(function("f()", std::string(kShared)), std::string(kCallPlain) + std::string(kCallPlain)));
  EXPECT_EQ(1u, test::count(out, ".shared .align 4 .b8 klap_s0_held"));
  EXPECT_EQ(2u, test::count(out, ", klap_s0_held;"));
}

// One copy of the function would have other memory than the other.
TEST(Inlining, ABlocksMemoryIsNotDivided) {
  const std::string recursive =
      function("g()", "\t{\n\tcall.uni f, ();\n\t}\n\t{\n\tcall.uni g, ();\n\t}\n\tret;\n");
  const std::string calls = std::string(kCallPlain) + "\t{\n\tcall.uni g, ();\n\t}\n";
  EXPECT_EQ("", inlined(unit(".func f();\n.func g();\n" + function("f()", std::string(kShared)) + recursive,
                             calls)));
  const std::string plain = function("g()", "\t{\n\tcall.uni f, ();\n\t}\n\tret;\n");
  EXPECT_NE("", inlined(unit(function("f()", std::string(kShared)) + plain, calls)));
}

// ---- what stays ----

TEST(Inlining, AFunctionThatNeedsNothingIsStillCalled) {
  EXPECT_EQ("", inlined(unit(".func f()\n{\n\tret;\n}\n", std::string(kCallPlain))));
}

TEST(Inlining, AKernelThatNobodyLaunchesStaysAsItIs) {
  const ptx::Module module = ptx::parse(unit(function("f()", "\tret;\n"), std::string(kCallPlain)), "unit");
  EXPECT_TRUE(analysis::kernels_to_inline(module, {}).empty());
}

TEST(Inlining, SaysWhatStandsInItsWay) {
  const auto why = [](const std::string& f, const std::string& call) {
    return stays(unit(f, call.empty() ? std::string(kCallPlain) : call));
  };
  EXPECT_THAT(why(".func f();\n" + function("f()", "\t{\n\tcall.uni f, ();\n\t}\n\tret;\n"), ""),
              HasSubstr("it calls itself"));
  EXPECT_THAT(why(function("f()", "\t.global .align 4 .b8 kept[4];\n\tret;\n"), ""),
              HasSubstr("it has '.global .align 4 .b8 kept[4];' (line 8:2)"));
  EXPECT_THAT(why(function("f()", "\t.pragma \"unknown\";\n\tret;\n"), ""),
              HasSubstr("it has '.pragma \"unknown\";'"));
  EXPECT_THAT(why(".func f() .noreturn\n{\n" + std::string(kPlace) + "\texit;\n}\n", ""),
              HasSubstr("its header has an unknown form"));
  EXPECT_THAT(why(".func f(.reg .b32 %a)\n{\n" + std::string(kPlace) + "\tret;\n}\n",
                  "\t.reg .b32 %r1;\n\t{\n\tcall.uni f, (%r1);\n\t}\n"),
              HasSubstr("its header has an unknown form"));
  EXPECT_THAT(why(function("f()", "\tret;\n"), "\tcall.uni f, ();\n"),
              HasSubstr("the call at line 12:2 has an unknown form"));
  EXPECT_THAT(why(function("f(.param .b32 p)", "\tret;\n"), "\t{\n\tcall.uni f, (5);\n\t}\n"),
              HasSubstr("has an unknown form"));
  std::string body;
  for (int i = 0; i < 10'000; ++i) body += "\tadd.u32 %place, %place, 1;\n";
  EXPECT_THAT(why(function("f()", body + "\tret;\n"), ""), HasSubstr("it is too long"));
}

// What the function means by a name is not what the kernel has under it.
TEST(Inlining, AKernelThatHidesANameKeepsItsCalls) {
  const std::string f =
      ".global .align 4 .u32 cell;\n" + function("f()", "\tst.global.u32 [cell], %place;\n\tret;\n");
  EXPECT_THAT(inlined(unit(f, std::string(kCallPlain))), Not(HasSubstr("call")));
  EXPECT_THAT(inlined(unit(f, "\t.local .align 4 .b8 cell[4];\n" + std::string(kCallPlain))),
              HasSubstr("call"));
}

// ---- the rest of the pipeline ----

TEST(Inlining, MessagesSpeakOfTheProgramsText) {
  const std::string text =
      unit(function("f()", "\tbar.sync 0;\n\tret;\n"), std::string(kCallPlain) + "\tbar.sync 1;\n");
  const ptx::Module module = ptx::parse(text, "unit");
  const ptx::Module made =
      transform::with_inlined_calls(module, analysis::kernels_to_inline(module, {"kernel"}));
  std::vector<std::string> places;
  for (uint32_t t = made.find_function("kernel")->body.tokens.first; t < made.tokens.size(); ++t) {
    if (made.is(t, "bar")) places.push_back(made.place(t) + " " + std::string(made.through(t)));
  }
  EXPECT_THAT(places, testing::ElementsAre("line 8:2 f, called at line 14:2", "line 16:2 "));
}

TEST(Inlining, AUnitWithoutSuchCallsIsNotReadAgain) {
  const auto is_same = [](const std::string& text) {
    jit::Unit unit;
    unit.ptx = text;
    jit::ParsedUnit parsed(unit, 90, []() -> const analysis::KernelNames& {
      static const analysis::KernelNames kKernels = {"kernel"};
      return kKernels;
    });
    return parsed.module() == parsed.original();
  };
  EXPECT_TRUE(is_same(unit("", "")));
  EXPECT_TRUE(is_same(unit(".func f()\n{\n\tret;\n}\n", std::string(kCallPlain))));
  EXPECT_FALSE(is_same(unit(function("f()", "\tret;\n"), std::string(kCallPlain))));
}

}  // namespace
}  // namespace klap
