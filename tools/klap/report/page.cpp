// The page is a template of Mustache (page.html), which escapes every text that it is given.
#include "klap/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "klap/report/numbers.h"
#include "klap/report/views.h"
#include "klap/version.h"
#include "support/embedded_file.h"
#include "support/error.h"

namespace klap::tool {

extern const EmbeddedFile kPageFiles[];

namespace {

using nlohmann::json;
namespace mustache = kainjow::mustache;

std::string page_file(std::string_view name) {
  const EmbeddedFile* file = kPageFiles;
  while (file->name != nullptr && file->name != name) ++file;
  if (file->name == nullptr) throw Error(ErrorCode::Internal, fmt::format("{} is not embedded", name));
  return file->text;
}

// Null, false and an empty text hide a section of the template. Numbers must have been made texts.
mustache::data as_data(const json& value) {
  if (value == "") return false;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_array()) {
    mustache::data list(mustache::data::type::list);
    for (const json& one : value) list.push_back(as_data(one));
    return list;
  }
  if (!value.is_object()) return false;
  mustache::data object;
  for (const auto& [key, member] : value.items()) object.set(key, as_data(member));
  return object;
}

json tile(const std::string& name, const std::string& value, const std::string& note) {
  return {{"tile", name}, {"value", value}, {"note", note}, {"is_main", false}, {"is_bad", false}};
}

void add_gain(json& tiles, const std::optional<Gain>& gain, const std::string& what,
              const std::string& before, const std::string& now_note = "") {
  if (!gain) return;
  json out = tile(
      what, factor(gain->times()),
      fmt::format("{} {}, now {}{}", before, duration(gain->before_ms), duration(gain->now_ms), now_note));
  constexpr double kNoise = 1.02;
  out["is_main"] = gain->times() >= kNoise;
  out["is_bad"] = gain->times() <= 1 / kNoise;
  tiles.push_back(std::move(out));
}

std::string program_note(const Statistics& all) {
  return all.compiled == 0 ? "" : fmt::format(", and once {} more for compiling", duration(all.compile_ms));
}

std::string children_note(const Statistics& all) {
  const uint64_t native = all.native_children.value_or(0);
  return native == 0 ? "none launched by the device"
                     : grouped(native) + " more launched by the device as written";
}

json tiles(const Statistics& all, const Baseline& baseline) {
  json out = json::array();
  add_gain(out, baseline.gpu(), "Gain on the GPU", baseline.name());
  add_gain(out, baseline.program(), "Gain of the program", baseline.name(), program_note(all));
  out.push_back(tile("Launches rewritten", grouped(all.rewritten()),
                     fmt::format("of {}", amount(all.kernels_rewritten(), "kernel"))));
  if (all.children) out.push_back(tile("Children run together", grouped(*all.children), children_note(all)));
  if (all.chain_links.value_or(0) != 0)
    out.push_back(
        tile("Links of chains", grouped(*all.chain_links), "run as one kernel that stays resident"));
  if (all.timed() != 0) {
    double parents = 0;
    for (const auto& [mangled, kernel] : all.kernels) parents += kernel.parent_ms;
    out.push_back(
        tile("GPU time", duration(all.timed_ms()),
             fmt::format("{} for parents, {} for children, in {}", duration(parents),
                         duration(all.timed_ms() - parents), amount(all.timed(), "launch", "launches"))));
  }
  if (all.queue_bytes.value_or(0) != 0)
    out.push_back(
        tile("Device memory", bytes_text(*all.queue_bytes), "for queues of recorded launches, at most"));
  return out;
}

// Measurements that are missing on the page, and how to have them.
json missing(const Statistics& all, const Baseline& baseline) {
  json out = json::array();
  const auto add = [&](const char* what, const char* how) {
    out.push_back({{"missing", what}, {"how", how}});
  };
  if (all.timed() == 0) add("Times on the GPU and the timeline", "klap run --set timing=1");
  if (!all.has_sizes) add("The sizes of children", "klap run --set sizes=1");
  if (!baseline.gpu() && !baseline.program())
    add("The gain", "klap run --native --report native.json ./app, then klap report --baseline native.json");
  return out;
}

std::string headline(const Statistics& all) {
  if (all.rewritten() != 0)
    return fmt::format("{} of {} rewritten", amount(all.rewritten(), "launch", "launches"),
                       amount(all.kernels_rewritten(), "kernel"));
  return all.modules != 0 ? "No launch of a kernel was rewritten"
                          : "None of the program's modules launches kernels from kernels";
}

bool is_emulated(const Statistics& all) {
  return std::ranges::any_of(all.devices, [](const std::string& device) {
    return device.find("emulated GPU") != std::string::npos;
  });
}

json warnings(const Statistics& all, const Baseline& baseline) {
  json out = json::array();
  if (is_emulated(all))
    out.push_back(
        {{"text", "The program ran on an emulated GPU, whose times say nothing about a real one."}});
  if (const std::string text = baseline.warning(); !text.empty()) out.push_back({{"text", text}});
  return out;
}

json page_view(const Statistics& all, const Baseline& baseline) {
  const PageKernels kernels = page_kernels(all);
  json kernel_views = json::array(), facts = json::array();
  constexpr size_t kOpen = 2;  // sections of kernels, so that a long page can be read at a glance
  for (const std::string& mangled : listed_kernels(all)) {
    const bool is_open = kernel_views.size() < kOpen;
    kernel_views.push_back(kernel_view(all, mangled, kernels.at(mangled), baseline));
    kernel_views.back()["is_open"] = is_open;
  }
  for (const std::string& device : all.devices) facts.push_back({{"fact", device}});
  if (all.processes != 1) facts.push_back({{"fact", amount(all.processes, "process", "processes")}});
  if (all.run) facts.push_back({{"fact", fmt::format("{} on the clock", duration(1000 * all.run->seconds))}});
  const json help = help_view(all, kernels), not_measured = missing(all, baseline);
  bool has_gain = false;
  for (const json& kernel : kernel_views) has_gain = has_gain || !kernel["gain"].is_null();
  return {{"command", all.run ? json(fmt::format("{}", fmt::join(all.run->command, " "))) : json()},
          {"headline", headline(all)},
          {"facts", facts},
          {"warnings", warnings(all, baseline)},
          {"tiles", tiles(all, baseline)},
          {"has_help", !help.empty()},
          {"has_modules", all.modules != 0},
          {"knows_order", all.knows_order},
          {"findings", help},
          {"has_kernels", !kernel_views.empty()},
          {"all_kernels", kernel_views},
          {"has_times", all.timed() != 0},
          {"has_gain", has_gain},
          {"timeline", timeline_view(all, kernels)},
          {"program", program_view(all)},
          {"has_missing", !not_measured.empty()},
          {"not_measured", not_measured},
          {"style", page_file("page.css")},
          {"script", page_file("page.js")},
          {"version", KLAP_VERSION}};
}

}  // namespace

std::string html_page(const Statistics& all, const Baseline& baseline) {
  mustache::mustache page(page_file("page.html"));
  if (!page.is_valid()) throw Error(ErrorCode::Internal, "page.html: " + page.error_message());
  return page.render(as_data(page_view(all, baseline)));
}

}  // namespace klap::tool
