// The kernels that sweep messages between clauses and variables and choose the variables to fix: the same in
// all variants.
#pragma once

#include "problem.h"

// The variables that one step fixes.
struct Choice {
  int at_least;    // how many, if so many have a bias
  int* histogram;  // how many variables have which bias
  int* list;
  int* size;
};

// Products over a variable's occurrences other than one: those before it, then those behind it from the end.
// The CPU takes them for all occurrences of a variable at once.
__device__ int warning_of(const Problem& p, int o) {
  const int v = p.variable[o];
  const int begin = p.first[v];
  const int end = p.first[v + 1];
  const int sign = p.negated[o];
  int same = kOne;
  int opposite = kOne;
  for (int i = begin; i < o; ++i) {
    int& side = p.negated[i] == sign ? same : opposite;
    side = times(side, quiet_from(p, i));
  }
  int same_behind = kOne;
  int opposite_behind = kOne;
  for (int i = end - 1; i > o; --i) {
    int& side = p.negated[i] == sign ? same_behind : opposite_behind;
    side = times(side, quiet_from(p, i));
  }
  return share_warned_by_opposite(times(same, same_behind), times(opposite, opposite_behind));
}

// A fixed variable can not help a clause that it has not satisfied.
__global__ void update_warnings(Problem p) {
  const int o = blockIdx.x * blockDim.x + threadIdx.x;
  if (o < p.occurrences && p.satisfied[p.clause[o]] == 0) {
    p.warning[o] = p.value[p.variable[o]] != kFree ? kOne : warning_of(p, o);
  }
}

__global__ void update_surveys(Problem p) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < p.clauses && p.satisfied[c] == 0) update_surveys_of(p, c);
}

__global__ void update_biases(Problem p, Choice choice) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < p.variables && p.value[v] == kFree) {
    const int bias = bias_of(p, v);
    p.bias[v] = bias;
    if (bin_of(bias) > 0) atomicAdd(&choice.histogram[bin_of(bias)], 1);
  }
}

// The highest bin that, with those above it, holds at least as many variables as asked for, or else bin 1.
// Every thread of a block of kBins threads gets the result.
__device__ int lowest_chosen_bin(const Choice& choice) {
  __shared__ int from[kBins];  // variables in this bin and above
  __shared__ int lowest;
  const int bin = threadIdx.x;
  from[bin] = choice.histogram[bin];
  if (bin == 0) lowest = 1;
  __syncthreads();
  for (int distance = 1; distance < kBins; distance *= 2) {
    const int above = bin + distance < kBins ? from[bin + distance] : 0;
    __syncthreads();
    from[bin] += above;
    __syncthreads();
  }
  const int above = bin + 1 < kBins ? from[bin + 1] : 0;
  if (bin > 0 && from[bin] >= choice.at_least && above < choice.at_least) lowest = bin;
  __syncthreads();
  return lowest;
}

__global__ void choose(Problem p, Choice choice) {
  const int lowest = lowest_chosen_bin(choice);
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < p.variables && p.value[v] == kFree && bin_of(p.bias[v]) >= lowest) {
    choice.list[atomicAdd(choice.size, 1)] = v;
  }
}
