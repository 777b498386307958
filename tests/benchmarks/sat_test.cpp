// The formulas that benchmarks work on: what the generator promises, and what the reader refuses.
#include "../../benchmarks/common/sat.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "../../benchmarks/common/graph_files.h"

namespace {

// A file with the given text, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : name_(testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".cnf") {
    std::ofstream(name_, std::ios::binary) << text;
  }
  ~TemporaryFile() { static_cast<void>(std::remove(name_.c_str())); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
};

bench::Formula read(const std::string& text) { return bench::read_cnf(TemporaryFile(text).name()); }

// What the reader says about the text, after the file's name.
std::string complaint(const std::string& text) {
  const TemporaryFile file(text);
  try {
    bench::read_cnf(file.name());
  } catch (const bench::FileError& error) {
    const std::string message = error.what();
    return message.rfind(file.name(), 0) == 0 ? message.substr(file.name().size()) : message;
  }
  return "";
}

using Ints = std::vector<int>;

TEST(RandomFormula, HasTheSizesAskedFor) {
  const bench::Formula f = bench::random_formula(50, 200, 3, 1);
  EXPECT_EQ(f.variables, 50);
  EXPECT_EQ(f.clauses(), 200);
  EXPECT_EQ(f.literals(), 600);
  EXPECT_EQ(f.first.front(), 0);
  EXPECT_EQ(f.first[7], 21);
  EXPECT_EQ(f.first.back(), 600);
}

TEST(RandomFormula, ClausesHaveDifferentVariablesInRange) {
  const bench::Formula f = bench::random_formula(6, 500, 5, 2);
  for (int c = 0; c < f.clauses(); ++c) {
    std::set<int> variables;
    for (int i = f.first[c]; i < f.first[c + 1]; ++i) {
      const int variable = std::abs(f.literal[i]);
      EXPECT_GE(variable, 1);
      EXPECT_LE(variable, 6);
      variables.insert(variable);
    }
    EXPECT_EQ(variables.size(), 5U) << "clause " << c;
  }
}

TEST(RandomFormula, DrawsVariablesAndSignsEvenly) {
  const bench::Formula f = bench::random_formula(10, 10000, 3, 3);
  std::vector<int> count(21);
  for (const int l : f.literal) ++count[10 + l];
  for (int l = -10; l <= 10; ++l) {
    if (l != 0) {
      EXPECT_NEAR(count[10 + l], 1500, 200) << "literal " << l;
    }
  }
}

TEST(RandomFormula, FollowsTheSeed) {
  EXPECT_EQ(bench::random_formula(100, 300, 3, 4).literal, bench::random_formula(100, 300, 3, 4).literal);
  EXPECT_NE(bench::random_formula(100, 300, 3, 4).literal, bench::random_formula(100, 300, 3, 5).literal);
}

// Pieces made by several threads must not show.
TEST(RandomFormula, DoesNotDependOnTheNumberOfClauses) {
  const bench::Formula small = bench::random_formula(1000, 100, 3, 6);
  bench::Formula large = bench::random_formula(1000, 200000, 3, 6);
  large.literal.resize(small.literal.size());
  EXPECT_EQ(small.literal, large.literal);
}

TEST(RandomFormula, CanUseEveryVariable) {
  const bench::Formula f = bench::random_formula(1, 4, 1, 7);
  EXPECT_EQ(f.first, (Ints{0, 1, 2, 3, 4}));
}

TEST(ReadCnf, ReadsClauses) {
  const bench::Formula f = read("c a comment\np cnf 4 3\n1 -2 3 0\n-4 0\n2 4 0\n");
  EXPECT_EQ(f.variables, 4);
  EXPECT_EQ(f.first, (Ints{0, 3, 4, 6}));
  EXPECT_EQ(f.literal, (Ints{1, -2, 3, -4, 2, 4}));
}

TEST(ReadCnf, ReadsFreelySpacedFiles) {
  const bench::Formula f = read("\nc\nc p cnf 9 9\n  p  cnf\t3 2 \r\n1\n2 0 -3\r\nc in between\n 0");
  EXPECT_EQ(f.variables, 3);
  EXPECT_EQ(f.first, (Ints{0, 2, 3}));
  EXPECT_EQ(f.literal, (Ints{1, 2, -3}));
}

TEST(ReadCnf, StopsAtPercent) {
  const bench::Formula f = read("p cnf 2 1\n1 2 0\n%\n0\n\n");
  EXPECT_EQ(f.clauses(), 1);
}

TEST(ReadCnf, NamesWhatIsWrong) {
  EXPECT_EQ(complaint(""), ":1: no line 'p cnf VARIABLES CLAUSES'");
  EXPECT_EQ(complaint("p sp 3 4\n"), ":1: no line 'p cnf VARIABLES CLAUSES'");
  EXPECT_EQ(complaint("1 2 0\n"), ":1: no line 'p cnf VARIABLES CLAUSES'");
  EXPECT_EQ(complaint("p cnf\n"), ":2: no whole number where the number of variables should be");
  EXPECT_EQ(complaint("p cnf 0 1\n1 0\n"), ":1: out of range: the number of variables 0");
  EXPECT_EQ(complaint("p cnf 2 -1\n"), ":1: out of range: the number of clauses -1");
  EXPECT_EQ(complaint("p cnf 99999999999999999999 1\n"),
            ":1: out of range: the number of variables 99999999999999999999");
  EXPECT_EQ(complaint("p cnf 2 1\n1 x 0\n"), ":2: no whole number where a literal should be");
  EXPECT_EQ(complaint("p cnf 2 1\n1 2.5 0\n"), ":2: no whole number where a literal should be");
  EXPECT_EQ(complaint("p cnf 2 1\n1 3 0\n"), ":2: out of range: a literal 3");
  EXPECT_EQ(complaint("p cnf 2 1\n1\n-3 0\n"), ":3: out of range: a literal -3");
  EXPECT_EQ(complaint("p cnf 2 2\n1 0\n0\n"), ":3: an empty clause");
  EXPECT_EQ(complaint("p cnf 2 1\n1 0\n2 0\n"), ":3: more clauses than announced");
  EXPECT_EQ(complaint("p cnf 2 2\n1 0\n"), ":3: 1 clauses instead of the 2 announced");
  EXPECT_EQ(complaint("p cnf 2 1\n1 2"), ":2: the last clause does not end in 0");
}

TEST(ReadCnf, NamesAMissingFile) {
  EXPECT_THROW(
      {
        try {
          bench::read_cnf("/nonexistent/formula.cnf");
        } catch (const bench::FileError& error) {
          EXPECT_STREQ(error.what(), "/nonexistent/formula.cnf: cannot be opened");
          throw;
        }
      },
      bench::FileError);
}

}  // namespace
