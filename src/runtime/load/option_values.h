// The options of a load that the program asked for, while the driver may change them.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/load/load.h"

namespace klap::runtime {

// The values of the program's options, some of which the driver changes: how much of a log it has written,
// how long it took. They become the program's own if the load succeeds. Else the program's own call follows,
// which must begin with what the program said.
class OptionValues {
 public:
  explicit OptionValues(const JitOptions& options)
      : options_(options), values_(options.values, options.values + options.count) {}
  [[nodiscard]] void** data() { return values_.data(); }
  void keep() const { std::ranges::copy(values_, options_.values); }

 private:
  const JitOptions options_;
  std::vector<void*> values_;
};

}  // namespace klap::runtime
