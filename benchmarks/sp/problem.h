// A survey-propagation problem in memory, and the arithmetic of its messages, which kernels and the CPU's
// reference share.
//
// A survey is the probability that a clause warns a variable that it needs it. All probabilities are
// fixed-point integers and products are taken in a fixed order, so that the CPU's result is the same to the
// last bit.
#pragma once

constexpr int kOne = 1 << 15;  // the probability 1
constexpr int kBins = 1024;    // of the histogram of biases, also the block that reads it
constexpr int kFree = -1;      // a variable without a value

// Where everything is. An occurrence is a literal's place in a clause; they are numbered so that those of one
// variable are neighbours, and `place` lists those of each clause. On the device and, for the reference, on
// the CPU.
struct Problem {
  int variables;
  int clauses;
  int occurrences;
  const int* first;              // where each variable's occurrences begin
  const int* variable;           // of an occurrence
  const int* clause;             // of an occurrence
  const unsigned char* negated;  // whether the occurrence is the variable's negation
  const int* clause_first;       // where each clause's literals begin in `place`
  const int* place;              // the occurrence that a clause's literal is
  int* survey;                   // of an occurrence, from its clause to its variable
  int* warning;                  // of an occurrence: how likely its variable can not help its clause
  unsigned char* satisfied;      // of a clause
  int* value;                    // of a variable: 0, 1 or kFree
  int* bias;                     // of a variable, from -kOne (false) to kOne (true)
};

__host__ __device__ inline int times(int a, int b) { return (a * b) >> 15; }

// A variable is warned by clauses of one side only, or of the other, or by none; both at once is ruled out.
// Returns the share of the second case, where `same` and `opposite` are the probabilities that no clause of
// that side warns.
__host__ __device__ inline int share_warned_by_opposite(int same, int opposite) {
  const int by_opposite = times(kOne - opposite, same);
  const int by_same = times(kOne - same, opposite);
  const int sum = by_opposite + by_same + times(same, opposite);
  return sum == 0 ? 0 : (by_opposite << 15) / sum;
}

// The probability that the clause of occurrence `o` does not warn its variable.
__host__ __device__ inline int quiet_from(const Problem& p, int o) {
  return p.satisfied[p.clause[o]] != 0 ? kOne : kOne - p.survey[o];
}

// A clause warns a variable if all its other variables can not help it.
__host__ __device__ inline void update_surveys_of(const Problem& p, int c) {
  const int end = p.clause_first[c + 1];
  for (int i = p.clause_first[c]; i < end; ++i) {
    int product = kOne;
    for (int j = p.clause_first[c]; j < end; ++j) {
      if (j != i) product = times(product, p.warning[p.place[j]]);
    }
    p.survey[p.place[i]] = product;
  }
}

__host__ __device__ inline int bias_of(const Problem& p, int v) {
  int positive = kOne;
  int negative = kOne;
  for (int i = p.first[v]; i < p.first[v + 1]; ++i) {
    int& side = p.negated[i] != 0 ? negative : positive;
    side = times(side, quiet_from(p, i));
  }
  return share_warned_by_opposite(negative, positive) - share_warned_by_opposite(positive, negative);
}

// The bin of a bias; nothing in bin 0 is ever fixed.
__host__ __device__ inline int bin_of(int bias) {
  const int bin = (bias < 0 ? -bias : bias) / (kOne / kBins);
  return bin < kBins ? bin : kBins - 1;
}
