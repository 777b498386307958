// This file has the names by which a generated parent knows the queues of its launch sites.
#pragma once

#include <cstddef>
#include <string>

namespace klap::transform {

inline constexpr char kQueueParameter[] = "__klap_queue";
inline constexpr char kQueueRegister[] = "%klap_queue";

// Names of one site end in its number, except for the first site.
inline std::string numbered(const char* name, size_t number) {
  return number == 0 ? std::string(name) : name + std::to_string(number);
}

}  // namespace klap::transform
