// Every configuration of some candidates, for a search that tries them all.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "klap_ptx/tune/candidates.h"

namespace klap::tool {

class Combinations {
 public:
  // A kernel that is left as it is has no other settings, so that candidate is not among them. Those in
  // `left_out` are not, either.
  Combinations(const std::vector<Candidate>& tried, const std::set<size_t>& left_out);

  // How many there are; the default is one of them.
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] bool contains(const Configuration& configuration) const;

  // Returns each one once, then nothing. The order is fixed. Neighbours differ in much, so that those that
  // are tried in a limited time are a fair sample of all.
  std::optional<Configuration> next();

 private:
  [[nodiscard]] Configuration at(uint64_t number) const;

  std::vector<std::vector<size_t>> subjects_;  // the candidates of each
  uint64_t count_ = 1;
  uint64_t step_ = 1;  // has no factor in common with the count, so steps of it come to each number once
  uint64_t number_ = 0, returned_ = 0;
};

}  // namespace klap::tool
