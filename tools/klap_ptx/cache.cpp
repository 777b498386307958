// klap-ptx cache: lists the contents of the disk cache, empties it, or fills it before a program runs.
//
// warm builds the modules that the library would build for these images on a device of the given kind, under
// these settings. So even a first start compiles nothing.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "jit/cache/disk_cache.h"
#include "klap_ptx/input.h"
#include "klap_ptx/progress.h"
#include "runtime/load/module_cache.h"
#include "runtime/parents/guard_choice.h"
#include "runtime/parents/guard_profiles.h"
#include "support/error.h"

namespace klap::tool {

namespace {

using nlohmann::json;

std::unique_ptr<jit::DiskCache> require_cache(const settings::Config& config) {
  auto cache = runtime::make_disk_cache(config);
  if (cache) return cache;
  throw Error(ErrorCode::Config, config.cache_disabled ? "there is no cache: KLAP_CACHE_DISABLE is set"
                                                       : "there is no cache folder: HOME is not set")
      .fix(config.cache_disabled ? "unset it" : "name a folder in KLAP_CACHE_DIR");
}

json describe(const jit::CacheFolder& folder, const jit::CachedFile& file) {
  json entry = {{"file", file.name}, {"bytes", file.bytes}, {"used", file.used / 1'000'000'000}};
  try {
    const jit::CacheEntry content = jit::decode(folder.read(file.name).value_or(""));
    std::set<std::string> parents;
    for (const jit::Variant& variant : content.module.variants) parents.insert(variant.parent);
    entry.update({{"sm", content.sm}, {"rewritten", parents}, {"state", "good"}});
    for (const jit::ToolFile& tool : content.tools) entry["tools"][tool.library] = tool.version;
  } catch (const Error& error) {
    entry.update({{"state", "damaged"}, {"problem", error.reason()}});
  }
  return entry;
}

// Whether the file is of no use, which is printed then.
bool is_damaged(const json& entry) {
  if (entry["state"] != "damaged") return false;
  fmt::print("damaged: {}\n", entry["problem"].get<std::string>());
  return true;
}

void print_entry(const json& entry) {
  const auto used = fmt::localtime(static_cast<std::time_t>(entry["used"].get<int64_t>()));
  fmt::print("{}  {:>9} bytes  used {:%Y-%m-%d %H:%M:%S}  ", entry["file"].get<std::string>(),
             entry["bytes"].get<uint64_t>(), used);
  if (is_damaged(entry)) return;
  std::string kernels;
  for (const json& parent : entry["rewritten"]) kernels += " " + parent.get<std::string>();
  fmt::print("sm {} {}\n", entry["sm"].get<uint32_t>(), kernels.empty() ? " nothing to rewrite" : kernels);
}

json describe_launches(const runtime::ProfiledLaunches& launches, const runtime::GuardTimes& times) {
  const runtime::GuardChoice choice(times, runtime::seconds_now());
  return {{"kernel", launches.first},
          {"runs", times.runs},
          {"launches", times.launches},
          {"children", times.children},
          {"variant_ms", choice.variant_ms()},
          {"original_ms", choice.original_ms()},
          {"choice", !choice.is_decided()   ? "open"
                     : choice.is_original() ? "original"
                                            : "variant"}};
}

json describe_profile(const jit::CacheFolder& folder, const jit::CachedFile& file) {
  json entry = {{"file", file.name}, {"bytes", file.bytes}, {"used", file.used / 1'000'000'000}};
  try {
    const runtime::GuardProfile profile = runtime::decode_profile(folder.read(file.name).value_or(""));
    entry.update({{"state", "good"}, {"of", profile.name}, {"measured", json::array()}});
    for (const auto& [launches, times] : profile.rows)
      entry["measured"].push_back(describe_launches(launches, times));
  } catch (const Error& error) {
    entry.update({{"state", "damaged"}, {"problem", error.reason()}});
  }
  return entry;
}

void print_profile(const json& entry) {
  fmt::print("{}  {:>9} bytes  ", entry["file"].get<std::string>(), entry["bytes"].get<uint64_t>());
  if (is_damaged(entry)) return;
  fmt::print("times of earlier runs\n");
  for (const json& of : entry["measured"]) {
    fmt::print("  {}: variant {:.4f} ms, original {:.4f} ms, choice {}, {} launches in {} runs\n",
               of["kernel"].get<std::string>(), of["variant_ms"].get<double>(),
               of["original_ms"].get<double>(), of["choice"].get<std::string>(),
               of["launches"].get<uint64_t>(), of["runs"].get<uint64_t>());
  }
}

// The kernels that klap-ptx tune found settings for.
json describe_tuned(const jit::CacheFolder& folder, const jit::CachedFile& file) {
  json entry = {{"file", file.name}, {"bytes", file.bytes}, {"state", "good"}};
  try {
    const std::string text = folder.read(file.name).value_or("");
    settings::Config config;
    const std::vector<std::string> problems = settings::apply_tuned_text(config, text, file.name);
    entry["kernels"] = json::array();
    for (const settings::KernelTable& table : config.tuned) entry["kernels"].push_back(table.glob);
    if (!problems.empty()) entry.update({{"state", "damaged"}, {"problem", problems.front()}});
  } catch (const Error& error) {
    entry.update({{"state", "damaged"}, {"problem", error.reason()}});
  }
  return entry;
}

void print_tuned(const json& entry) {
  fmt::print("{}  {:>9} bytes  ", entry["file"].get<std::string>(), entry["bytes"].get<uint64_t>());
  if (is_damaged(entry)) return;
  std::string kernels;
  for (const json& kernel : entry["kernels"]) kernels += " " + kernel.get<std::string>();
  fmt::print("tuned settings for{}\n", kernels.empty() ? " no kernel" : kernels);
}

struct Warmed {
  std::string image;
  uint32_t sm = 0;
  jit::RewrittenModule module;
  double ms = 0;
};

Warmed warm(const Image& image, jit::DiskCache& cache, const settings::Config& config, uint32_t sm) {
  jit::Request request = make_request(config, {.values = {}, .sm = sm});
  request.dump = {};
  request.cache = &cache;
  request.configuration = settings::canonical_text(config);
  jit::Program program = image.program;
  // The library gives the module it loads this name, and the name is part of the cached data.
  if (image.kind == container::ImageKind::Ptx) program.units.front().name = "PTX module";
  const auto start = std::chrono::steady_clock::now();
  Warmed out{image.label, sm, jit::rewrite_module(program, request), 0};
  out.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (cache.had_problem()) {
    throw Error(ErrorCode::Io, "the module could not be kept").at(cache.options().folder.string());
  }
  return out;
}

bool can_be_rewritten(const jit::Unit& unit) { return unit.launches && !unit.ptx.empty(); }

json to_json(const Warmed& warmed) {
  return {{"image", warmed.image},
          {"sm", warmed.sm},
          {"cache", jit::to_string(warmed.module.cache)},
          {"variants", warmed.module.variants.size()},
          {"ms", warmed.ms}};
}

void print_warmed(const Warmed& warmed) {
  fmt::print("{}: sm {}: {}, kernels rewritten: {}, {:.1f} ms\n", warmed.image, warmed.sm,
             warmed.module.cache == jit::CacheUse::Hit ? "was in the cache" : "built",
             warmed.module.variants.size(), warmed.ms);
}

}  // namespace

void cache_ls(const CacheOptions& options) {
  const auto cache = require_cache(load_policy(options.policy));
  const auto folder = jit::CacheFolder::open(cache->options().folder);
  std::vector<jit::CachedFile> files = folder.entries();
  std::ranges::reverse(files);
  json entries = json::array();
  uint64_t bytes = 0;
  for (const jit::CachedFile& file : files) {
    bytes += file.bytes;
    entries.push_back(describe(folder, file));
    if (!options.json) print_entry(entries.back());
  }
  json profiles = json::array();
  for (const jit::CachedFile& file : folder.profiles()) {
    bytes += file.bytes;
    profiles.push_back(describe_profile(folder, file));
    if (!options.json) print_profile(profiles.back());
  }
  const std::vector<jit::CachedFile> links = folder.links();
  for (const jit::CachedFile& file : links) bytes += file.bytes;
  json tuned = json::array();
  for (const jit::CachedFile& file : folder.tuned()) {
    tuned.push_back(describe_tuned(folder, file));
    if (!options.json) print_tuned(tuned.back());
  }
  if (options.json) {
    print_json({{"folder", cache->options().folder.string()},
                {"bytes", bytes},
                {"max_bytes", cache->options().max_bytes},
                {"entries", std::move(entries)},
                {"profiles", std::move(profiles)},
                {"links", links.size()},
                {"tuned", std::move(tuned)}});
  } else {
    fmt::print("{}: {} modules, {} profiles, {} links of programs, {} programs tuned, {} of {} bytes\n",
               cache->options().folder.string(), files.size(), profiles.size(), links.size(), tuned.size(),
               bytes, cache->options().max_bytes);
  }
}

void cache_clear(const CacheOptions& options) {
  const auto cache = require_cache(load_policy(options.policy));
  const jit::CacheFolder::Removed removed = jit::CacheFolder::open(cache->options().folder).clear();
  if (options.json) {
    print_json({{"folder", cache->options().folder.string()},
                {"removed", removed.modules},
                {"profiles_removed", removed.profiles},
                {"links_removed", removed.links},
                {"tuned_removed", removed.tuned}});
  } else {
    fmt::print("{}: {} modules, {} profiles, {} links and the tuned settings of {} programs removed\n",
               cache->options().folder.string(), removed.modules, removed.profiles, removed.links,
               removed.tuned);
  }
}

void cache_warm(const CacheOptions& options) {
  const settings::Config config = load_policy(options.policy);
  const auto cache = require_cache(config);
  const container::File file = open_device_code(options.file);
  jit::CacheFolder::open(cache->options().folder);  // fails before anything is built
  json images = json::array();
  Progress progress("building");
  for (const uint32_t sm : options.sm) {
    const size_t before = images.size();
    bool launches = false;
    for_each_image(file, sm, [&](const Image& image) {
      launches = launches || std::ranges::any_of(image.program.units, &jit::Unit::launches);
      if (std::ranges::none_of(image.program.units, &can_be_rewritten)) return;
      progress.at(fmt::format("{} for sm_{}", image.label, sm));
      const Warmed warmed = warm(image, *cache, config, sm);
      images.push_back(to_json(warmed));
      const auto pause = progress.pause();
      if (!options.json) print_warmed(warmed);
    });
    const auto pause = progress.pause();
    // Not an error: a program need not have code for every target that a list of machines names.
    if (images.size() == before && !options.json) {
      fmt::print("{}: sm {}: {}\n", options.file, sm,
                 launches ? "the code that launches kernels has no PTX, so nothing can be rewritten"
                          : "no code for this target launches kernels");
    }
  }
  if (!options.json) return;
  const auto pause = progress.pause();
  print_json(
      {{"file", options.file}, {"folder", cache->options().folder.string()}, {"images", std::move(images)}});
}

}  // namespace klap::tool
