// What is asked for a launch, and by whom.
//
// In the order of precedence: the caller's settings (environment, then config file), what the program's
// author wrote into the code at the launch or for its kernel (analysis/legality/annotations.h), and what
// holds where nobody says anything. An annotation that cannot be followed is ignored, and a note says so.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/legality/annotations.h"
#include "jit/data/request.h"

namespace klap::jit {

// The most threads of a child that the thread which launches it runs itself, where nobody says how many: 0,
// only children of no threads are not recorded.
inline constexpr uint32_t kDefaultThreshold = 0;

struct SiteWish {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Host;
  uint32_t multiblock = kMultiBlock;
  uint32_t consumer_threads = 0;  // 0: as suits
  Ordering ordering = Ordering::Auto;
  bool pack_records = true;
  bool flatten = true;
  bool split_rounds = true;
  bool split_all_rounds = false;  // a thread for each
  bool hold_arguments = false;
  // How many rounds of a child's straight loops stand in a row; nothing: as many as suit.
  std::optional<uint32_t> unroll;
  bool occupancy = true;  // what transform/promotion/residency.h says
  bool two_heads = true;
  bool pack_blocks = true;
  bool batch_items = true;
  std::optional<uint32_t> threshold = kDefaultThreshold;  // nothing: all children are recorded
  std::string promotion = "auto";  // of a chain: "auto", "none", "P", "PA", "PO", "PAO", "lookback"
  bool batch_links = true;
  bool assume_noalias = false;  // as analysis::judge_promotion() takes it
  Buffer buffer = Buffer::Pool;
  // Only what annotations ask for, 0 for nothing: the runtime has the settings.
  uint32_t concurrency = 0;
  uint64_t pool_bytes = 0;
  uint32_t pool = 0;
  bool launcher_is_asked = false;
  std::vector<std::string> notes;  // who asks for what, and what is ignored
};

// The wishes for the launches of one parent, in the order of its sites. A kernel's launches that are put off
// all go one way: where they are to go several, the first that says how decides, and notes say so.
std::vector<SiteWish> find_wishes(const Request& request, const analysis::FunctionFacts& parent);

// The ways in which the launches of a parent may go, best first. Launches for which nothing is to be done
// (granularity none) take no part.
std::vector<analysis::Way> wished_ways(const Request& request, std::span<const SiteWish> wishes);

}  // namespace klap::jit
