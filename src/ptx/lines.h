// Line numbers of many tokens.
//
// Module::line() counts from the start of the text. That is right for one message but quadratic for a listing
// with a line on every row. This table is made once and then answers in logarithmic time.
#pragma once

#include <algorithm>
#include <vector>

#include "ptx/tree.h"

namespace klap::ptx {

class LineNumbers {
 public:
  explicit LineNumbers(const Module& module) : module_(module) {
    for (size_t at = module.source.find('\n'); at != std::string::npos; at = module.source.find('\n', at + 1))
      ends_.push_back(static_cast<uint32_t>(at));
  }
  // Counts from 1, as Module::line() does.
  [[nodiscard]] int of(uint32_t token) const {
    const auto end = std::lower_bound(ends_.begin(), ends_.end(), module_.tokens[token].begin);
    return static_cast<int>(end - ends_.begin()) + 1;
  }

 private:
  const Module& module_;
  std::vector<uint32_t> ends_;  // offsets of the line ends
};

}  // namespace klap::ptx
