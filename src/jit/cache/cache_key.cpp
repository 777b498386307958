#include "jit/cache/cache_key.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "jit/plan/given_setting.h"
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

// The functions that decide about kernels are not here: their answers are (decisions).
std::string request_part(const Request& request) {
  const auto& [sm, setting, granularity, launcher, multiblock, ordering, feeding, two_heads, sharing, slicing,
               blocks, promoting, device_runtime, debug_units, dump, linker, cache, configuration] = request;
  return fmt::format("sm {} debug units {} device runtime {}\n", sm, debug_units, device_runtime) +
         fmt::format("feeding {} two heads {} sharing {} slicing {} blocks {} promoting {}\n", feeding,
                     two_heads, sharing, slicing, blocks, promoting) +
         text_part("linker", linker == nullptr ? kNvJitLink : linker->name()) +
         text_part("configuration", configuration);
}

std::string unit_part(const Unit& unit) {
  const auto& [name, ptx, options, cubin, cubin_suffix, is_device_runtime, launches] = unit;
  return text_part("unit", name) + content_part("ptx", ptx) + content_part("cubin", cubin) +
         fmt::format("suffix {}\n", int{cubin_suffix}) + text_part("options", options) +
         fmt::format("runtime {} launches {}\n", is_device_runtime, launches);
}

std::string program_part(const Program& program) {
  const auto& [units, device_runtime_archive, built_in_runtime] = program;
  std::string text =
      text_part("device runtime", device_runtime_archive) + fmt::format("built in {}\n", built_in_runtime);
  for (const Unit& unit : units) text += unit_part(unit);
  return text;
}

}  // namespace

std::string build_id() { return kBuildId; }

CacheKey make_cache_key(const Program& program, const Request& request) {
  CacheKey key;
  key.text = text_part("build", kBuildId) + request_part(request) + program_part(program);
  key.hash = Hasher().add(key.text).hex();
  return key;
}

std::string memory_key(const Program& program, const Request& request,
                       const std::vector<SiteRemark>& remarks) {
  return Hasher().add(make_cache_key(program, request).text).add(decisions(remarks, request)).hex();
}

std::string decisions(const std::vector<SiteRemark>& remarks, const Request& request) {
  std::set<std::string> parents;
  std::set<std::pair<std::string, std::string>> launches;
  for (const SiteRemark& remark : remarks) {
    parents.insert(remark.parent);
    launches.emplace(remark.parent, remark.child);
  }
  std::string text;
  if (const auto given = given_setting(request, kHeapKey, "", ""))
    text += fmt::format("{} {}\n", kHeapKey, given->text);
  for (const auto& [parent, child] : launches) {
    for (const std::string_view key : launch_keys()) {
      const auto given = given_setting(request, key, parent, child);
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
    const bool may_be_groups = granularity == Granularity::MultiBlock || !request.granularity;
    text += may_be_groups ? fmt::format(" {}\n", multiblock) : "\n";
  }
  return text;
}

}  // namespace klap::jit
