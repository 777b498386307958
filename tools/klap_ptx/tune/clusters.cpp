#include "klap_ptx/tune/clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace klap::tool {
namespace {

// Distances of samples, and then of groups. A group has the number of one of its samples.
class Distances {
 public:
  explicit Distances(const std::vector<std::vector<double>>& rows)
      : count_(rows.size()), all_(count_ * count_), sizes_(count_, 1) {
    for (size_t i = 0; i < count_; ++i)
      for (size_t j = 0; j < count_; ++j) {
        double sum = 0;
        for (size_t k = 0; k < rows[i].size(); ++k)
          sum += (rows[i][k] - rows[j][k]) * (rows[i][k] - rows[j][k]);
        at(i, j) = std::sqrt(sum);
      }
  }

  double& at(size_t i, size_t j) { return all_[i * count_ + j]; }
  [[nodiscard]] bool is_group(size_t i) const { return sizes_[i] > 0; }

  // The group that is the closest to `i`; `preferred` where it is as close as another.
  size_t nearest(size_t i, size_t preferred) {
    size_t best = preferred;
    double least = preferred == i ? std::numeric_limits<double>::infinity() : at(i, preferred);
    for (size_t j = 0; j < count_; ++j) {
      if (j == i || !is_group(j) || at(i, j) >= least) continue;
      best = j;
      least = at(i, j);
    }
    return best;
  }

  // Makes one group of two, with the number `i`.
  void merge(size_t i, size_t j) {
    const auto a = static_cast<double>(sizes_[i]), b = static_cast<double>(sizes_[j]);
    for (size_t k = 0; k < count_; ++k) at(i, k) = at(k, i) = (a * at(i, k) + b * at(j, k)) / (a + b);
    sizes_[i] += sizes_[j];
    sizes_[j] = 0;
  }

 private:
  size_t count_;
  std::vector<double> all_;
  std::vector<size_t> sizes_;  // 0: it is part of another group
};

struct Pair {
  size_t one, other;  // a sample of each group
  double distance;
};

// All merges, in an order of their own. A chain goes from each group to the nearest other one. It ends at two
// that are the nearest of each other, which can be merged at once: averages grow no shorter by later merges.
std::vector<Pair> nearest_pairs(Distances& distances, size_t count) {
  std::vector<Pair> out;
  std::vector<size_t> chain;
  size_t first = 0;
  while (out.size() + 1 < count) {
    while (!distances.is_group(first)) ++first;
    if (chain.empty()) chain.push_back(first);
    const size_t last = chain.back();
    const size_t before = chain.size() > 1 ? chain[chain.size() - 2] : last;
    const size_t next = distances.nearest(last, before);
    if (next != before) {
      chain.push_back(next);
      continue;
    }
    out.push_back({last, before, distances.at(last, before)});
    distances.merge(last, before);
    chain.resize(chain.size() - 2);
  }
  return out;
}

}  // namespace

std::vector<Merge> cluster(const SampleTable& table) {
  const SampleTable scaled = standardised(table);
  const size_t count = scaled.rows.size();
  if (scaled.names.empty()) return {};
  Distances distances(scaled.rows);
  std::vector<Pair> pairs = nearest_pairs(distances, count);
  std::ranges::stable_sort(pairs, {}, &Pair::distance);

  std::vector<Merge> out;
  // The node that each node was merged into, the node itself at first; and the lowest sample below it.
  std::vector<size_t> into(2 * count - 1), lowest(2 * count - 1);
  std::iota(into.begin(), into.end(), size_t{0});
  std::iota(lowest.begin(), lowest.end(), size_t{0});
  const auto size = [&](size_t node) { return node < count ? 1 : out[node - count].size; };
  const auto root_of = [&](size_t node) {
    while (into[node] != node) node = into[node] = into[into[node]];
    return node;
  };
  for (const Pair& pair : pairs) {
    size_t a = root_of(pair.one), b = root_of(pair.other);
    if (lowest[b] < lowest[a]) std::swap(a, b);
    const size_t node = count + out.size();
    into[a] = into[b] = node;
    lowest[node] = lowest[a];
    out.push_back({a, b, pair.distance, size(a) + size(b)});
  }
  return out;
}

std::vector<std::vector<size_t>> members(const std::vector<Merge>& merges) {
  std::vector<std::vector<size_t>> out(merges.size() + 1);
  for (size_t i = 0; i < out.size(); ++i) out[i] = {i};
  for (const Merge& merge : merges) {
    std::vector<size_t> both = out[merge.first];
    both.insert(both.end(), out[merge.second].begin(), out[merge.second].end());
    out.push_back(std::move(both));
  }
  return out;
}

std::vector<Group> top_groups(const std::vector<Merge>& merges, size_t most) {
  if (merges.empty() || most == 0) return {};
  const std::vector<std::vector<size_t>> all = members(merges);
  const size_t samples = merges.size() + 1;
  const size_t first_split = all.size() - std::min(most - 1, merges.size());  // node numbers of later ones
  std::vector<Group> out;
  struct Entry {
    size_t node, parent, depth;
  };
  std::vector<Entry> open = {{all.size() - 1, 0, 0}};
  while (!open.empty()) {
    const Entry entry = open.back();
    open.pop_back();
    const bool is_split = entry.node >= first_split;
    if (is_split) {
      const Merge& merge = merges[entry.node - samples];
      open.push_back({merge.second, out.size(), entry.depth + 1});
      open.push_back({merge.first, out.size(), entry.depth + 1});
    }
    out.push_back({entry.parent, entry.depth, is_split, all[entry.node]});
  }
  return out;
}

}  // namespace klap::tool
