#include "jit/cache/cache_key.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "settings/launch_options.h"
#include "support/hash.h"

namespace klap::jit {

extern const char kBuildId[];

namespace {

// Every text stands with its length, so that none can pass for the next part.
std::string text_part(const char* name, std::string_view text) {
  return fmt::format("{} {} {}\n", name, text.size(), text);
}

std::string content_part(const char* name, std::string_view bytes) {
  const auto hash = content_hash(bytes);
  return fmt::format("{} {} {:016x}{:016x}\n", name, bytes.size(), hash[0], hash[1]);
}

// The structured bindings below name every field, so that a new one does not compile until it stands in the
// key or is left out for a reason.

// The function that decides about kernels is not here: its answers are (decisions).
std::string request_part(const Request& request) {
  const auto& [sm, setting, work_queues, double_buffered, warp_aggregation, slicing, blocks, promoting,
               by_sizes, fusing, device_runtime, debug_units, dump, linker, cache, configuration] = request;
  return fmt::format("sm {} debug units {} device runtime {}\n", sm, debug_units, device_runtime) +
         fmt::format(
             "work queues {} double buffered {} warp aggregation {} slicing {} blocks {} promoting {} by "
             "sizes {} fusing {}\n",
             work_queues, double_buffered, warp_aggregation, slicing, blocks, promoting, by_sizes, fusing) +
         text_part("linker", linker == nullptr ? kNvJitLink : linker->name()) +
         text_part("configuration", configuration);
}

std::string unit_part(const Unit& unit) {
  const auto& [name, ptx, options, cubin, cubin_suffix, is_device_runtime, launches, without_code] = unit;
  return text_part("unit", name) + content_part("ptx", ptx) + content_part("cubin", cubin) +
         fmt::format("suffix {}\n", int{cubin_suffix}) + text_part("options", options) +
         fmt::format("runtime {} launches {}\n", is_device_runtime, launches) +
         text_part("without code", without_code);
}

}  // namespace

std::string program_text(const Program& program) {
  const auto& [units, device_runtime_archive, built_in_runtime] = program;
  std::string text =
      text_part("device runtime", device_runtime_archive) + fmt::format("built in {}\n", built_in_runtime);
  for (const Unit& unit : units) text += unit_part(unit);
  return text;
}

std::string build_id() { return kBuildId; }

CacheKey make_cache_key(const Program& program, const Request& request) {
  CacheKey key;
  key.text = text_part("build", kBuildId) + request_part(request) + program_text(program);
  key.hash = Hasher().add(key.text).hex();
  return key;
}

std::string memory_key(const Program& program, const Request& request,
                       const std::vector<SiteRemark>& remarks) {
  return Hasher().add(make_cache_key(program, request).text).add(decisions(remarks, request)).hex();
}

std::string decisions(const std::vector<SiteRemark>& remarks, const Request& request) {
  if (!request.setting) return "";
  std::set<std::pair<std::string, std::string>> launches;
  for (const SiteRemark& remark : remarks) launches.emplace(remark.parent, remark.child);
  std::string text;
  if (const auto given = heap_setting(request)) text += text_part("malloc", given->text);
  for (const auto& [parent, child] : launches) {
    // Remarks say who asked, and are kept with the code. A hint in the program may replace a value that
    // nobody gave but not a given one, even where both are equal.
    std::string places;
    const auto ask = [&](std::string_view key) {
      auto given = request.setting(key, parent, child);
      if (given) places += fmt::format(" {} {}", key, given->place);
      return given;
    };
    const std::string options = canonical_text(settings::launch_options(ask));
    text += text_part("parent", parent) + text_part("child", child) + text_part("options", options + places);
  }
  return text;
}

}  // namespace klap::jit
