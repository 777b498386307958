#include "settings/launch_options.h"

#include <fmt/format.h>

#include "settings/table.h"
#include "settings/values.h"
#include "support/error.h"

namespace klap::settings {
namespace {

std::optional<uint32_t> threshold_of(const std::string& text) {
  if (text == "off") return std::nullopt;
  return text == "auto" ? kDefaultThreshold : *parse_number(text, 0, kMostThreads);
}

std::string number_text(const std::optional<uint32_t>& number) {
  return number ? std::to_string(*number) : "none";
}

}  // namespace

OptimisationValues::OptimisationValues() {
  for (const std::string_view name : optimisations())
    values_.emplace(name, find_optimisation(name)->default_value);
}

const std::string& OptimisationValues::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw Error(ErrorCode::Internal, fmt::format("no optimisation is called {}", name));
  return found->second;
}

void OptimisationValues::set(std::string_view name, std::string value) {
  values_.insert_or_assign(std::string(name), std::move(value));
}

std::string OptimisationValues::text() const {
  std::string text;
  for (const auto& [name, value] : values_)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

LaunchOptions launch_options(const Ask& ask) {
  LaunchOptions out;
  const auto read = [&](std::string_view key, auto&& take) {
    if (const auto given = ask(key)) take(given->text);
  };
  read("granularity", [&](auto& text) { out.granularity = *analysis::parse_granularity(text); });
  read("launcher", [&](auto& text) {
    out.fused = text == kFused;
    out.launcher = out.fused ? analysis::Launcher::Auto : *analysis::parse_launcher(text);
  });
  read("multiblock", [&](auto& text) { out.multiblock = *parse_count(text); });
  read("ordering", [&](auto& text) { out.ordering = *analysis::parse_ordering(text); });
  read("consumer_threads", [&](auto& text) { out.consumer_threads = *parse_threads(text); });
  read("threshold", [&](auto& text) { out.threshold = threshold_of(text); });
  read("promotion", [&](auto& text) { out.promotion = text; });
  read("assume", [&](auto& text) {
    out.assume_noalias = text == "noalias" || text == "all";
    out.assume_reassociate = text == "reassociate" || text == "all";
  });
  read("buffer", [&](auto& text) { out.buffer = text == "malloc" ? Buffer::Malloc : Buffer::Pool; });
  for (const std::string_view name : optimisations())
    read(name, [&](auto& text) { out.optimisations.set(name, text); });
  return out;
}

std::string canonical_text(const LaunchOptions& options) {
  const auto& [granularity, launcher, fused, multiblock, ordering, consumer_threads, threshold, promotion,
               noalias, reassociate, buffer, switches] = options;
  return fmt::format("granularity {} {} launcher {} {} ordering {} ", to_string(granularity), multiblock,
                     to_string(launcher), fused, to_string(ordering)) +
         fmt::format("threads {} threshold {} promotion {} noalias {} reassociate {} buffer {} ",
                     consumer_threads, number_text(threshold), promotion, noalias, reassociate,
                     static_cast<int>(buffer)) +
         switches.text();
}

}  // namespace klap::settings
