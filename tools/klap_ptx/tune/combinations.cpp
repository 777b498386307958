#include "klap_ptx/tune/combinations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace klap::tool {

Combinations::Combinations(const std::vector<Candidate>& tried, const std::set<size_t>& left_out) {
  std::map<std::string_view, std::vector<size_t>> subjects;
  for (size_t i = 0; i < tried.size(); ++i)
    if (!tried[i].is_original() && !left_out.contains(i)) subjects[tried[i].subject()].push_back(i);
  for (const auto& [subject, values] : subjects) {
    subjects_.push_back(values);
    count_ *= values.size() + 1;
  }
  constexpr double kGoldenPart = 0.618;  // steps of it are spread the most evenly
  step_ = std::max<uint64_t>(1, static_cast<uint64_t>(kGoldenPart * static_cast<double>(count_)));
  while (std::gcd(step_, count_) != 1) ++step_;
}

bool Combinations::contains(const Configuration& configuration) const {
  return std::ranges::all_of(configuration, [this](size_t candidate) {
    return std::ranges::any_of(subjects_, [&](const std::vector<size_t>& values) {
      return std::ranges::find(values, candidate) != values.end();
    });
  });
}

std::optional<Configuration> Combinations::next() {
  if (returned_ == count_) return std::nullopt;
  ++returned_;
  Configuration out = at(number_);
  number_ = (number_ + step_) % count_;
  return out;
}

// Each subject is a digit of the number: 0 is its default.
Configuration Combinations::at(uint64_t number) const {
  Configuration out;
  for (const std::vector<size_t>& values : subjects_) {
    const uint64_t digit = number % (values.size() + 1);
    number /= values.size() + 1;
    if (digit > 0) out.push_back(values[digit - 1]);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace klap::tool
