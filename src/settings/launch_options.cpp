#include "settings/launch_options.h"

#include <fmt/format.h>

#include "settings/table.h"

namespace klap::settings {
namespace {

std::optional<uint32_t> threshold_of(const std::string& text) {
  if (text == "off") return std::nullopt;
  return text == "auto" ? kDefaultThreshold : *parse_number(text, 0, kMostThreads);
}

std::optional<uint32_t> unroll_of(const std::string& text) {
  if (text == "auto") return std::nullopt;
  return text == "off" ? 1 : *parse_number(text, 1, kMostThreads);
}

std::string number_text(const std::optional<uint32_t>& number) {
  return number ? std::to_string(*number) : "none";
}

}  // namespace

LaunchOptions launch_options(const Ask& ask) {
  LaunchOptions out;
  const auto read = [&](std::string_view key, auto&& take) {
    if (const auto given = ask(key)) take(given->text);
  };
  const auto read_switch = [&](std::string_view key, bool& value) {
    read(key, [&](const std::string& text) { value = text == "on"; });
  };
  read("granularity", [&](auto& text) { out.granularity = *analysis::parse_granularity(text); });
  read("launcher", [&](auto& text) { out.launcher = *analysis::parse_launcher(text); });
  read("multiblock", [&](auto& text) { out.multiblock = *parse_count(text); });
  read("ordering", [&](auto& text) { out.ordering = *analysis::parse_ordering(text); });
  read("consumer_threads", [&](auto& text) { out.consumer_threads = *parse_threads(text); });
  read("threshold", [&](auto& text) { out.threshold = threshold_of(text); });
  read("promotion", [&](auto& text) { out.promotion = text; });
  read("assume", [&](auto& text) { out.assume_noalias = text == "noalias"; });
  read("buffer", [&](auto& text) { out.buffer = text == "malloc" ? Buffer::Malloc : Buffer::Pool; });
  read_switch("double_buffer", out.double_buffer);
  read_switch("pack_records", out.pack_records);
  read_switch("flatten", out.flatten);
  read("split_iterations", [&](auto& text) {
    out.split_iterations = text != "off";
    out.split_all_iterations = text == "all";
  });
  read_switch("preload_arguments", out.preload_arguments);
  read("unroll", [&](auto& text) { out.unroll = unroll_of(text); });
  read_switch("occupancy", out.occupancy);
  read_switch("pack_blocks", out.pack_blocks);
  read_switch("batch_items", out.batch_items);
  read_switch("batch_links", out.batch_links);
  return out;
}

std::string canonical_text(const LaunchOptions& options) {
  const auto& [granularity, launcher, multiblock, ordering, consumer_threads, threshold, promotion, noalias,
               buffer, double_buffer, pack_records, flatten, split_iterations, split_all_iterations,
               preload_arguments, unroll, occupancy, pack_blocks, batch_items, batch_links] = options;
  return fmt::format("granularity {} {} launcher {} ordering {} ", to_string(granularity), multiblock,
                     to_string(launcher), to_string(ordering)) +
         fmt::format("threads {} threshold {} promotion {} noalias {} buffer {} ", consumer_threads,
                     number_text(threshold), promotion, noalias, static_cast<int>(buffer)) +
         fmt::format("double_buffer {} pack_records {} flatten {} split_iterations {} {} ", double_buffer,
                     pack_records, flatten, split_iterations, split_all_iterations) +
         fmt::format(
             "preload_arguments {} unroll {} occupancy {} pack_blocks {} batch_items {} batch_links {}",
             preload_arguments, number_text(unroll), occupancy, pack_blocks, batch_items, batch_links);
}

}  // namespace klap::settings
