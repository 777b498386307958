// The program's options, and the formula that they ask for: drawn from the seed, or read from a file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../common/graph_files.h"
#include "../common/options.h"
#include "../common/sat.h"

constexpr int kLargestWidth = 100;  // literals in a generated clause
constexpr int kMostLiterals = 1 << 28;

struct SpOptions {
  long long variables = 10000;
  long long clauses = 42000;
  long long width = 3;
  std::string data;
  long long steps = 54;
  long long first_sweeps = 100;
  long long sweeps = 2;
  long long fix = 0;

  void add_to(bench::Options& options) {
    options.integer("variables", variables, 1, "variables of a random formula");
    options.integer("clauses", clauses, 1, "clauses of a random formula");
    options.integer("width", width, 1, "literals in each clause of a random formula");
    options.text("data", data, "read the formula from this file: DIMACS CNF");
    options.integer("steps", steps, 1, "how often variables are fixed");
    options.integer("first-sweeps", first_sweeps, 1, "sweeps of propagation before the first step");
    options.integer("sweeps", sweeps, 1, "sweeps of propagation before each later step");
    options.integer("fix", fix, 0, "variables to fix in a step, more if equally biased; 0: one in a hundred");
  }
};

// Before step number `step`.
inline long long sweeps_before(const SpOptions& options, long long step) {
  return step == 0 ? options.first_sweeps : options.sweeps;
}

[[noreturn]] inline void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

inline bench::Formula generate(const SpOptions& options, uint64_t seed) {
  if (options.width > options.variables || options.width > kLargestWidth) {
    give_up("sp: a clause has at most " + std::to_string(kLargestWidth) +
            " literals, and no more than there are variables");
  }
  if (options.variables > kMostLiterals || options.clauses > kMostLiterals / options.width) {
    give_up("sp: at most " + std::to_string(kMostLiterals) + " variables and literals");
  }
  return bench::random_formula(static_cast<int>(options.variables), static_cast<int>(options.clauses),
                               static_cast<int>(options.width), seed);
}

inline bench::Formula load(const SpOptions& options, uint64_t seed) {
  if (std::max({options.steps, options.first_sweeps, options.sweeps}) > 10000) {
    give_up("sp: at most 10000 steps and sweeps");
  }
  if (options.fix > kMostLiterals) give_up("sp: --fix is larger than any formula");
  if (options.data.empty()) return generate(options, seed);
  try {
    bench::Formula formula = bench::read_cnf(options.data);
    if (formula.variables <= kMostLiterals && formula.literals() <= kMostLiterals) return formula;
  } catch (const bench::FileError& error) {
    give_up(error.what());
  }
  give_up(options.data + ": at most " + std::to_string(kMostLiterals) + " variables and literals");
}
