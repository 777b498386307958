#include "settings/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "settings/spelling.h"
#include "settings/values.h"

namespace klap::settings {

namespace {

using namespace std::string_view_literals;

constexpr std::array kBothSections{Section::Defaults, Section::Kernel};
constexpr std::array kKernelOnly{Section::Kernel};
constexpr std::array kDefaultsOnly{Section::Defaults};
constexpr std::array kGranularities{"none"sv, "warp"sv, "block"sv, "multiblock"sv, "grid"sv, "auto"sv};
constexpr std::array kLaunchers{"auto"sv, "host"sv, "device"sv, "fused"sv, "host-readback"sv};
constexpr std::array kOrderings{"auto"sv, "stream"sv, "relaxed"sv};
constexpr std::array kBuffers{"pool"sv, "malloc"sv};
constexpr std::array kSwitch{"on"sv, "off"sv};
constexpr std::array kSwitchOrAuto{"auto"sv, "on"sv, "off"sv};
constexpr std::array kSwitchOrAll{"on"sv, "off"sv, "all"sv};
constexpr std::array kUnrolls{"auto"sv, "off"sv, "2"sv, "4"sv, "8"sv};
constexpr std::array kParts{"auto"sv, "32"sv, "64"sv, "128"sv, "256"sv, "512"sv, "1024"sv};
constexpr std::array kMemories{"off"sv, "warp"sv, "chunks"sv};
constexpr std::array kPromotions{"auto"sv, "none"sv, "P"sv, "PA"sv, "PO"sv, "PAO"sv, "lookback"sv};
constexpr std::array kAssumptions{"none"sv, "noalias"sv, "reassociate"sv, "all"sv};
constexpr std::array kLinkers{"auto"sv, "nvjitlink"sv, "driver"sv};
constexpr std::array kTunes{"on"sv, "off"sv, "sizes"sv, "1"sv, "0"sv};
constexpr std::array kGuards{"off"sv, "process"sv, "on"sv, "original"sv};
constexpr std::array kLogLevels{"trace"sv, "debug"sv, "info"sv, "warn"sv, "error"sv, "off"sv};

constexpr std::array kTable{
    Setting{Kind::User, "KLAP_GRANULARITY", "granularity", kBothSections, SettingType::Choice, kGranularities,
            "auto",
            "The launches of a warp, a block, a few blocks or the whole grid become one. auto takes the grid "
            "where it can, else the warp.",
            Hint::Launch},
    Setting{
        Kind::User, "KLAP_LAUNCHER", "launcher", kBothSections, SettingType::Choice, kLaunchers, "auto",
        "Who starts the aggregated child of a grid: the host behind the parent, or the last thread of "
        "the parent. auto takes the host where it may, and the parent's own kernel where launches have few "
        "children. fused is auto, but that kernel runs all children where it can. With host-readback the "
        "host waits for the parent and "
        "reads back what it recorded; that blocks the launching thread and is only for comparison.",
        Hint::Launch},
    Setting{
        Kind::User, "KLAP_ORDERING", "ordering", kBothSections, SettingType::Choice, kOrderings, "auto",
        "Which launches of a block's threads into its NULL stream may overlap. stream: those whose children "
        "are proven never to conflict. auto: also those whose conflicts the program already has, in no "
        "order, between blocks of the parent. relaxed: all. All other launches keep their order.",
        Hint::Launch},
    Setting{
        Kind::User,
        "KLAP_THRESHOLD",
        "threshold",
        kBothSections,
        SettingType::Threshold,
        {},
        "auto",
        "A child of at most so many threads is run by the thread that launches it, where its code allows "
        "that; above 8 the lanes of its warp that launch together share their children's threads. With 0 "
        "only children without threads are not recorded; with off all are recorded. Threads that fail the "
        "comparison at the start of a child do not count. auto: 0."},
    Setting{Kind::User, "KLAP_PROMOTION", "promotion", kBothSections, SettingType::Choice, kPromotions,
            "auto",
            "What becomes of a chain, that is a kernel of one block that launches itself. PA: resident "
            "blocks pass on its arguments. PAO: the beginning of each link also overlaps the links before "
            "it. lookback: the arguments are combined over many links at once. A mode that a chain does not "
            "allow gives way to the one before it; auto takes the last one. P and PO are PA and PAO with a "
            "device launch for each link but the second.",
            Hint::Launch},
    Setting{
        Kind::User, "KLAP_ASSUME", "assume", kBothSections, SettingType::Choice, kAssumptions, "none",
        "What klap_jit may assume. noalias: the beginning of a link of a chain reads nothing that earlier "
        "links write before their launch. reassociate: floating-point numbers may be added in another "
        "order, which changes the last bits of their sum. all: both.",
        Hint::Launch},
    Setting{
        Kind::User, "KLAP_AGGREGATE_MALLOC", "aggregate_malloc", kDefaultsOnly, SettingType::Choice,
        kMemories, "off",
        "Whether the lanes of a warp that call malloc (cudaMalloc) in a kernel share one allocation (warp), "
        "or a piece of a larger one that several multiprocessors share (chunks). Only for programs that free "
        "such memory in the module that allocated it."},
    Setting{Kind::User,
            "KLAP_POOL_BYTES",
            "pool_bytes",
            kBothSections,
            SettingType::Size,
            {},
            "1G",
            "The most device memory one record queue may take. Launches that need more run in parts, or as "
            "they are.",
            Hint::Kernel},
    Setting{Kind::User,
            "KLAP_TOTAL_BYTES",
            "total_bytes",
            kDefaultsOnly,
            SettingType::Size,
            {},
            "no limit",
            "The most device memory that all queues of a CUDA context may take, and the heap of blocks that "
            "wait for children. Launches that need more run in parts, or as they are."},
    Setting{Kind::User,
            "KLAP_CONCURRENCY",
            "concurrency",
            kBothSections,
            SettingType::Share,
            {},
            "1",
            "x leaves room for other kernels: a consumer that the host launches, and a promoted chain, gets "
            "1/x of the blocks that fill the device.",
            Hint::Launch},
    Setting{Kind::User,
            "KLAP_GUARD",
            "",
            {},
            SettingType::Choice,
            kGuards,
            "on",
            "A kernel runs as it is if that is found to be faster. Only kernels are tried whose number of "
            "launches from the device is known before. on: times are kept beside the rewritten modules, so "
            "that the next run goes on from there. process: only times of this process count. off: nothing "
            "is measured, and the rewritten kernel always runs. original: the program's own kernel always "
            "runs, to measure it."},
    Setting{
        Kind::User,
        "KLAP_TUNE",
        "",
        {},
        SettingType::Choice,
        kTunes,
        "on",
        "Uses the settings that klap-ptx tune found for this program on this GPU, and chooses by the sizes "
        "of children how they run (optimisation flatten). sizes: only the latter. off: neither."},
    Setting{Kind::User,
            "KLAP_ASYNC",
            "",
            {},
            SettingType::Boolean,
            {},
            "0",
            "1 lets the program begin with its own kernels while they are rewritten, and changes to the "
            "rewritten ones between two launches. A module with variables does not change before the next "
            "start. Modules that are in the cache are rewritten from the beginning."},
    Setting{Kind::User,
            "",
            "name",
            kKernelOnly,
            SettingType::Glob,
            {},
            "required",
            "Parent kernels the table is for: a glob (* and ?) over the whole mangled or demangled name."},
    Setting{Kind::User,
            "",
            "child",
            kKernelOnly,
            SettingType::Glob,
            {},
            "every child",
            "Only launches of these kernels: a glob as for name."},
    Setting{Kind::User, "KLAP_CONFIG", "", {}, SettingType::Path, {}, "unset", "The config file (TOML)."},
    Setting{Kind::User,
            "KLAP_LOG",
            "",
            {},
            SettingType::Choice,
            kLogLevels,
            "warn",
            "The lowest level that is logged. info has a line for every launch site."},
    Setting{Kind::User,
            "KLAP_LOG_FILE",
            "",
            {},
            SettingType::Path,
            {},
            "standard error",
            "File that the log is appended to; %p is the process id, %r the rank under MPI or Slurm."},
    Setting{Kind::User,
            "KLAP_DISABLE",
            "",
            {},
            SettingType::Boolean,
            {},
            "0",
            "1 leaves the program entirely as it is."},
    Setting{Kind::User,
            "KLAP_CACHE_DIR",
            "",
            {},
            SettingType::Path,
            {},
            "$XDG_CACHE_HOME/klap, else ~/.cache/klap",
            "Folder that keeps rewritten modules, and how long kernels took. Nobody else may write to it."},
    Setting{Kind::User,
            "KLAP_CACHE_MAX_SIZE",
            "",
            {},
            SettingType::Size,
            {},
            "1G",
            "The most that the folder may hold. The least recently used files are removed first."},
    Setting{Kind::User,
            "KLAP_CACHE_DISABLE",
            "",
            {},
            SettingType::Boolean,
            {},
            "0",
            "1 compiles again in every process, and keeps no times."},
    Setting{
        Kind::User,
        "KLAP_STATS",
        "",
        {},
        SettingType::Path,
        {},
        "unset",
        "File that receives statistics as JSON at exit; - is standard error, %p the process id, %r the rank "
        "under MPI or Slurm."},
    Setting{Kind::User,
            "KLAP_LINKER",
            "",
            {},
            SettingType::Choice,
            kLinkers,
            "auto",
            "The linker for rewritten code. auto: nvJitLink, or the driver where nvJitLink is missing."},
    Setting{Kind::Developer,
            "KLAP_OPTIMISE",
            "optimise",
            kBothSections,
            SettingType::Optimise,
            {},
            "as below",
            "Switches single optimisations: -name turns one off, +name turns one on, name=value gives it a "
            "value. Several are separated by commas."},
    Setting{Kind::Developer,
            "KLAP_MULTIBLOCK",
            "multiblock",
            kBothSections,
            SettingType::Count,
            {},
            "16",
            "How many blocks of the parent form a group at granularity multiblock.",
            Hint::Launch},
    Setting{Kind::Developer, "KLAP_BUFFER", "buffer", kBothSections, SettingType::Choice, kBuffers, "pool",
            "Where record queues are allocated. pool: kept in the stream for its next launches. malloc: "
            "allocated for each launch of a parent and freed behind its children.",
            Hint::Kernel},
    Setting{Kind::Developer,
            "KLAP_CONSUMER_THREADS",
            "consumer_threads",
            kBothSections,
            SettingType::Threads,
            {},
            "auto",
            "Threads of a consumer's block that runs several blocks of children; a multiple of their size. "
            "auto: about 256.",
            Hint::Launch},
    Setting{Kind::Developer,
            "KLAP_POOL",
            "pool",
            kBothSections,
            SettingType::Blocks,
            {},
            "auto",
            "Blocks of a promoted chain; with P and PO, how many links may have blocks at a time. auto: 8 "
            "with PA, up to 64 with P and PO, else as many as fill the device.",
            Hint::Launch},
    Setting{Kind::Developer,
            "KLAP_DUMP_DIR",
            "",
            {},
            SettingType::Path,
            {},
            "unset",
            "Folder that receives every stage of every module as files. The cache is then not used."},
    Setting{Kind::Developer,
            "KLAP_DEVICE_RUNTIME",
            "",
            {},
            SettingType::Boolean,
            {},
            "1",
            "0 links the rewritten code without CUDA's device runtime, for tools that refuse modules with it "
            "(compute-sanitizer's racecheck). A launch that is left then ends its kernel with an error."},
    Setting{Kind::Developer,
            "KLAP_COUNT_CHILDREN",
            "",
            {},
            SettingType::Boolean,
            {},
            "1",
            "0 leaves out of the statistics how many children and links ran. Kernels count them, which takes "
            "up to a microsecond of a parent's launch."},
    Setting{
        Kind::Developer,
        "KLAP_TIMING",
        "",
        {},
        SettingType::Boolean,
        {},
        "0",
        "1 adds to the statistics how long parents and their consumers take on the GPU. It slows launches."},
    Setting{
        Kind::Developer,
        "KLAP_SIZES",
        "",
        {},
        SettingType::Boolean,
        {},
        "0",
        "1 adds to the statistics how large the children are that the host's consumers run. A kernel counts "
        "them, which takes a microsecond or two of a parent's launch."},
    Setting{
        Kind::Developer,
        "KLAP_PROFILER_RANGES",
        "",
        {},
        SettingType::Boolean,
        {},
        "0",
        "1 makes a range for profilers (NVTX) of the host's part of each rewritten launch, with the parent's "
        "name and how its launches are replaced."},
    Setting{
        Kind::Developer,
        "KLAP_COUNTERS",
        "",
        {},
        SettingType::Metrics,
        {},
        "unset",
        "Adds performance counters to the statistics, by the names that Nsight Compute has for them: their "
        "means over the first 64 launches of each parent, each with its children. The program waits for each "
        "such launch, and the guard measures nothing."},
    Setting{Kind::Optimisation, "", "dependent_launch", kBothSections, SettingType::Choice, kSwitch, "on",
            "A consumer that the host launches gets ready while its parent ends (programmatic dependent "
            "launch, sm_90 and later)."},
    Setting{Kind::Optimisation, "", "double_buffer", kBothSections, SettingType::Choice, kSwitch, "on",
            "Record queues, and the rings of promoted chains, have two sets of counters, used by alternate "
            "launches. So no launch waits for the last block of the one before to reset them."},
    Setting{Kind::Optimisation, "", "pack_records", kBothSections, SettingType::Choice, kSwitch, "on",
            "A record leaves out constant grid dimensions and arguments that the child never reads. "
            "Arguments that are the same for all children are passed once."},
    Setting{Kind::Optimisation, "", "flatten", kBothSections, SettingType::Choice, kSwitchOrAuto, "auto",
            "A consumer that the host launches numbers the threads of all children through, so that threads "
            "of several children share a warp. Children that begin with a comparison of their index get only "
            "the threads that pass it. auto: where children may be large, they can run in their blocks, too. "
            "The sizes of the last children say which of the two it is for each launch."},
    Setting{Kind::Optimisation, "", "split_iterations", kBothSections, SettingType::Choice, kSwitchOrAll,
            "on",
            "Children that walk over their data in one grid-stride loop are flattened, too. Where each "
            "thread would have about 32 iterations or more, and it does not matter which thread has which, "
            "it has 8. all: one iteration for each thread, however few there are."},
    Setting{
        Kind::Optimisation, "", "split_ranges", kBothSections, SettingType::Choice, kSwitchOrAll, "on",
        "Children that sum up a range of elements, each in a block of its own, and add the sum to memory by "
        "an atomic operation run as parts of it, with a warp each. Sums of floating-point numbers that one "
        "thread adds need assume = reassociate. all: also children that store their sum, or compute with "
        "it."},
    Setting{Kind::Optimisation, "", "part_elements", kBothSections, SettingType::Choice, kParts, "auto",
            "The elements of such a part. auto: 256."},
    Setting{Kind::Optimisation, "", "merge_parts", kBothSections, SettingType::Choice, kSwitch, "off",
            "Neighbouring parts of a range that are the share of one warp are run as one, and add to memory "
            "once."},
    Setting{Kind::Optimisation, "", "stream_loads", kBothSections, SettingType::Choice, kSwitch, "off",
            "What such a part loads element by element, one behind the other, is not kept in the caches. So "
            "there is more room for what is loaded from anywhere."},
    Setting{Kind::Optimisation, "", "preload_arguments", kBothSections, SettingType::Choice, kSwitch, "off",
            "A consumer that the host launches reads a child's first arguments once for all blocks or "
            "threads that it runs one after another."},
    Setting{Kind::Optimisation, "", "unroll", kBothSections, SettingType::Choice, kUnrolls, "auto",
            "How many iterations of a child's loop are unrolled in a consumer that the host launches. Only "
            "for loops that load and compute, and that the program does not forbid to unroll: their loads "
            "are then waited for together. auto: 4, fewer where an iteration has more than 12 loads."},
    Setting{Kind::Optimisation, "", "occupancy", kBothSections, SettingType::Choice, kSwitchOrAll, "on",
            "Kernels that mostly wait for memory are assembled for more blocks on a multiprocessor than the "
            "assembler would choose: persistent consumers, consumers of children with few registers, and "
            "chains with look-back. all: also consumers of children with more registers, or unrolled loops."},
    Setting{Kind::Optimisation, "", "pack_blocks", kBothSections, SettingType::Choice, kSwitch, "on",
            "Children of one warp that use shared memory or barriers run several to a block of the consumer "
            "that the host launches, as others do."},
    Setting{Kind::Optimisation, "", "batch_items", kBothSections, SettingType::Choice, kSwitch, "on",
            "The blocks of a persistent consumer take several work items at a time where more are waiting "
            "than there are blocks."},
    Setting{Kind::Optimisation, "", "executor", kBothSections, SettingType::Choice, kSwitch, "on",
            "Launches that would be left because of their order, or because blocks differ in recursion, are "
            "run by the executor, which keeps the order of all streams unless it is proven not to matter."},
    Setting{Kind::Optimisation, "", "batch_links", kBothSections, SettingType::Choice, kSwitch, "on",
            "The blocks of a chain with look-back take several links at a time, once each block has had one, "
            "and wait for earlier links once for all of them."},
};

std::string places(const Setting& setting) {
  std::vector<std::string> names;
  if (setting.kind == Kind::Optimisation) return fmt::format("KLAP_OPTIMISE {}", setting.key);
  if (!setting.variable.empty()) names.emplace_back(setting.variable);
  for (const Section section : setting.sections) {
    names.push_back(fmt::format("{} {}", to_string(section), setting.key));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

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
    case SettingType::Metrics:
      return !parse_metrics(value).empty();
    case SettingType::Path:
    case SettingType::Glob:
      return !value.empty();
    case SettingType::Optimise:
      return !std::holds_alternative<Error>(parse_optimise(value));
  }
  return false;
}

const char* to_string(Section section) { return section == Section::Defaults ? "[defaults]" : "[[kernel]]"; }

std::span<const Setting> table() { return kTable; }

const Setting* find_variable(std::string_view variable) {
  const auto* const found = std::find_if(kTable.begin(), kTable.end(), [&](const Setting& setting) {
    return !setting.variable.empty() && setting.variable == variable;
  });
  return found == kTable.end() ? nullptr : found;
}

const Setting* find_key(Section section, std::string_view key) {
  const auto* const found = std::find_if(kTable.begin(), kTable.end(), [&](const Setting& setting) {
    return setting.kind != Kind::Optimisation && setting.key == key &&
           std::ranges::count(setting.sections, section) != 0;
  });
  return found == kTable.end() ? nullptr : found;
}

const Setting* find_optimisation(std::string_view name) {
  const auto* const found = std::ranges::find_if(kTable, [&](const Setting& setting) {
    return setting.kind == Kind::Optimisation && setting.key == name;
  });
  return found == kTable.end() ? nullptr : found;
}

const Setting* find_of_launch(std::string_view key) {
  const Setting* const found = find_key(Section::Kernel, key);
  return found != nullptr ? found : find_optimisation(key);
}

std::vector<std::string_view> variables() {
  std::vector<std::string_view> names;
  for (const Setting& setting : kTable) {
    if (!setting.variable.empty()) names.push_back(setting.variable);
  }
  return names;
}

std::vector<std::string_view> optimisations() {
  std::vector<std::string_view> names;
  for (const Setting& setting : kTable) {
    if (setting.kind == Kind::Optimisation) names.push_back(setting.key);
  }
  return names;
}

std::vector<std::string_view> keys(Section section) {
  std::vector<std::string_view> names;
  for (const Setting& setting : kTable) {
    const bool is_key = setting.kind != Kind::Optimisation;
    if (is_key && std::ranges::count(setting.sections, section) != 0) names.push_back(setting.key);
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
    case SettingType::Metrics:
      return "names of metrics, separated by commas";
    case SettingType::Optimise:
      return "-name, +name or name=value, separated by commas";
  }
  return "";
}

std::optional<Error> check_value(const Setting& setting, std::string_view name, std::string_view value) {
  if (setting.type == SettingType::Optimise) {
    const Optimisations parsed = parse_optimise(value);
    const Error* const problem = std::get_if<Error>(&parsed);
    return problem == nullptr ? std::nullopt : std::optional(Error(*problem).at(std::string(name)));
  }
  if (is_valid(setting, value)) return std::nullopt;
  std::string hint = fmt::format("use {}", describe_values(setting));
  const std::vector<std::string_view> choices(setting.choices.begin(), setting.choices.end());
  if (const auto near = nearest(value, choices)) hint = fmt::format("did you mean '{}'? {}", *near, hint);
  return Error(ErrorCode::Config, fmt::format("{} cannot be '{}'", name, value)).fix(hint);
}

Optimisations parse_optimise(std::string_view text) {
  std::vector<std::pair<const Setting*, std::string>> out;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const bool is_switch = item.starts_with('-') || item.starts_with('+');
    const std::string_view name = is_switch ? item.substr(1) : item.substr(0, equals);
    const Setting* const row = find_optimisation(name);
    if (row == nullptr) {
      const auto near = nearest(name, optimisations());
      return Error(ErrorCode::Config, fmt::format("unknown optimisation '{}'", name))
          .fix(near ? fmt::format("did you mean '{}'?", *near)
                    : fmt::format("there are {}", fmt::join(optimisations(), ", ")));
    }
    std::string value = is_switch && item[0] == '-' ? "off" : "on";
    if (value == "on" && std::ranges::count(row->choices, "on") == 0) value = "auto";
    if (!is_switch) value = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    if (!is_valid(*row, value)) {
      return Error(ErrorCode::Config, fmt::format("optimisation {} cannot be '{}'", name, value))
          .fix(fmt::format("write -{0}, +{0} or {0}= with {1}", name, describe_values(*row)));
    }
    out.emplace_back(row, value);
  }
  return out;
}

std::string as_text(Kind kind) {
  std::string text;
  for (const Setting& setting : kTable) {
    if (setting.kind != kind) continue;
    text += fmt::format("{}\n    {}\n    Values: {}; default: {}\n", places(setting), setting.documentation,
                        describe_values(setting), setting.default_value);
  }
  return text;
}

std::string as_markdown(Kind kind) {
  // A bar inside a cell would end the cell.
  const auto cell = [](std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  if (kind == Kind::Optimisation) {
    std::string text = "| Optimisation | Values | Default | Meaning |\n| --- | --- | --- | --- |\n";
    for (const Setting& setting : kTable) {
      if (setting.kind != kind) continue;
      text += fmt::format("| `{}` | {} | {} | {} |\n", setting.key, cell(describe_values(setting)),
                          setting.default_value, setting.documentation);
    }
    return text;
  }
  std::string text =
      "| Environment | Config file | Values | Default | Meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : kTable) {
    if (setting.kind != kind) continue;
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

}  // namespace klap::settings
