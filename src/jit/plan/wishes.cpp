#include "jit/plan/wishes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "jit/plan/given_setting.h"
#include "jit/plan/parsed_unit.h"
#include "jit/plan/program_hints.h"
#include "support/quantity.h"

namespace klap::jit {
namespace {

using analysis::Annotation;
using analysis::Way;

constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostBlocks = (1U << 24) - 1;

uint32_t threads_of(const std::string& text) {
  return text == "auto" ? 0 : *parse_number(text, 1, kMostThreads);
}

std::optional<uint32_t> threshold_of(const std::string& text) {
  if (text == "off") return std::nullopt;
  return text == "auto" ? kDefaultThreshold : *parse_number(text, 0, kMostThreads);
}

std::optional<uint32_t> unrolled(const std::string& text) {
  if (text == "auto") return std::nullopt;
  return text == "off" ? 1 : *parse_number(text, 1, kMostBlocks);
}

std::optional<Buffer> parse_buffer(std::string_view name) {
  if (name == "pool") return Buffer::Pool;
  if (name == "malloc") return Buffer::Malloc;
  return std::nullopt;
}

constexpr std::array<std::string_view, 7> kPromotions{"auto", "none", "P", "PA", "PO", "PAO", "lookback"};

// What can be annotated.
struct Key {
  std::string_view name;
  std::string_view values;  // for people
  bool of_one_launch;       // also right before a launch
  bool (*takes)(const std::string& value);
};
constexpr std::array kKeys{
    Key{"granularity", "none, warp, block, multiblock, grid or auto", true,
        [](const std::string& v) { return analysis::parse_granularity(v).has_value(); }},
    Key{"launcher", "auto, host or device", true,
        [](const std::string& v) { return analysis::parse_launcher(v).has_value(); }},
    Key{"multiblock", "a number from 2 on", true,
        [](const std::string& v) { return parse_number(v, 2, kMostBlocks).has_value(); }},
    Key{"ordering", "auto, stream or relaxed", true,
        [](const std::string& v) { return analysis::parse_ordering(v).has_value(); }},
    Key{"concurrency", "a number from 1 on", true,
        [](const std::string& v) { return parse_number(v, 1, kMostBlocks).has_value(); }},
    Key{"consumer_threads", "auto, or a number up to 1024", true,
        [](const std::string& v) { return v == "auto" || parse_number(v, 1, kMostThreads).has_value(); }},
    Key{"promotion", "auto, none, P, PA, PO, PAO or lookback", true,
        [](const std::string& v) { return std::ranges::count(kPromotions, v) != 0; }},
    Key{"pool", "auto, or a number from 1 on", true,
        [](const std::string& v) { return v == "auto" || parse_number(v, 1, kMostBlocks).has_value(); }},
    Key{"assume", "none or noalias", true,
        [](const std::string& v) { return v == "none" || v == "noalias"; }},
    Key{"buffer", "pool or malloc", false, [](const std::string& v) { return parse_buffer(v).has_value(); }},
    Key{"pool_bytes", "bytes, as 4096, 64M or 1G", false,
        [](const std::string& v) { return parse_size(v).value_or(0) != 0; }},
};

const Key* find_key(std::string_view name) {
  const auto* const found = std::ranges::find(kKeys, name, &Key::name);
  return found == kKeys.end() ? nullptr : found;
}

// What follows from a list of annotations: the first of each key, and why others are ignored.
class Followed {
 public:
  Followed(const std::vector<Annotation>& annotations, bool at_launch) {
    for (const Annotation& a : annotations) add(a, at_launch);
  }
  [[nodiscard]] const Annotation* find(std::string_view key) const {
    const auto found = by_key_.find(std::string(key));
    return found == by_key_.end() ? nullptr : found->second;
  }
  [[nodiscard]] const std::map<std::string, const Annotation*>& all() const { return by_key_; }
  [[nodiscard]] const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  void add(const Annotation& a, bool at_launch) {
    const Key* const key = find_key(a.key);
    if (key == nullptr) return ignore(a, "there is no such key");
    if (at_launch && !key->of_one_launch) return ignore(a, "it is for all launches of a kernel");
    if (!key->takes(a.value)) return ignore(a, fmt::format("{} is {}", a.key, key->values));
    const auto [before, is_first] = by_key_.emplace(a.key, &a);
    if (is_first) return;
    ignore(a,
           fmt::format("{} at {} came first", before->second->text(), ptx::place(before->second->position)));
  }
  void ignore(const Annotation& a, const std::string& why) {
    ignored_.push_back(
        fmt::format("annotation {} at {} is ignored: {}", a.text(), ptx::place(a.position), why));
  }

  std::map<std::string, const Annotation*> by_key_;
  std::vector<std::string> ignored_;
};

// The values of one launch.
class Reader {
 public:
  Reader(const Request& request, const std::string& parent, const std::string& child, const Followed& kernel,
         const Followed& launch)
      : request_(request), parent_(parent), child_(child), kernel_(kernel), launch_(launch) {}

  SiteWish read() {
    SiteWish wish;
    wish.notes = launch_.ignored();
    read_granularity(wish);
    read_launcher(wish);
    wish.multiblock = kMultiBlock;
    if (request_.multiblock) {
      wish.multiblock = request_.multiblock(parent_);
    } else if (const auto given = find("multiblock")) {
      wish.multiblock = *parse_number(given->text, 2, kMostBlocks);
    }
    if (request_.ordering) {
      wish.ordering = request_.ordering(parent_);
    } else if (const auto given = find("ordering")) {
      wish.ordering = *analysis::parse_ordering(given->text);
    }
    read_buffer(wish);
    if (const auto given = find("pack_records")) wish.pack_records = given->text == "on";
    if (const auto given = find("flatten")) wish.flatten = given->text == "on";
    if (const auto given = find("split_rounds")) {
      wish.split_rounds = given->text != "off";
      wish.split_all_rounds = given->text == "all";
    }
    if (const auto given = find("hold_arguments")) wish.hold_arguments = given->text == "on";
    if (const auto given = find("unroll")) wish.unroll = unrolled(given->text);
    if (const auto given = find("occupancy")) wish.occupancy = given->text == "on";
    if (const auto given = find("two_heads")) wish.two_heads = given->text == "on";
    if (const auto given = find("pack_blocks")) wish.pack_blocks = given->text == "on";
    if (const auto given = find("batch_items")) wish.batch_items = given->text == "on";
    if (const auto given = find("threshold")) wish.threshold = threshold_of(given->text);
    if (const auto given = find("batch_links")) wish.batch_links = given->text == "on";
    if (const auto given = find("consumer_threads")) wish.consumer_threads = threads_of(given->text);
    if (const auto given = find("assume")) wish.assume_noalias = given->text == "noalias";
    read_promotion(wish);
    if (const auto* const a = annotation("pool"); a != nullptr && a->value != "auto") {
      wish.pool = *parse_number(a->value, 1, kMostBlocks);
    }
    if (const auto* const a = annotation("concurrency")) {
      wish.concurrency = *parse_number(a->value, 1, kMostBlocks);
    }
    if (const auto* const a = annotation("pool_bytes")) wish.pool_bytes = *parse_size(a->value);
    return wish;
  }

 private:
  void read_granularity(SiteWish& wish) {
    if (request_.setting) wish.granularity = Granularity::Auto;
    if (request_.granularity) {
      wish.granularity = request_.granularity(parent_);
    } else if (const auto given = find("granularity")) {
      wish.granularity = *analysis::parse_granularity(given->text);
      wish.notes.push_back(fmt::format("the {} asks for granularity {}", given->place, given->text));
    }
    if (!request_.sharing && wish.granularity == Granularity::Warp) wish.granularity = Granularity::None;
  }

  void read_launcher(SiteWish& wish) {
    if (request_.setting) wish.launcher = Launcher::Auto;
    if (request_.launcher) {
      wish.launcher = request_.launcher(parent_);
      wish.launcher_is_asked = true;
    } else if (const auto given = find("launcher")) {
      wish.launcher = *analysis::parse_launcher(given->text);
      wish.launcher_is_asked = true;
      wish.notes.push_back(fmt::format("the {} asks for launcher {}", given->place, given->text));
    }
  }

  void read_promotion(SiteWish& wish) {
    const auto given = find("promotion");
    if (!given) return;
    wish.promotion = given->text;
    wish.notes.push_back(fmt::format("the {} asks for promotion {}", given->place, given->text));
  }

  void read_buffer(SiteWish& wish) {
    const auto given = find("buffer");
    if (!given) return;
    wish.buffer = *parse_buffer(given->text);
    wish.notes.push_back(fmt::format("the {} asks for buffer {}", given->place, given->text));
  }

  [[nodiscard]] const Annotation* annotation(std::string_view key) const {
    const Annotation* const at_launch = launch_.find(key);
    return at_launch != nullptr ? at_launch : kernel_.find(key);
  }

  [[nodiscard]] std::optional<GivenValue> find(std::string_view key) const {
    if (auto given = given_setting(request_, key, parent_, child_)) return given;
    const Annotation* const a = annotation(key);
    if (a == nullptr) return std::nullopt;
    return GivenValue{a->value, fmt::format("annotation at {}", ptx::place(a->position))};
  }

  const Request& request_;
  const std::string& parent_;
  const std::string& child_;
  const Followed& kernel_;
  const Followed& launch_;
};

void add_hints(std::vector<ProgramHint>& hints, const analysis::FunctionFacts& parent,
               const std::string& unit) {
  const auto add = [&](const Followed& followed, const std::string& child) {
    for (const auto& [key, a] : followed.all()) {
      hints.push_back({parent.function.name, child, key, a->value, unit + ": " + ptx::place(a->position)});
    }
  };
  const analysis::Annotations annotations = analysis::find_annotations(parent);
  for (const analysis::Site& site : parent.sites) add(Followed(annotations.of(site), true), site.callee);
  add(Followed(annotations.kernel, false), "");
}

bool is_definite(const SiteWish& wish) {
  return wish.granularity != Granularity::None && wish.granularity != Granularity::Auto;
}

// The wish that all launches of the parent follow; null where nothing is to be done with any.
const SiteWish* ruling(std::span<const SiteWish> wishes) {
  const SiteWish* best = nullptr;
  for (const SiteWish& wish : wishes) {
    if (wish.granularity == Granularity::None) continue;
    if (is_definite(wish)) return &wish;
    if (best == nullptr || (best->launcher == Launcher::Auto && wish.launcher != Launcher::Auto))
      best = &wish;
  }
  return best;
}

void note_overruled(std::vector<SiteWish>& wishes, const analysis::FunctionFacts& parent) {
  const SiteWish* const first = ruling(wishes);
  if (first == nullptr) return;
  const auto& site = parent.sites[static_cast<size_t>(first - wishes.data())];
  const std::string rule =
      fmt::format("a kernel's launches all go one way, and the one at {} decides", ptx::place(site.position));
  for (SiteWish& wish : wishes) {
    const bool differs =
        wish.granularity != first->granularity ||
        (wish.granularity == Granularity::MultiBlock && wish.multiblock != first->multiblock);
    if (is_definite(wish) && differs) {
      wish.notes.push_back(fmt::format("granularity {} is ignored: {}", to_string(wish.granularity), rule));
    } else if (wish.granularity != Granularity::None && !analysis::is_for_device_only(first->granularity) &&
               wish.launcher_is_asked && wish.launcher != Launcher::Auto &&
               wish.launcher != first->launcher) {
      wish.notes.push_back(fmt::format("launcher {} is ignored: {}", to_string(wish.launcher), rule));
    }
  }
}

}  // namespace

std::vector<SiteWish> find_wishes(const Request& request, const analysis::FunctionFacts& parent) {
  const analysis::Annotations annotations = analysis::find_annotations(parent);
  const Followed of_kernel(annotations.kernel, false);
  std::vector<SiteWish> wishes;
  for (const analysis::Site& site : parent.sites) {
    const Followed of_launch(annotations.of(site), true);
    wishes.push_back(Reader(request, parent.function.name, site.callee, of_kernel, of_launch).read());
  }
  if (wishes.empty()) return wishes;
  // Of the kernel as a whole, so said once.
  std::vector<std::string>& notes = wishes.front().notes;
  notes.insert(notes.end(), of_kernel.ignored().begin(), of_kernel.ignored().end());
  for (const Annotation& a : annotations.stray) {
    notes.push_back(fmt::format("annotation {} at {} is ignored: no launch follows it", a.text(),
                                ptx::place(a.position)));
  }
  note_overruled(wishes, parent);
  return wishes;
}

namespace {

std::vector<Way> ways_of(const Request& request, std::span<const SiteWish> wishes) {
  const SiteWish* const wish = ruling(wishes);
  if (wish == nullptr) return {Way{Granularity::None, Launcher::Host}};
  const Way warp{Granularity::Warp, Launcher::Device};
  Way way{wish->granularity, wish->launcher};
  if (way.granularity == Granularity::Warp) return {warp};
  if (way.granularity == Granularity::Block) way.group_blocks = 1;
  if (way.granularity == Granularity::MultiBlock) way.group_blocks = wish->multiblock;
  if (analysis::is_for_device_only(way.granularity)) {
    way.launcher = Launcher::Device;
    return {way};
  }
  std::vector<Way> ways;
  for (const Launcher launcher : {Launcher::Host, Launcher::Device}) {
    if (way.launcher == Launcher::Auto || way.launcher == launcher)
      ways.push_back({Granularity::Grid, launcher});
  }
  if (way.granularity == Granularity::Auto && request.sharing) ways.push_back(warp);
  return ways;
}

}  // namespace

std::vector<Way> wished_ways(const Request& request, std::span<const SiteWish> wishes) {
  std::vector<Way> ways = ways_of(request, wishes);
  const auto any = [&](analysis::Ordering ordering) {
    return std::ranges::any_of(wishes, [&](const SiteWish& wish) { return wish.ordering == ordering; });
  };
  using enum analysis::Ordering;
  for (Way& way : ways) way.ordering = any(Stream) ? Stream : any(Auto) ? Auto : Relaxed;
  return ways;
}

std::vector<ProgramHint> program_hints(const Program& program, uint32_t sm) {
  std::vector<ProgramHint> hints;
  for (const Unit& unit : program.units) {
    if (!unit.launches) continue;
    ParsedUnit parsed(unit, sm);
    const ptx::Module* const module = parsed.module();
    if (module == nullptr) continue;
    const analysis::LaunchNames names = analysis::launch_names(*module);
    for (const ptx::Function& f : module->functions) {
      if (!f.is_definition || !analysis::may_launch(*module, f, names)) continue;
      add_hints(hints, analysis::FunctionFacts(*module, f), unit.name);
    }
  }
  return hints;
}

}  // namespace klap::jit
