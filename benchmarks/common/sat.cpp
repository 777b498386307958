// Random and stored formulas; see sat.h.
#include "sat.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <climits>
#include <string_view>
#include <system_error>

#include "graph_files.h"
#include "parallel.h"
#include "random.h"

namespace bench {
namespace {

// Fills one clause with literals of different variables.
void draw_clause(int* literal, int width, int variables, Random& random) {
  for (int i = 0; i < width; ++i) {
    int variable = 0;
    do {
      variable = 1 + static_cast<int>(random.below(static_cast<uint32_t>(variables)));
    } while (std::any_of(literal, literal + i, [=](int l) { return l == variable || l == -variable; }));
    literal[i] = random.below(2) == 0 ? variable : -variable;
  }
}

// The words of a CNF file; comment lines are left out.
class Words {
 public:
  Words(const std::string& file, std::string_view text) : file_(file), rest_(text) {}

  // The next word; empty at the end.
  std::string_view next() {
    skip_blanks_and_comments();
    if (rest_.empty() || (at_line_start_ && rest_[0] == '%')) return {};
    size_t end = 0;
    while (end < rest_.size() && !is_space(rest_[end])) ++end;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    at_line_start_ = false;
    return word;
  }

  // `word` as a whole number from `smallest` to `largest`.
  int number(std::string_view word, const char* what, int smallest, int largest) const {
    long long value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool too_long = error == std::errc::result_out_of_range;
    if (word.empty() || (error != std::errc() && !too_long) || end != word.data() + word.size()) {
      fail("no whole number where " + std::string(what) + " should be");
    }
    if (too_long || value < smallest || value > largest) {
      fail("out of range: " + std::string(what) + " " + std::string(word));
    }
    return static_cast<int>(value);
  }

  [[noreturn]] void fail(const std::string& what) const { throw FileError(file_, line_, what); }

 private:
  static bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

  void skip_blanks_and_comments() {
    while (!rest_.empty()) {
      if (rest_[0] == '\n') {
        ++line_;
        at_line_start_ = true;
      } else if (at_line_start_ && rest_[0] == 'c') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
        continue;
      } else if (!is_space(rest_[0])) {
        return;
      }
      rest_.remove_prefix(1);
    }
  }

  const std::string& file_;
  std::string_view rest_;
  long long line_ = 1;
  bool at_line_start_ = true;
};

}  // namespace

Formula random_formula(int variables, int clauses, int width, uint64_t seed) {
  Formula formula;
  formula.variables = variables;
  formula.first.resize(static_cast<size_t>(clauses) + 1);
  formula.literal.resize(static_cast<size_t>(clauses) * static_cast<size_t>(width));
  for (int c = 0; c <= clauses; ++c) formula.first[c] = c * width;
  parallel_for(static_cast<size_t>(clauses), [&](size_t c) {
    Random random(seed, c);
    draw_clause(formula.literal.data() + c * static_cast<size_t>(width), width, variables, random);
  });
  return formula;
}

Formula read_cnf(const std::string& file) {
  const std::string text = read_whole(file);
  Words words(file, text);
  if (words.next() != "p" || words.next() != "cnf") words.fail("no line 'p cnf VARIABLES CLAUSES'");
  Formula formula;
  formula.variables = words.number(words.next(), "the number of variables", 1, INT_MAX - 1);
  const int clauses = words.number(words.next(), "the number of clauses", 1, INT_MAX - 1);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (formula.clauses() == clauses) words.fail("more clauses than announced");
    const int literal = words.number(word, "a literal", -formula.variables, formula.variables);
    if (literal == 0) {
      if (formula.first.back() == formula.literals()) words.fail("an empty clause");
      formula.first.push_back(formula.literals());
    } else {
      if (formula.literal.size() == INT_MAX) words.fail("more literals than 31 bits can number");
      formula.literal.push_back(literal);
    }
  }
  if (formula.first.back() != formula.literals()) words.fail("the last clause does not end in 0");
  if (formula.clauses() != clauses) {
    words.fail(std::to_string(formula.clauses()) + " clauses instead of the " + std::to_string(clauses) +
               " announced");
  }
  return formula;
}

}  // namespace bench
