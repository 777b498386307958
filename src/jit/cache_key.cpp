#include "jit/cache_key.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "jit/hash.h"

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

}  // namespace

std::string build_id() { return kBuildId; }

CacheKey make_cache_key(const Program& program, const Request& request) {
  CacheKey key;
  key.text = text_part("build", kBuildId) +
             fmt::format("sm {} debug units {}\n", request.sm, request.debug_units) +
             text_part("configuration", request.configuration) +
             text_part("device runtime", program.device_runtime_archive) +
             fmt::format("built in {} allowed {}\n", program.built_in_runtime, request.device_runtime);
  for (const Unit& unit : program.units) {
    key.text += text_part("unit", unit.name) + content_part("ptx", unit.ptx) +
                content_part("cubin", unit.cubin) + fmt::format("suffix {}\n", int{unit.cubin_suffix}) +
                text_part("options", unit.options) +
                fmt::format("runtime {} launches {}\n", unit.is_device_runtime, unit.launches);
  }
  key.hash = Hasher().add(key.text).hex();
  return key;
}

std::string decisions(const std::vector<SiteRemark>& remarks, const Request& request) {
  std::set<std::string> parents;
  std::set<std::pair<std::string, std::string>> launches;
  for (const SiteRemark& remark : remarks) {
    parents.insert(remark.parent);
    launches.emplace(remark.parent, remark.child);
  }
  std::string text;
  if (request.setting) {
    const auto given = request.setting("aggregate_malloc", "", "");
    if (given) text += fmt::format("aggregate_malloc {}\n", given->text);
  }
  for (const auto& [parent, child] : launches) {
    if (!request.setting) break;
    for (const char* const key :
         {"granularity", "launcher", "multiblock", "ordering", "consumer_threads", "two_heads", "buffer",
          "pack_records", "flatten", "split_rounds", "hold_arguments", "unroll", "occupancy", "pack_blocks",
          "batch_items", "threshold", "promotion", "batch_links", "assume"}) {
      const auto given = request.setting(key, parent, child);
      if (given) text += fmt::format("{} {} {} {} {}\n", parent, child, key, given->text, given->place);
    }
  }
  for (const std::string& parent : parents) {
    const Granularity granularity = request.granularity ? request.granularity(parent) : Granularity::Grid;
    const Launcher launcher = request.launcher ? request.launcher(parent) : Launcher::Auto;
    const uint32_t multiblock = request.multiblock ? request.multiblock(parent) : kMultiBlock;
    const Ordering ordering = request.ordering ? request.ordering(parent) : Ordering::Auto;
    text +=
        fmt::format("{} {} {} {}", parent, to_string(granularity), to_string(launcher), to_string(ordering));
    text += granularity == Granularity::MultiBlock ? fmt::format(" {}\n", multiblock) : "\n";
  }
  return text;
}

}  // namespace klap::jit
