// What texts at the edge of the PTX front end's limits do: an error with its place, or a tree that stays in
// its place.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <utility>

#include "ptx/tree.h"

namespace klap::ptx {
namespace {

const std::string kHead = ".version 9.0\n.target sm_90\n";

std::string refusal(const std::string& text) {
  try {
    parse(text, "limits.ptx");
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Parse, error.code());
    return std::to_string(error.line()) + ":" + std::to_string(error.column()) + " " + error.reason();
  }
  return "accepted";
}

TEST(Limits, TextsThatEndEarlyAreRefusedWhereTheyEnd) {
  EXPECT_EQ("2:15 expected an option of .target after ','", refusal(".version 9.0\n.target sm_90,"));
  EXPECT_EQ("2:8 expected a target such as sm_90", refusal(".version 9.0\n.target"));
  EXPECT_EQ("1:9 expected a version number after .version", refusal(".version"));
  EXPECT_EQ("3:9 expected '{' after .section", refusal(kHead + ".section"));
  EXPECT_EQ("3:6 expected the name of a function", refusal(kHead + ".func"));
}

TEST(Limits, ParametersThatOverflowTheirBlockAreRefused) {
  EXPECT_EQ("3:10 parameters of 4 GiB or more",
            refusal(kHead + ".entry k(.param .align 8 .b64 p[536870912]) { ret; }"));
  EXPECT_EQ("3:36 parameters of 4 GiB or more",
            refusal(kHead + ".entry k(.param .b8 a[4294967295], .param .b8 b) { ret; }"));
  EXPECT_EQ("3:24 parameters of 4 GiB or more",
            refusal(kHead + ".entry k(.param .b8 a, .param .align 2147483648 .b8 b[2147483648]) { ret; }"));
  const Module most =
      parse(kHead + ".entry k(.param .b8 a, .param .align 2147483648 .b8 b[2147483647]) { ret; }", "m");
  EXPECT_EQ(UINT32_MAX, most.functions.at(0).parameter_bytes);
}

TEST(Limits, TextsOfHalfAGigabyteAreRefusedUnread) {
  constexpr size_t kBytes = kMaxSourceBytes + 1;
  void* pages = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(MAP_FAILED, pages);
  EXPECT_THROW(tokenize({static_cast<const char*>(pages), kBytes}, "huge.ptx"), Error);
  munmap(pages, kBytes);
}

// Analyses hold pointers to statements while their module moves from the reader's hands into a program's.
TEST(Limits, StatementsStayWhereTheyAreWhenTheirModuleMoves) {
  constexpr size_t kDistant = size_t{3} * 4321;
  std::string text = kHead + ".entry k() {";
  for (int i = 0; i < 5000; ++i) text += " { add.s32 %r1, %r2, 3; } $L" + std::to_string(i) + ": ;";
  Module first = parse(text + " ret; }", "first");
  const Statement* statement = &first.functions.at(0).body.body[kDistant];
  const Module second = std::move(first);
  EXPECT_EQ(statement, &second.functions.at(0).body.body[kDistant]);
  ASSERT_EQ(StatementKind::Block, statement->kind);
  EXPECT_EQ("{ add.s32 %r1, %r2, 3; }", second.text(statement->tokens));
  ASSERT_EQ(1u, statement->body.size());
  EXPECT_EQ("3", second.text(statement->body[0].operands[2]));
  EXPECT_EQ(15001u, second.functions[0].body.body.size());
}

}  // namespace
}  // namespace klap::ptx
