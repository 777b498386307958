// The whole run on the CPU, and the layout of a formula that it shares with the kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "../common/parallel.h"
#include "../common/random.h"
#include "../common/sat.h"
#include "problem.h"

// The parts of a problem that a run does not change, on the CPU.
struct Layout {
  explicit Layout(const bench::Formula& formula)
      : first(formula.variables + 1),
        variable(formula.literals()),
        clause(formula.literals()),
        negated(formula.literals()),
        clause_first(formula.first),
        place(formula.literals()) {
    for (const int literal : formula.literal) ++first[std::abs(literal)];
    for (int v = 0; v < formula.variables; ++v) first[v + 1] += first[v];
    std::vector<int> next = first;
    for (int c = 0; c < formula.clauses(); ++c) {
      for (int i = formula.first[c]; i < formula.first[c + 1]; ++i) {
        const int v = std::abs(formula.literal[i]) - 1;
        const int o = next[v]++;
        variable[o] = v;
        clause[o] = c;
        negated[o] = formula.literal[i] < 0 ? 1 : 0;
        place[i] = o;
      }
    }
  }

  std::vector<int> first;
  std::vector<int> variable;
  std::vector<int> clause;
  std::vector<unsigned char> negated;
  std::vector<int> clause_first;
  std::vector<int> place;
};

inline std::vector<int> random_surveys(int count, uint64_t seed) {
  std::vector<int> surveys(count);
  bench::parallel_for(surveys.size(), [&](size_t o) {
    surveys[o] = static_cast<int>(bench::Random(~seed, o).below(kOne + 1));
  });
  return surveys;
}

// Calls body(i) from several threads for every i with first[i] < first[i + 1], in pieces of equal work.
template <class Body>
inline void parallel_for_owners(const std::vector<int>& first, const Body& body) {
  bench::parallel_ranges(static_cast<size_t>(first.back()), [&](size_t begin, size_t end) {
    const auto from = std::lower_bound(first.begin(), first.end() - 1, static_cast<int>(begin));
    for (auto i = from; i != first.end() - 1 && *i < static_cast<int>(end); ++i) {
      if (i[0] < i[1]) body(static_cast<int>(i - first.begin()));
    }
  });
}

// The whole run on the CPU.
class Reference {
 public:
  Reference(const Layout& layout, std::vector<int> surveys)
      : survey(std::move(surveys)),
        satisfied(layout.clause_first.size() - 1),
        value(layout.first.size() - 1, kFree),
        bias(layout.first.size() - 1),
        layout_(layout),
        warning_(survey.size()),
        opposite_(survey.size()) {
    p_.variables = static_cast<int>(value.size());
    p_.clauses = static_cast<int>(satisfied.size());
    p_.occurrences = static_cast<int>(survey.size());
    p_.first = layout.first.data();
    p_.variable = layout.variable.data();
    p_.clause = layout.clause.data();
    p_.negated = layout.negated.data();
    p_.clause_first = layout.clause_first.data();
    p_.place = layout.place.data();
    p_.survey = survey.data();
    p_.warning = warning_.data();
    p_.satisfied = satisfied.data();
    p_.value = value.data();
    p_.bias = bias.data();
  }

  void step(long long sweeps, int at_least) {
    for (long long sweep = 0; sweep < sweeps; ++sweep) {
      parallel_for_owners(layout_.first, [this](int v) { update_warnings_of(v); });
      parallel_for_owners(layout_.clause_first, [this](int c) {
        if (satisfied[c] == 0) update_surveys_of(p_, c);
      });
    }
    parallel_for_owners(layout_.first, [this](int v) {
      if (value[v] == kFree) bias[v] = bias_of(p_, v);
    });
    fix(lowest_bin(at_least));
  }

  std::vector<int> survey;
  std::vector<unsigned char> satisfied;
  std::vector<int> value;
  std::vector<int> bias;
  int fixed = 0;

 private:
  // The products before each occurrence are left in its warning until those behind it are known.
  void update_warnings_of(int v) {
    const int begin = p_.first[v];
    const int end = p_.first[v + 1];
    if (value[v] != kFree) return std::fill(&warning_[begin], &warning_[begin] + (end - begin), kOne);
    int product[2] = {kOne, kOne};
    for (int o = begin; o < end; ++o) {
      const int sign = p_.negated[o];
      warning_[o] = product[sign];
      opposite_[o] = product[1 - sign];
      product[sign] = times(product[sign], quiet_from(p_, o));
    }
    product[0] = product[1] = kOne;
    for (int o = end - 1; o >= begin; --o) {
      const int sign = p_.negated[o];
      warning_[o] =
          share_warned_by_opposite(times(warning_[o], product[sign]), times(opposite_[o], product[1 - sign]));
      product[sign] = times(product[sign], quiet_from(p_, o));
    }
  }

  [[nodiscard]] int lowest_bin(int at_least) const {
    std::vector<int> histogram(kBins);
    for (size_t v = 0; v < value.size(); ++v) {
      if (value[v] == kFree) ++histogram[bin_of(bias[v])];
    }
    int bin = kBins - 1;
    for (int found = histogram[bin]; found < at_least && bin > 1; found += histogram[bin]) --bin;
    return bin;
  }

  void fix(int lowest) {
    for (size_t v = 0; v < value.size(); ++v) {
      if (value[v] != kFree || bin_of(bias[v]) < lowest) continue;
      ++fixed;
      value[v] = bias[v] > 0 ? 1 : 0;
      for (int o = p_.first[v]; o < p_.first[v + 1]; ++o) {
        if (p_.negated[o] != value[v]) p_.satisfied[p_.clause[o]] = 1;
      }
    }
  }

  const Layout& layout_;
  std::vector<int> warning_;
  std::vector<int> opposite_;
  Problem p_ = {};
};
