#include "jit/plan/find_site_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/legality/annotations.h"
#include "jit/planned/parsed_unit.h"
#include "settings/config.h"
#include "settings/table.h"
#include "settings/values.h"

namespace klap::jit {
namespace {

using analysis::Aggregation;
using analysis::Annotation;

// The rows of what can be annotated; null for other keys.
const settings::Setting* find_hint(std::string_view key) {
  const settings::Setting* const found = settings::find_key(settings::Section::Kernel, key);
  return found != nullptr && found->hint != settings::Hint::None ? found : nullptr;
}

// A program cannot ask for what is only compared with, nor for a queue without memory.
bool takes(const settings::Setting& row, const std::string& value) {
  return settings::is_valid(row, value) && value != settings::kHostReadback &&
         (row.key != "pool_bytes" || settings::parse_size(value) != 0);
}

// "none, warp or grid", "a number from 2 on".
std::string values_of(const settings::Setting& row) {
  std::vector<std::string_view> choices;
  std::ranges::copy_if(row.choices, std::back_inserter(choices),
                       [](std::string_view choice) { return choice != settings::kHostReadback; });
  if (choices.empty()) return settings::describe_values(row);
  const std::string_view last = choices.back();
  choices.pop_back();
  return fmt::format("{} or {}", fmt::join(choices, ", "), last);
}

// The annotations of a list that are followed, the first of each key, and why the others are ignored.
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
    const settings::Setting* const row = find_hint(a.key);
    if (row == nullptr) return ignore(a, "there is no such key");
    if (at_launch && row->hint != settings::Hint::Launch)
      return ignore(a, "it is for all launches of a kernel");
    if (!takes(*row, a.value)) return ignore(a, fmt::format("{} is {}", a.key, values_of(*row)));
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

  SiteOptions read() {
    SiteOptions out;
    static_cast<settings::LaunchOptions&>(out) =
        settings::launch_options([this](std::string_view key) { return find(key); });
    out.notes = launch_.ignored();
    for (const std::string_view key : {"granularity", "launcher", "buffer", "promotion"}) {
      const auto given = find(key);
      if (given && !given->place.empty())
        out.notes.push_back(fmt::format("the {} asks for {} {}", given->place, key, given->text));
    }
    out.launcher_is_asked = find("launcher").has_value();
    if (request_.setting) {
      if (!find("granularity")) out.granularity = Granularity::Auto;
      if (!out.launcher_is_asked) out.launcher = Launcher::Auto;
    }
    if (!request_.warp_aggregation && out.granularity == Granularity::Warp)
      out.granularity = Granularity::None;
    if (const auto* const a = annotation("pool")) out.pool = *settings::parse_blocks(a->value);
    if (const auto* const a = annotation("concurrency")) out.concurrency = *settings::parse_share(a->value);
    if (const auto* const a = annotation("pool_bytes")) out.pool_bytes = *settings::parse_size(a->value);
    return out;
  }

 private:
  [[nodiscard]] const Annotation* annotation(std::string_view key) const {
    const Annotation* const at_launch = launch_.find(key);
    return at_launch != nullptr ? at_launch : kernel_.find(key);
  }

  [[nodiscard]] std::optional<settings::Given> find(std::string_view key) const {
    if (request_.setting) {
      if (auto given = request_.setting(key, parent_, child_)) return given;
    }
    const Annotation* const a = annotation(key);
    if (a == nullptr) return std::nullopt;
    return settings::Given{a->value, fmt::format("annotation at {}", ptx::place(a->position))};
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

bool is_definite(const SiteOptions& option) {
  return option.granularity != Granularity::None && option.granularity != Granularity::Auto;
}

// The option that all launches of the parent follow; null where nothing is to be done with any.
const SiteOptions* ruling(std::span<const SiteOptions> options) {
  const SiteOptions* best = nullptr;
  for (const SiteOptions& option : options) {
    if (option.granularity == Granularity::None) continue;
    if (is_definite(option)) return &option;
    if (best == nullptr || (best->launcher == Launcher::Auto && option.launcher != Launcher::Auto))
      best = &option;
  }
  return best;
}

void note_overruled(std::vector<SiteOptions>& options, const analysis::FunctionFacts& parent) {
  const SiteOptions* const first = ruling(options);
  if (first == nullptr) return;
  const auto& site = parent.sites[static_cast<size_t>(first - options.data())];
  const std::string rule = fmt::format("a kernel's launches all use one strategy, and the one at {} decides",
                                       ptx::place(site.position));
  for (SiteOptions& option : options) {
    const bool differs =
        option.granularity != first->granularity ||
        (option.granularity == Granularity::MultiBlock && option.multiblock != first->multiblock);
    if (is_definite(option) && differs) {
      option.notes.push_back(
          fmt::format("granularity {} is ignored: {}", to_string(option.granularity), rule));
    } else if (option.granularity != Granularity::None && !analysis::is_for_device_only(first->granularity) &&
               option.launcher_is_asked && option.launcher != Launcher::Auto &&
               option.launcher != first->launcher) {
      option.notes.push_back(fmt::format("launcher {} is ignored: {}", to_string(option.launcher), rule));
    }
  }
}

}  // namespace

std::vector<SiteOptions> find_site_options(const Request& request, const analysis::FunctionFacts& parent) {
  const analysis::Annotations annotations = analysis::find_annotations(parent);
  const Followed of_kernel(annotations.kernel, false);
  std::vector<SiteOptions> options;
  for (const analysis::Site& site : parent.sites) {
    const Followed of_launch(annotations.of(site), true);
    options.push_back(Reader(request, parent.function.name, site.callee, of_kernel, of_launch).read());
  }
  if (options.empty()) return options;
  // Notes about the whole kernel are added once.
  std::vector<std::string>& notes = options.front().notes;
  notes.insert(notes.end(), of_kernel.ignored().begin(), of_kernel.ignored().end());
  for (const Annotation& a : annotations.stray) {
    notes.push_back(fmt::format("annotation {} at {} is ignored: no launch follows it", a.text(),
                                ptx::place(a.position)));
  }
  note_overruled(options, parent);
  return options;
}

namespace {

std::vector<Aggregation> aggregations_of(const Request& request, std::span<const SiteOptions> options) {
  const SiteOptions* const option = ruling(options);
  if (option == nullptr) return {Aggregation{Granularity::None, Launcher::Host}};
  const Aggregation warp{Granularity::Warp, Launcher::Device};
  Aggregation aggregation{option->granularity, option->launcher};
  if (aggregation.granularity == Granularity::Warp) return {warp};
  if (aggregation.granularity == Granularity::Block) aggregation.group_blocks = 1;
  if (aggregation.granularity == Granularity::MultiBlock) aggregation.group_blocks = option->multiblock;
  if (analysis::is_for_device_only(aggregation.granularity)) {
    aggregation.launcher = Launcher::Device;
    return {aggregation};
  }
  std::vector<Aggregation> aggregations;
  for (const Launcher launcher : {Launcher::Host, Launcher::Device}) {
    if (aggregation.launcher == Launcher::Auto || aggregation.launcher == launcher)
      aggregations.push_back({Granularity::Grid, launcher});
  }
  if (aggregation.granularity == Granularity::Auto && request.warp_aggregation) aggregations.push_back(warp);
  return aggregations;
}

}  // namespace

std::vector<Aggregation> aggregations_asked_for(const Request& request,
                                                std::span<const SiteOptions> options) {
  std::vector<Aggregation> aggregations = aggregations_of(request, options);
  const auto any = [&](analysis::Ordering ordering) {
    return std::ranges::any_of(options,
                               [&](const SiteOptions& option) { return option.ordering == ordering; });
  };
  using enum analysis::Ordering;
  for (Aggregation& aggregation : aggregations)
    aggregation.ordering = any(Stream) ? Stream : any(Auto) ? Auto : Relaxed;
  return aggregations;
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
