// The settings of one launch, with their types.
//
// The table (table.h) says what a value may be, and Config where it comes from. Here the texts become what
// the planner works with. The canonical text of these options is what the keys of both caches hash, so an
// option that decides about code cannot be missing in a key: it does not compile until it stands in the text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/facts/granularity.h"

namespace klap::settings {

// A launcher: auto, but the parent is its own consumer where it may be (templates/aggregate/fused.cu).
inline constexpr std::string_view kFused = "fused";

// The memory of a launch's queues is kept in the stream for its next launches, or allocated for the launch
// alone.
enum class Buffer : uint8_t { Pool, Malloc };

// Blocks that launch as one at granularity multiblock where nobody says how many.
inline constexpr uint32_t kMultiBlock = 16;

// The most threads of a child that the launching thread runs itself, where nobody says how many: with 0, only
// children without threads are not recorded.
inline constexpr uint32_t kDefaultThreshold = 0;

// The values of all single optimisations, which KLAP_OPTIMISE switches, by the names of their rows in the
// table. A new row is here, and in the canonical text, by itself.
class OptimisationValues {
 public:
  OptimisationValues();  // the defaults
  // Throws Error(Internal) for a name that has no row.
  [[nodiscard]] const std::string& value(std::string_view name) const;
  [[nodiscard]] bool is_on(std::string_view name) const { return value(name) != "off"; }
  void set(std::string_view name, std::string value);
  // "name=value name=value".
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

struct LaunchOptions {
  analysis::Granularity granularity = analysis::Granularity::Grid;
  analysis::Launcher launcher = analysis::Launcher::Host;
  bool fused = false;  // where it may, the parent is its own consumer
  uint32_t multiblock = kMultiBlock;
  analysis::Ordering ordering = analysis::Ordering::Auto;
  uint32_t consumer_threads = 0;                          // 0: as suits
  std::optional<uint32_t> threshold = kDefaultThreshold;  // nothing: all children are recorded
  std::string promotion = "auto";   // "auto", "none", "P", "PA", "PO", "PAO", "lookback"
  bool assume_noalias = false;      // as analysis::judge_promotion() takes it
  bool assume_reassociate = false;  // floating-point numbers may be added in another order
  Buffer buffer = Buffer::Pool;
  OptimisationValues optimisations;
};

// A value that somebody gives, as the table allows it, and who gives it: "environment", "config file". The
// place is empty for the caller of the pipeline.
struct Given {
  std::string text, place;
};
// Asks for the value of a key or of an optimisation; nothing where nobody gives one.
using Ask = std::function<std::optional<Given>(std::string_view key)>;

LaunchOptions launch_options(const Ask& ask);

// All options as text, the same for equal options only.
std::string canonical_text(const LaunchOptions& options);

}  // namespace klap::settings
