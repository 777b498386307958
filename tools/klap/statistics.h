// Statistics that the library wrote (KLAP_STATS), of one process or added up over several.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klap::tool {

using Counts = std::map<std::string, uint64_t>;

// A launch site, once for all processes that loaded it.
struct SiteRecord {
  std::string child;  // demangled
  bool is_rewritten = false;
  std::string how;     // "grid by the host"; rewritten ones
  std::string reason;  // others
  std::string detail;
};

struct KernelRecord {
  std::string name;                         // demangled
  std::string engine;                       // "aggregation at grid by the host"
  uint64_t rewritten = 0;                   // launches by the host
  Counts left;                              // launches of the original, by reason
  std::map<std::string, SiteRecord> sites;  // by place
  std::optional<uint64_t> children;         // if they were counted for this kernel
  uint64_t timed = 0;                       // launches with a measured time, which these are the sums of
  double parent_ms = 0, children_ms = 0;
};

struct Statistics {
  uint64_t processes = 0;
  uint64_t modules = 0;         // that were looked into
  uint64_t passed_through = 0;  // that hold no launches
  Counts failed;                // modules that stayed as they are because of an error, by its text
  uint64_t compiled = 0;        // modules that were in no cache
  double compile_ms = 0;
  std::map<std::string, KernelRecord> kernels;  // by mangled name
  // Nothing if they were not counted.
  std::optional<uint64_t> children, native_children, chain_links;

  // Adds the statistics of one process. Throws Error(Unsupported) if they are none.
  void add(const nlohmann::json& process);

  [[nodiscard]] uint64_t rewritten() const;
  [[nodiscard]] size_t kernels_rewritten() const;
  // Launches of parents and launch sites that are as they were, by reason.
  [[nodiscard]] Counts left_launches() const;
  [[nodiscard]] Counts left_sites() const;
};

// The statistics in a file: those of one process, or an array of several. Throws Error that names the file.
std::vector<nlohmann::json> read_statistics(const std::string& file);

}  // namespace klap::tool
