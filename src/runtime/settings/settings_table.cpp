#include "runtime/settings/settings_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/settings/spelling.h"

namespace klap::runtime {

namespace {

using namespace std::string_view_literals;

constexpr std::array kBothSections{Section::Defaults, Section::Kernel};
constexpr std::array kKernelOnly{Section::Kernel};
constexpr std::array kDefaultsOnly{Section::Defaults};
constexpr std::array kGranularities{"none"sv, "warp"sv, "block"sv, "multiblock"sv, "grid"sv, "auto"sv};
constexpr std::array kLaunchers{"auto"sv, "host"sv, "device"sv, "host-readback"sv};
constexpr std::array kOrderings{"auto"sv, "stream"sv, "relaxed"sv};
constexpr std::array kBuffers{"pool"sv, "malloc"sv};
constexpr std::array kSwitch{"on"sv, "off"sv};
constexpr std::array kRounds{"on"sv, "off"sv, "all"sv};
constexpr std::array kUnrolls{"auto"sv, "off"sv, "2"sv, "4"sv, "8"sv};
constexpr std::array kMemories{"off"sv, "warp"sv};
constexpr std::array kPromotions{"auto"sv, "none"sv, "P"sv, "PA"sv, "PO"sv, "PAO"sv, "lookback"sv};
constexpr std::array kAssumptions{"none"sv, "noalias"sv};
constexpr std::array kLinkers{"auto"sv, "nvjitlink"sv, "driver"sv};
constexpr std::array kLogLevels{"trace"sv, "debug"sv, "info"sv, "warn"sv, "error"sv, "off"sv};

constexpr std::array kSettings{
    Setting{"KLAP_GRANULARITY", "granularity", kBothSections, SettingType::Choice, kGranularities, "auto",
            "Whose launches become one: a warp's, a block's, a few blocks' or the whole grid's; auto takes "
            "the grid "
            "where it can, else the warp."},
    Setting{"KLAP_LAUNCHER", "launcher", kBothSections, SettingType::Choice, kLaunchers, "auto",
            "Who starts the aggregated child of a grid: the host behind the parent, or its last thread. "
            "auto: the host where it may. host-readback: the host, which waits for the parent and reads "
            "back what it recorded first; slow and for comparison, it blocks the thread that launches."},
    Setting{"KLAP_MULTIBLOCK",
            "multiblock",
            kBothSections,
            SettingType::Count,
            {},
            "16",
            "Blocks of the parent whose launches become one at granularity multiblock."},
    Setting{
        "KLAP_ORDERING", "ordering", kBothSections, SettingType::Choice, kOrderings, "auto",
        "Whether launches of a block's threads into its NULL stream may overlap: where it is proven that "
        "their children never conflict (stream), also where blocks of the parent have the same conflicts in "
        "no order (auto), or always (relaxed). Order that matters is kept."},
    Setting{"KLAP_BUFFER", "buffer", kBothSections, SettingType::Choice, kBuffers, "pool",
            "Where the memory of record queues is from: kept in the stream for its next launches (pool), or "
            "allocated for each launch of a parent and freed behind its children (malloc)."},
    Setting{"KLAP_POOL_BYTES",
            "pool_bytes",
            kBothSections,
            SettingType::Size,
            {},
            "1G",
            "The most device memory one record queue may take; launches that need more run in parts, or as "
            "they are."},
    Setting{"KLAP_TOTAL_BYTES",
            "total_bytes",
            kDefaultsOnly,
            SettingType::Size,
            {},
            "no limit",
            "The most device memory that all queues of a CUDA context may take; launches that need more run "
            "in parts, or as they are."},
    Setting{
        "KLAP_CONCURRENCY",
        "concurrency",
        kBothSections,
        SettingType::Share,
        {},
        "1",
        "x leaves room for other kernels: a consumer that the host launches, and a promoted chain, has 1/x "
        "of the blocks that fill the device."},
    Setting{"KLAP_CONSUMER_THREADS",
            "consumer_threads",
            kBothSections,
            SettingType::Threads,
            {},
            "auto",
            "Threads of a consumer's block, where it runs several blocks of children: a multiple of theirs. "
            "auto: about 256."},
    Setting{"KLAP_DEPENDENT_LAUNCH", "dependent_launch", kBothSections, SettingType::Choice, kSwitch, "on",
            "Whether a consumer that the host launches may get ready while its parent ends (programmatic "
            "dependent launch, sm_90 and later), or is started when the parent is complete."},
    Setting{
        "KLAP_TWO_HEADS", "two_heads", kBothSections, SettingType::Choice, kSwitch, "on",
        "Whether the counters of record queues, and the rings of promoted chains, are there twice, for "
        "launches of a parent in turn, so that nobody has to wait for the last block to make them ready."},
    Setting{
        "KLAP_PACK_RECORDS", "pack_records", kBothSections, SettingType::Choice, kSwitch, "on",
        "Whether what is recorded for a child leaves out constant grid dimensions, arguments that the child "
        "never reads, and those that are the same for all children, which are passed once."},
    Setting{
        "KLAP_FLATTEN", "flatten", kBothSections, SettingType::Choice, kSwitch, "on",
        "Whether the consumer that the host launches numbers the threads of all children through, and of "
        "those "
        "that begin with a comparison of their index only the threads that pass it, so that the threads of "
        "several children share a warp."},
    Setting{
        "KLAP_SPLIT_ROUNDS", "split_rounds", kBothSections, SettingType::Choice, kRounds, "on",
        "Whether children that walk over their data in one grid-stride loop are flattened, too, and are "
        "recorded with more threads where each would have about 32 rounds or more and it makes no difference "
        "which thread has which: each then has 8. all: each has one, however few there are."},
    Setting{"KLAP_HOLD_ARGUMENTS", "hold_arguments", kBothSections, SettingType::Choice, kSwitch, "off",
            "Whether a consumer that the host launches reads a child's first arguments once for all of its "
            "blocks "
            "or threads that run one after another, and keeps them in registers."},
    Setting{
        "KLAP_UNROLL", "unroll", kBothSections, SettingType::Choice, kUnrolls, "auto",
        "How many rounds of a child's loop stand in a row in a consumer that the host launches, where the "
        "loop only loads and computes and the program did not say that it is not to be unrolled: a thread "
        "waits for their loads together. auto: 4, fewer of a round with more than 12 loads."},
    Setting{"KLAP_OCCUPANCY", "occupancy", kBothSections, SettingType::Choice, kSwitch, "on",
            "Whether what waits for memory most of the time is assembled for more blocks on a multiprocessor "
            "than the assembler would choose: consumers that feed themselves, those of children of few "
            "registers, and chains that look back."},
    Setting{
        "KLAP_PACK_BLOCKS", "pack_blocks", kBothSections, SettingType::Choice, kSwitch, "on",
        "Whether children of one warp that share memory or meet at barriers run several to a block of the "
        "consumer that the host launches, as others do."},
    Setting{
        "KLAP_BATCH_ITEMS", "batch_items", kBothSections, SettingType::Choice, kSwitch, "on",
        "Whether the blocks of a consumer that feeds itself take several pieces of work at a time where more "
        "are waiting than there are blocks."},
    Setting{"KLAP_THRESHOLD",
            "threshold",
            kBothSections,
            SettingType::Threshold,
            {},
            "auto",
            "Children of up to so many threads are run by the thread that launches them instead of being "
            "recorded, where their code allows it; with 0 only children of no threads are not recorded, with "
            "off all are. Threads that fail the comparison with which a child begins do not count. auto: 0."},
    Setting{
        "KLAP_AGGREGATE_MALLOC", "aggregate_malloc", kDefaultsOnly, SettingType::Choice, kMemories, "off",
        "Whether the lanes of a warp that call malloc (cudaMalloc) in a kernel share one allocation. Only "
        "for programs that free such memory in the module that took it."},
    Setting{
        "KLAP_PROMOTION", "promotion", kBothSections, SettingType::Choice, kPromotions, "auto",
        "What becomes of a kernel of one block that launches itself (a chain): blocks that stay and hand "
        "on its arguments (PA), the beginning of each link overlapping those before it (PAO), the "
        "arguments combined over many links at once (lookback). A mode that a chain does not allow gives "
        "way to the one before it; auto: the last one. P and PO are PA and PAO with a device launch for each "
        "link's block but the second's, made as soon as the link is known to exist."},
    Setting{"KLAP_BATCH_LINKS", "batch_links", kBothSections, SettingType::Choice, kSwitch, "on",
            "Whether the blocks of a chain that looks back take several links at a time, once each block has "
            "had one, and wait for earlier links once for all of them."},
    Setting{"KLAP_POOL",
            "pool",
            kBothSections,
            SettingType::Blocks,
            {},
            "auto",
            "Blocks of a promoted chain; with P and PO, how many links may have blocks at a time. auto: 8 "
            "with PA, up to 64 with P and PO, else as many as fill the device."},
    Setting{"KLAP_ASSUME", "assume", kBothSections, SettingType::Choice, kAssumptions, "none",
            "What may be taken for granted about a chain: noalias is that the beginning of a link reads "
            "nothing that earlier links write before their launch."},
    Setting{"",
            "child",
            kKernelOnly,
            SettingType::Glob,
            {},
            "every child",
            "Only launches of these kernels: a glob as for name."},
    Setting{"",
            "name",
            kKernelOnly,
            SettingType::Glob,
            {},
            "required",
            "Parent kernels the table is for: a glob (* and ?) over the whole mangled or demangled name."},
    Setting{"KLAP_CONFIG", "", {}, SettingType::Path, {}, "unset", "The config file (TOML)."},
    Setting{"KLAP_LOG",
            "",
            {},
            SettingType::Choice,
            kLogLevels,
            "warn",
            "How much is logged: from this level up. info has a line for every launch site."},
    Setting{"KLAP_LOG_FILE",
            "",
            {},
            SettingType::Path,
            {},
            "standard error",
            "File the log is appended to instead; %p is the process id."},
    Setting{"KLAP_DISABLE", "", {}, SettingType::Boolean, {}, "0", "1 leaves the program entirely as it is."},
    Setting{"KLAP_CACHE_DIR",
            "",
            {},
            SettingType::Path,
            {},
            "$XDG_CACHE_HOME/klap, else ~/.cache/klap",
            "Folder that keeps rewritten modules; no one else may write to it."},
    Setting{"KLAP_CACHE_MAX_SIZE",
            "",
            {},
            SettingType::Size,
            {},
            "1G",
            "What the folder may hold; the modules used longest ago go first."},
    Setting{"KLAP_CACHE_DISABLE", "", {}, SettingType::Boolean, {}, "0", "1 compiles anew in every process."},
    Setting{"KLAP_DUMP_DIR",
            "",
            {},
            SettingType::Path,
            {},
            "unset",
            "Folder that receives every stage of every module as files; the cache is then not used."},
    Setting{"KLAP_LINKER",
            "",
            {},
            SettingType::Choice,
            kLinkers,
            "auto",
            "What links the rewritten code: nvJitLink, or the driver where nvJitLink is missing (auto)."},
    Setting{"KLAP_DEVICE_RUNTIME",
            "",
            {},
            SettingType::Boolean,
            {},
            "1",
            "0 links the rewritten code without CUDA's device runtime, for tools that take no module with it "
            "(compute-sanitizer's racecheck): a launch that is left then ends its kernel with an error."},
    Setting{"KLAP_STATS",
            "",
            {},
            SettingType::Path,
            {},
            "unset",
            "File that receives statistics as JSON at exit; - is standard error, %p the process id."},
    Setting{"KLAP_COUNT_CHILDREN",
            "",
            {},
            SettingType::Boolean,
            {},
            "1",
            "0 leaves out of the statistics how many children and links ran: kernels count them, which takes "
            "up to a microsecond of a parent's launch."},
    Setting{"KLAP_TIMING",
            "",
            {},
            SettingType::Boolean,
            {},
            "0",
            "1 adds to the statistics how long parents and their consumers take on the GPU; slows launches."},
};

// As many blocks as a grid that is aggregated can have.
constexpr uint32_t kLargestCount = (1U << 24) - 1;
constexpr uint32_t kLargestBlock = 1024;

std::string places(const Setting& setting) {
  std::vector<std::string> names;
  if (!setting.variable.empty()) names.emplace_back(setting.variable);
  for (const Section section : setting.sections) {
    names.push_back(fmt::format("{} {}", to_string(section), setting.key));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool is_valid(const Setting& setting, std::string_view value) {
  switch (setting.type) {
    case SettingType::Choice:
      return std::ranges::count(setting.choices, value) != 0;
    case SettingType::Boolean:
      return parse_boolean(value).has_value();
    case SettingType::Size:
      return parse_size(value).has_value();
    case SettingType::Count:
      return parse_count(value).has_value();
    case SettingType::Share:
      return parse_share(value).has_value();
    case SettingType::Threads:
      return parse_threads(value).has_value();
    case SettingType::Blocks:
      return parse_blocks(value).has_value();
    case SettingType::Threshold:
      return is_threshold(value);
    case SettingType::Path:
    case SettingType::Glob:
      return !value.empty();
  }
  return false;
}

}  // namespace

const char* to_string(Section section) { return section == Section::Defaults ? "[defaults]" : "[[kernel]]"; }

std::span<const Setting> settings() { return kSettings; }

const Setting* find_variable(std::string_view variable) {
  const auto* const found = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& setting) {
    return !setting.variable.empty() && setting.variable == variable;
  });
  return found == kSettings.end() ? nullptr : found;
}

const Setting* find_key(Section section, std::string_view key) {
  const auto* const found = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& setting) {
    return setting.key == key && std::ranges::count(setting.sections, section) != 0;
  });
  return found == kSettings.end() ? nullptr : found;
}

std::vector<std::string_view> variables() {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) {
    if (!setting.variable.empty()) names.push_back(setting.variable);
  }
  return names;
}

std::vector<std::string_view> keys(Section section) {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) {
    if (std::ranges::count(setting.sections, section) != 0) names.push_back(setting.key);
  }
  return names;
}

std::string describe_values(const Setting& setting) {
  switch (setting.type) {
    case SettingType::Choice:
      return fmt::format("{}", fmt::join(setting.choices, " | "));
    case SettingType::Boolean:
      return "0 | 1";
    case SettingType::Path:
      return "path";
    case SettingType::Glob:
      return "glob";
    case SettingType::Size:
      return "bytes, as 4096, 64M or 1G";
    case SettingType::Count:
      return "a number from 2 on";
    case SettingType::Share:
      return "a number from 1 on";
    case SettingType::Threads:
      return "auto, or a number up to 1024";
    case SettingType::Blocks:
      return "auto, or a number from 1 on";
    case SettingType::Threshold:
      return "auto, off, or a number up to 1024";
  }
  return "";
}

bool is_threshold(std::string_view text) {
  return text == "auto" || text == "off" || parse_number(text, 0, kLargestBlock).has_value();
}

std::optional<bool> parse_boolean(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "1" || lower == "true" || lower == "yes" || lower == "on") return true;
  if (lower == "0" || lower == "false" || lower == "no" || lower == "off") return false;
  return std::nullopt;
}

std::optional<uint32_t> parse_count(std::string_view text) { return parse_number(text, 2, kLargestCount); }

std::optional<uint32_t> parse_share(std::string_view text) { return parse_number(text, 1, kLargestCount); }

std::optional<uint32_t> parse_threads(std::string_view text) {
  return text == "auto" ? std::optional(0u) : parse_number(text, 1, kLargestBlock);
}

std::optional<uint32_t> parse_blocks(std::string_view text) {
  return text == "auto" ? std::optional(0u) : parse_share(text);
}

std::optional<Error> check_value(const Setting& setting, std::string_view name, std::string_view value) {
  if (is_valid(setting, value)) return std::nullopt;
  std::string hint = fmt::format("use {}", describe_values(setting));
  const std::vector<std::string_view> choices(setting.choices.begin(), setting.choices.end());
  if (const auto near = nearest(value, choices)) hint = fmt::format("did you mean '{}'? {}", *near, hint);
  return Error(ErrorCode::Config, fmt::format("{} cannot be '{}'", name, value)).fix(hint);
}

std::string settings_text() {
  std::string text;
  for (const Setting& setting : kSettings) {
    text += fmt::format("{}\n    {}\n    Values: {}; default: {}\n", places(setting), setting.documentation,
                        describe_values(setting), setting.default_value);
  }
  return text;
}

std::string settings_markdown() {
  // A bar inside a cell would end the cell.
  const auto cell = [](std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  std::string text =
      "| Environment | Config file | Values | Default | Meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : kSettings) {
    std::vector<std::string> keys_in_file;
    for (const Section section : setting.sections) {
      keys_in_file.push_back(fmt::format("`{} {}`", to_string(section), setting.key));
    }
    const std::string variable = setting.variable.empty() ? "" : fmt::format("`{}`", setting.variable);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", variable, fmt::join(keys_in_file, ", "),
                        cell(describe_values(setting)), setting.default_value, setting.documentation);
  }
  return text;
}

}  // namespace klap::runtime
