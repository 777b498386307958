// How large a program's children are, as the library counted them in one run (KLAP_SIZES).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace klap::tool {

struct ChildSizes {
  std::string parent, child;
  std::string counted;  // the unit: "threads", "blocks of 64 threads"
  struct Bin {
    std::optional<uint64_t> up_to;  // the largest size in it; none in the last bin, which has no end
    uint64_t children = 0;
  };
  std::vector<Bin> bins;  // by size, none empty
};

// As they stand in the statistics. Children that were never launched are left out.
std::vector<ChildSizes> child_sizes(const nlohmann::json& statistics);

// "57889 launches of child(int*): half have up to 127 threads, nine of ten up to 511, the largest up to
// 4095".
std::string to_string(const ChildSizes& sizes);

}  // namespace klap::tool
