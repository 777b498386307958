// Comparing a device's result with the CPU's, element by element, with a message that names the first
// difference.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace bench {

// Empty when same(expected[i], found[i]) for all i; otherwise how many differ, and the first.
template <class T, class Same>
std::string differences(const char* what, const std::vector<T>& expected, const std::vector<T>& found,
                        const Same& same) {
  if (expected.size() != found.size()) {
    return std::to_string(found.size()) + " " + what + " instead of " + std::to_string(expected.size());
  }
  size_t different = 0;
  size_t example = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (same(expected[i], found[i])) continue;
    if (different++ == 0) example = i;
  }
  if (different == 0) return "";
  return std::to_string(different) + " " + what + " differ, number " + std::to_string(example) + " is " +
         std::to_string(found[example]) + " instead of " + std::to_string(expected[example]);
}

template <class T>
std::string differences(const char* what, const std::vector<T>& expected, const std::vector<T>& found) {
  return differences(what, expected, found, [](const T& a, const T& b) { return a == b; });
}

// For floating point: |a - b| <= relative * |a| + absolute. NaN never passes.
template <class T>
std::string differences_beyond(const char* what, const std::vector<T>& expected, const std::vector<T>& found,
                               double relative, double absolute) {
  return differences(what, expected, found, [=](T a, T b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) <=
           relative * std::abs(static_cast<double>(a)) + absolute;
  });
}

}  // namespace bench
