#include "analysis/counts/launch_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/facts/launch_shape.h"
#include "analysis/facts/stream_ownership.h"
#include "analysis/values/loop_bounds.h"

namespace klap::analysis {
namespace {

constexpr const char* kCreated = "created";
constexpr const char* kUnknown = "unknown";

// Why launches of the kernel's threads may stand where they cannot be seen.
std::optional<std::string> hidden_launches(const FunctionFacts& kernel) {
  if (kernel.flow.has_unknown_branch()) return "a branch whose targets are not known";
  for (const Site& site : kernel.sites) {
    if (site.get_call == nullptr) return site.problem;
  }
  const CallGraph graph(kernel.module, kernel.function);
  for (const Effect& effect : graph.closure(kernel.function).all()) {
    using enum EffectKind;
    const bool launches = effect.kind == DeviceRuntime && effect.function != &kernel.function &&
                          (idioms().is_get_buffer(effect.what) || idioms().by_launch(effect.what) != nullptr);
    if (launches) return fmt::format("{}, called by it, launches", effect.function->name);
    if (effect.kind == UnknownCall || effect.kind == IndirectCall)
      return fmt::format("{} ({})", to_string(effect.kind), effect.what);
  }
  return std::nullopt;
}

std::string stream_name(const FunctionFacts& kernel, const Site& site) {
  switch (stream_kind(site)) {
    case StreamKind::Null:
      return "NULL";
    case StreamKind::PerThread:
      return "per-thread";
    case StreamKind::FireAndForget:
      return "fire-and-forget";
    case StreamKind::Private:
      return kCreated;
    case StreamKind::Tail:
      return "tail";
    case StreamKind::Other:
      break;
  }
  return owns_stream(kernel, site.stream).answer == Answer::Yes ? kCreated : kUnknown;
}

}  // namespace

std::string to_text(const LaunchCount& count) {
  if (count.unknown) return "unknown: " + count.detail;
  if (count.most == LaunchCount::kUnbounded) return "unbounded: " + count.detail;
  if (count.most == 0) return "never";
  return count.most == 1 ? "once" : fmt::format("at most {}", count.most);
}

LaunchCount count_runs(const FunctionFacts& kernel, const std::vector<uint32_t>& instructions) {
  LaunchCount out;
  if (kernel.flow.has_unknown_branch()) {
    out.unknown = true;
    out.detail = "a branch whose targets are not known";
    return out;
  }
  std::vector<uint32_t> weights(kernel.flow.blocks().size());
  for (uint32_t i : instructions) ++weights[kernel.flow.instructions()[i].block];
  out.most = most_runs(kernel.module, kernel.flow, kernel.data, weights);
  if (out.most != LaunchCount::kUnbounded) return out;
  for (uint32_t i : instructions) {
    if (!kernel.flow.in_loop(i)) continue;
    const ptx::Statement& s = *kernel.flow.instructions()[i].statement;
    out.detail = fmt::format("in a loop ({})", kernel.module.place(s.head));
    break;
  }
  return out;
}

std::vector<StreamLaunches> launches_by_stream(const FunctionFacts& kernel) {
  std::vector<StreamLaunches> out;
  for (const Site& site : kernel.sites) {
    const std::string name = stream_name(kernel, site);
    auto entry = std::find_if(out.begin(), out.end(), [&](const auto& e) { return e.stream == name; });
    if (entry == out.end()) entry = out.insert(out.end(), StreamLaunches{name, {}, {}});
    entry->sites.push_back(&site);
  }
  const auto hidden = hidden_launches(kernel);
  for (StreamLaunches& entry : out) {
    if (hidden) {
      entry.count = {0, true, *hidden};
      continue;
    }
    std::vector<uint32_t> instructions;
    for (const StreamLaunches& other : out) {
      const bool same = &other == &entry || other.stream == kUnknown || entry.stream == kUnknown;
      for (const Site* site : same ? other.sites : std::vector<const Site*>())
        instructions.push_back(kernel.flow.index_of(site->get_call));
    }
    entry.count = count_runs(kernel, instructions);
  }
  return out;
}

std::string print_launch_counts(const FunctionFacts& kernel) {
  std::string out;
  for (const StreamLaunches& entry : launches_by_stream(kernel)) {
    out += fmt::format("launches of one thread into stream {}: {}\n", entry.stream, to_text(entry.count));
  }
  return out;
}

}  // namespace klap::analysis
