// What the reference takes for ordered: small programs of one parent and one child, and what it says about
// each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random/generate.h"
#include "random/print_ptx.h"
#include "random/reduce.h"
#include "random/reference.h"

namespace klap::differential::random {
namespace {

using testing::HasSubstr;

Statement statement(Kind kind, std::vector<Expression> values = {}, std::vector<Statement> body = {}) {
  return {kind, 0, 0, std::move(values), std::move(body), {}, {}, {}, {}};
}

Statement access(CellOp op, Expression operand = constant(5), Expression index = constant(0)) {
  Statement s = statement(Kind::Cell, {std::move(index), std::move(operand), constant(0)});
  s.cell.op = op;
  return s;
}

Statement by_thread(uint32_t thread, Statement what) {
  return statement(Kind::If, {{Op::Equal, 0, {{Op::Thread, 0, {}}, constant(thread)}}}, {std::move(what)});
}

// Launches one thread of the child, whose value is the launching thread's index in its grid.
Statement launch(Stream stream = Stream::Null) {
  Statement s = statement(Kind::Launch);
  s.site.kernel = 1;
  s.site.grid = {Extent{1, 1, {}}, Extent{1, 1, {}}, Extent{1, 1, {}}};
  s.site.block_x = {1, 1, {}};
  s.site.stream = stream;
  s.site.arguments = {{Op::Linear, 0, {}}};
  return s;
}

Statement turns(Relation relation, Statement body) {
  Statement s = statement(Kind::Turns, {}, {std::move(body)});
  s.turns.relation = relation;
  s.turns.count = 3;
  return s;
}

struct Form {
  std::vector<Statement> parent;
  Statement child = access(CellOp::Write, {Op::Parameter, 0, {}});
  uint32_t blocks = 1;
};

Program program(const Form& form) {
  Program p;
  p.kernels.resize(2);
  p.kernels[0].grid[0] = form.blocks;
  p.kernels[0].block[0] = 32;
  p.kernels[0].body = form.parent;
  p.kernels[1].values = {Width::U32};
  p.kernels[1].body = {form.child};
  for (Kernel& kernel : p.kernels) {
    kernel.variables = 1;
    kernel.parameters = {{Role::Own, {}}, {Role::Cells, {}}};
  }
  p.kernels[1].parameters.push_back({Role::Values, {0}});
  p.steps = {{0, 0, p.kernels[0].grid, p.kernels[0].block, 0, {}, false}};
  prepare(p);
  return p;
}

std::string verdict(const Form& form) {
  const Program p = program(form);
  EXPECT_EQ("", problem(p));
  return disorder(p);
}
constexpr const char* kNoOrder = "cell 0 is changed in no order";

TEST(LaunchOrder, OfOneThreadIsKept) {
  EXPECT_EQ("", verdict({{by_thread(3, launch()), by_thread(3, launch())}}));
  EXPECT_EQ("",
            verdict({{by_thread(3, launch(Stream::PerThread)), by_thread(3, launch(Stream::PerThread))}}));
}

TEST(LaunchOrder, OfThreadsThatDoNotSynchroniseIsOpen) {
  EXPECT_EQ(kNoOrder, verdict({{by_thread(0, launch()), by_thread(1, launch())}}));
  EXPECT_EQ(kNoOrder, verdict({{launch()}}));
}

TEST(LaunchOrder, IsThatOfABarrierBetweenThem) {
  EXPECT_EQ("", verdict({{by_thread(7, launch()), statement(Kind::Barrier), by_thread(2, launch())}}));
  const Memories after =
      run_reference(program({{by_thread(7, launch()), statement(Kind::Barrier), by_thread(2, launch())}}));
  EXPECT_EQ(2U, after.cells[0]);
}

TEST(LaunchOrder, IsThatOfTurns) {
  for (uint32_t r = 0; r < kRelations; ++r) {
    const auto relation = static_cast<Relation>(r);
    EXPECT_EQ(relation == Relation::Lock ? kNoOrder : "", verdict({{turns(relation, launch())}})) << r;
  }
}

TEST(LaunchOrder, OfOtherStreamsAndBlocksIsNone) {
  const auto twice = [](Stream a, Stream b) {
    return verdict({{by_thread(0, launch(a)), statement(Kind::Barrier), by_thread(0, launch(b))}});
  };
  EXPECT_EQ("", twice(Stream::Null, Stream::Null));
  EXPECT_EQ(kNoOrder, twice(Stream::FireAndForget, Stream::FireAndForget));
  EXPECT_EQ(kNoOrder, twice(Stream::Null, Stream::PerThread));
  EXPECT_EQ(kNoOrder, verdict({{by_thread(0, launch(Stream::PerThread)), statement(Kind::Barrier),
                                by_thread(1, launch(Stream::PerThread))}}));
  EXPECT_EQ(kNoOrder, verdict({{by_thread(0, launch())}, access(CellOp::Write, {Op::Parameter, 0, {}}), 2}));
}

TEST(LaunchOrder, MayBeOpenForWhatCommutes) {
  for (const CellOp op :
       {CellOp::Add, CellOp::Maximum, CellOp::Scratch, CellOp::AddBySwap, CellOp::AtomicAdd, CellOp::Read})
    EXPECT_EQ("", verdict({{launch()}, access(op, {Op::Parameter, 0, {}})})) << static_cast<int>(op);
  for (const CellOp op :
       {CellOp::Affine, CellOp::AtomicAddFloat, CellOp::Exchange, CellOp::CompareSwap, CellOp::AtomicAddUsed})
    EXPECT_EQ(kNoOrder, verdict({{launch()}, access(op, {Op::Parameter, 0, {}})})) << static_cast<int>(op);
  EXPECT_EQ("", verdict({{launch()}, access(CellOp::Write, constant(9))}));
  EXPECT_EQ("", verdict({{launch()}, access(CellOp::Write, constant(9), {Op::Parameter, 0, {}})}));
}

// Children of different blocks overlap: what commutes must be atomic, too.
TEST(LaunchOrder, OfDifferentBlocksIsFreeForAtomicOperationsOnly) {
  EXPECT_EQ("", verdict({{launch()}, access(CellOp::AtomicAdd, {Op::Parameter, 0, {}}), 2}));
  EXPECT_EQ(kNoOrder, verdict({{launch()}, access(CellOp::Add, {Op::Parameter, 0, {}}), 2}));
  EXPECT_EQ(kNoOrder, verdict({{launch()}, access(CellOp::Scratch, {Op::Parameter, 0, {}}), 2}));
}

TEST(LaunchOrder, IsNoneBetweenAParentAndItsChildrenOnceTheyAreLaunched) {
  EXPECT_EQ("", verdict({{by_thread(0, access(CellOp::Write)), by_thread(0, launch())}}));
  EXPECT_EQ(kNoOrder, verdict({{by_thread(0, launch()), by_thread(0, access(CellOp::Write))}}));
  EXPECT_EQ(kNoOrder, verdict({{by_thread(1, access(CellOp::Write)), by_thread(0, launch())}}));
  EXPECT_EQ(
      "", verdict({{by_thread(1, access(CellOp::Write)), statement(Kind::Barrier), by_thread(0, launch())}}));
}

// Sums of two numbers are the same in both orders.
TEST(LaunchOrder, ShowsInSumsThatAreRounded) {
  const Expression number = {Op::Add, 0, {{Op::Parameter, 0, {}}, constant(5)}};
  size_t different = 0;
  for (uint32_t count = 1; count <= 12; ++count) {
    Statement form = turns(Relation::Barrier, launch());
    form.turns.count = count;
    const Program p = program({{form}, access(CellOp::AtomicAddFloat, number)});
    EXPECT_EQ("", disorder(p));
    const uint32_t right = run_reference(p).cells[0], wrong = run_reference(p, GridOrder::Reversed).cells[0];
    if (right != wrong) ++different;
    EXPECT_TRUE(right == wrong || count > 2);
  }
  EXPECT_LE(4U, different);
}

// 4 * 4 bytes times 2^60 is no offset; the column comes on top of it.
TEST(LaunchOrder, OfOffsetsThatWrapAroundIsThatOfOneCell) {
  Statement child = access(CellOp::Write, {Op::Parameter, 0, {}}, {Op::Parameter, 0, {}});
  child.values.insert(child.values.end(), {constant(1), constant(2)});
  child.cell.shift = 60;
  const Program p =
      program({{by_thread(4, launch()), statement(Kind::Barrier), by_thread(8, launch())}, child});
  EXPECT_EQ("", problem(p));
  EXPECT_EQ("", disorder(p));
  EXPECT_EQ(8U, run_reference(p).cells[2]);
  EXPECT_THAT(disorder(program({{by_thread(1, launch())}, child})), HasSubstr("beyond all cells"));
}

TEST(LaunchOrder, IsWhatAReducedProgramKeeps) {
  const auto depends = [](const Program& p) {
    return run_reference(p).cells != run_reference(p, GridOrder::Reversed).cells;
  };
  int reduced = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const Program whole = generate(seed, parse_mix("order"));
    if (!depends(whole)) continue;
    const Program small = reduce(whole, depends, 2000);
    EXPECT_EQ("", disorder(small)) << print_ptx(small);
    EXPECT_LE(size_of(small), size_of(whole));
    EXPECT_LE(size_of(small), 40U) << print_ptx(small);
    ++reduced;
  }
  EXPECT_GE(reduced, 5);
}

}  // namespace
}  // namespace klap::differential::random
