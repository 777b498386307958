// Line tables of code that moves between units: numbers that clash, names that are shared, and what cannot be
// kept. ptxas checks what comes out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "line_table.h"
#include "ptx/tree.h"
#include "support/file.h"
#include "transform/aggregate/unit.h"
#include "transform/text/lines.h"

namespace klap::transform {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

std::string kernel(const std::string& name, const std::string& lines) {
  return ".visible .entry " + name + "(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n" + lines +
         "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.u32 %r1, [%rd2];\n"
         "add.s32 %r2, %r1, 1;\nst.global.u32 [%rd2], %r2;\nret;\n}\n";
}

// Two units that give number 1 to different files, and share one under different numbers.
std::string unit_a() {
  return kHead +
         kernel("a", ".loc 1 10 1\n.loc 2 20 1, function_name $L__info_string0, inlined_at 1 10 1\n") +
         ".file 1 \"/src/a.cu\"\n.file 2 \"/src/shared.h\"\n"
         ".section .debug_str\n{\n$L__info_string0:\n.b8 105,110,65,0\n}\n";  // inA
}
std::string unit_b() {
  return kHead +
         kernel("b",
                ".loc 1 30 1\n.loc 3 40 1, function_name $L__info_string0, inlined_at 1 30 1\n"
                ".loc 3 41 1, function_name $L__info_string0+4, inlined_at 1 30 1\n") +
         ".file 1 \"/src/b.cu\", 1700000000, 55\n.file 3 \"/src/shared.h\"\n"
         ".section .debug_str\n{\n$L__info_string0:\n.b8 105,110,66,0\n.b8 105,110,67,0\n}\n";  // inB, inC
}

std::vector<const ptx::Statement*> locs(const ptx::Module& module) {
  std::vector<const ptx::Statement*> out;
  ptx::for_each_statement(module.functions.at(0).body, [&](const ptx::Statement& s) {
    if (s.kind == ptx::StatementKind::Directive && module.is(s.head, ".loc")) out.push_back(&s);
  });
  return out;
}

std::vector<std::string> directives(LineTables& tables, const ptx::Module& source) {
  std::vector<std::string> out;
  for (const ptx::Statement* loc : locs(source)) out.push_back(tables.directive(source, *loc));
  return out;
}

std::vector<test::LineRow> assembled(const std::string& ptx, const std::string& function) {
  const std::string file =
      testing::TempDir() + "/lines_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptx";
  write_file(file, ptx);
  const std::string command =
      KLAP_PTXAS " -arch=sm_90 -c -o " + file + ".o " + file + " >" + file + ".log 2>&1";
  EXPECT_EQ(0, std::system(command.c_str())) << read_file(file + ".log") << ptx;
  std::vector<test::LineRow> rows;
  for (const test::LineRow& row : test::read_line_table(read_file(file + ".o"))) {
    if (row.function == function) rows.push_back(row);
  }
  return rows;
}

auto row(const std::string& file, int64_t line, const std::string& inlined) {
  return testing::AllOf(testing::Field(&test::LineRow::file, file),
                        testing::Field(&test::LineRow::line, line),
                        testing::Field(&test::LineRow::inlined, inlined));
}

// `b` of unit B as a kernel for unit A.
Generated moved(LineTables& tables, const ptx::Module& b) {
  ptx::Edits edits(b);
  tables.keep(b, b.functions[0].body, edits);
  return {"b", edits.apply(b.functions[0].tokens), {}, {}};
}

TEST(LineTables, OwnCodeKeepsItsNumbers) {
  const ptx::Module a = ptx::parse(unit_a(), "a");
  LineTables tables(a);
  EXPECT_THAT(directives(tables, a),
              ElementsAre(".loc\t1 10 1", ".loc\t2 20 1, function_name $L__info_string0, inlined_at 1 10 1"));
  EXPECT_THAT(tables.losses(), IsEmpty());
  ptx::Edits edits(a);
  tables.add_new(edits);
  EXPECT_TRUE(edits.empty());
}

TEST(LineTables, ForeignNumbersThatClashAreReplaced) {
  const ptx::Module a = ptx::parse(unit_a(), "a"), b = ptx::parse(unit_b(), "b");
  LineTables tables(a);
  EXPECT_THAT(directives(tables, b),
              ElementsAre(".loc\t3 30 1", ".loc\t2 40 1, function_name $L__klap_name0, inlined_at 3 30 1",
                          ".loc\t2 41 1, function_name $L__klap_name1, inlined_at 3 30 1"));
  EXPECT_THAT(tables.losses(), IsEmpty());
}

TEST(LineTables, MergedInPlaceTheUnitHasBoth) {
  const ptx::Module a = ptx::parse(unit_a(), "a"), b = ptx::parse(unit_b(), "b");
  UnitCode code(a);
  code.kernels.push_back(moved(code.lines, b));
  const std::string text = in_place_unit(code, 0);
  EXPECT_THAT(text, HasSubstr(".file\t3 \"/src/b.cu\", 1700000000, 55"));
  EXPECT_EQ(text.find(".section"), text.rfind(".section")) << "ptxas knows the names of one section only";
  const auto rows = assembled(text, "b");
  EXPECT_THAT(rows, Contains(row("b.cu", 30, "")));
  EXPECT_THAT(rows, Contains(row("shared.h", 41, "inC")));
  EXPECT_THAT(assembled(text, "a"), Contains(row("shared.h", 20, "inA")));
}

TEST(LineTables, UnitsWithoutTablesGetThem) {
  const ptx::Module a = ptx::parse(kHead + kernel("a", ""), "a"), b = ptx::parse(unit_b(), "b");
  UnitCode code(a);
  code.kernels.push_back(moved(code.lines, b));
  EXPECT_THAT(assembled(in_place_unit(code, 0), "b"), Contains(row("shared.h", 41, "inC")));
}

TEST(LineTables, DetachedUnitHasWhatItsCodeUses) {
  const ptx::Module a = ptx::parse(unit_a(), "a"), b = ptx::parse(unit_b(), "b");
  UnitCode code(a);
  code.kernels.push_back(moved(code.lines, b));
  std::string obstacle;
  const auto text = detached_unit(code, "$copy", &obstacle);
  ASSERT_TRUE(text) << obstacle;
  EXPECT_THAT(*text, Not(HasSubstr("$L__info_string0"))) << "only unit A's own code uses it";
  const auto rows = assembled(*text, "b");
  EXPECT_THAT(rows, Contains(row("b.cu", 30, "")));
  EXPECT_THAT(rows, Contains(row("shared.h", 41, "inC")));
}

TEST(LineTables, DetachedUnitWithoutLinesHasNoTables) {
  const ptx::Module a = ptx::parse(unit_a(), "a"), plain = ptx::parse(kHead + kernel("b", ""), "plain");
  UnitCode code(a);
  code.kernels.push_back(moved(code.lines, plain));
  EXPECT_THAT(detached_unit(code, "$copy", nullptr).value(), Not(HasSubstr(".file")));
}

TEST(LineTables, TwiceTheSameNameIsOneText) {
  const ptx::Module a = ptx::parse(unit_a(), "a"), again = ptx::parse(unit_a(), "again");
  LineTables tables(a);
  EXPECT_EQ(directives(tables, a), directives(tables, again));
}

// ---- what cannot be kept ----

TEST(LineTables, LinesOfUndeclaredFilesAreLeftOut) {
  const ptx::Module m = ptx::parse(kHead + kernel("k", ".loc 7 1 1\n"), "m");
  LineTables tables(m);
  EXPECT_THAT(directives(tables, m), ElementsAre(""));
  EXPECT_THAT(tables.losses(), ElementsAre(HasSubstr("m's file 7 are omitted")));
}

TEST(LineTables, NamesWithoutASectionAreLeftOut) {
  const ptx::Module m = ptx::parse(
      kHead + kernel("k", ".loc 1 1 1, function_name $L__nowhere, inlined_at 1 2 3\n") + ".file 1 \"k.cu\"\n",
      "m");
  LineTables tables(m);
  EXPECT_THAT(directives(tables, m), ElementsAre(".loc\t1 1 1"));
  EXPECT_THAT(tables.losses(), ElementsAre(HasSubstr("$L__nowhere")));
}

TEST(LineTables, NamesInASectionOfOtherThanBytesAreLeftOut) {
  const ptx::Module m =
      ptx::parse(kHead + kernel("k", ".loc 1 1 1, function_name $L__name, inlined_at 1 2 3\n") +
                     ".file 1 \"k.cu\"\n.section .debug_str\n{\n.b32 $L__name\n$L__name:\n.b8 65,0\n}\n",
                 "m");
  LineTables tables(m);
  EXPECT_THAT(directives(tables, m), ElementsAre(".loc\t1 1 1"));
  EXPECT_THAT(tables.losses(), ElementsAre(HasSubstr("plain bytes")));
}

TEST(LineTables, CodeWithoutLinesHasNoHead) {
  const ptx::Module plain = ptx::parse(kHead + kernel("k", ""), "m"), a = ptx::parse(unit_a(), "a");
  LineTables tables(a);
  EXPECT_EQ("", tables.head(plain, plain.functions[0]));
  EXPECT_EQ(".loc\t1 10 1", tables.head(a, a.functions[0]));
}

}  // namespace
}  // namespace klap::transform
