// Boolean formulas in conjunctive normal form: a generator of random k-SAT and a reader of DIMACS files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// Clause c is literal[first[c]] to literal[first[c + 1] - 1]. As in DIMACS files, a literal is v for the
// variable number v, counted from 1, and -v for its negation.
struct Formula {
  int variables = 0;
  std::vector<int> first = {0};
  std::vector<int> literal;

  [[nodiscard]] int clauses() const { return static_cast<int>(first.size()) - 1; }
  [[nodiscard]] int literals() const { return static_cast<int>(literal.size()); }
};

// Each clause has `width` different variables, drawn evenly, each negated with probability 1/2. Needs
// 1 <= width <= variables, and clauses * width must fit an int.
Formula random_formula(int variables, int clauses, int width, uint64_t seed);

// Reads "p cnf VARIABLES CLAUSES" and clauses that end in 0, which may span lines; a line that starts with
// '%' ends the file, as in the SATLIB collection. Throws FileError (graph_files.h) on anything else.
Formula read_cnf(const std::string& file);

}  // namespace bench
