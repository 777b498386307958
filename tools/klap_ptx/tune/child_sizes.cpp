#include "klap_ptx/tune/child_sizes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/demangle.h"

namespace klap::tool {
namespace {

using nlohmann::json;

uint64_t launches(const ChildSizes& sizes) {
  uint64_t sum = 0;
  for (const ChildSizes::Bin& bin : sizes.bins) sum += bin.children;
  return sum;
}

// The bin that ends with this share of all children, of which there are some.
const ChildSizes::Bin& bin_at(const ChildSizes& sizes, double share) {
  const double wanted = share * static_cast<double>(launches(sizes));
  uint64_t sum = 0;
  for (const ChildSizes::Bin& bin : sizes.bins) {
    sum += bin.children;
    if (static_cast<double>(sum) >= wanted) return bin;
  }
  return sizes.bins.back();
}

std::string size_text(const ChildSizes::Bin& bin) {
  return bin.up_to ? fmt::format("up to {}", *bin.up_to) : "65536 or more";
}

}  // namespace

std::vector<ChildSizes> child_sizes(const json& statistics) {
  std::vector<ChildSizes> out;
  const json found = statistics.value("child_sizes", json());
  for (const json& one : found.is_array() ? found : json::array()) {
    ChildSizes sizes{one["parent"], one["child"], one["counted"], {}};
    for (const json& bin : one["sizes"]) {
      const json& end = bin["up_to"];
      sizes.bins.push_back(
          {end.is_null() ? std::nullopt : std::optional(end.get<uint64_t>()), bin["children"]});
    }
    if (!sizes.bins.empty()) out.push_back(std::move(sizes));
  }
  return out;
}

std::string to_string(const ChildSizes& sizes) {
  return fmt::format("{} launches of {}: half have {} {}, nine of ten {}, the largest {}", launches(sizes),
                     demangle(sizes.child), size_text(bin_at(sizes, 0.5)), sizes.counted,
                     size_text(bin_at(sizes, 0.9)), size_text(sizes.bins.back()));
}

}  // namespace klap::tool
