#include "analysis/facts/launch_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/values/values.h"
#include "ptx/dialect.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;

std::optional<Dimensions> dimensions_attribute(const Module& m, const Function& f, std::string_view name) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    if (!m.is(t, name)) continue;
    Dimensions out;
    out.place = m.place(t);
    size_t axis = 0;
    for (++t; t < f.attributes.last && axis < 3; ++t) {
      if (m.is(t, ",")) continue;
      const auto value = ptx::integer_value(m.text(t));
      if (!value) break;
      out.size[axis++] = *value;
    }
    return out;
  }
  return std::nullopt;
}

uint64_t most_threads_allowed(const Module& m, const Function& kernel) {
  const auto most = dimensions_attribute(m, kernel, ".maxntid");
  return most ? most->size[0] * most->size[1] * most->size[2] : ~uint64_t{0};
}

std::optional<std::string> required_block(const Module& m, const Function& kernel) {
  const auto exact = dimensions_attribute(m, kernel, ".reqntid");
  return exact ? std::optional(exact->place) : std::nullopt;
}

std::optional<std::array<uint32_t, 3>> constant_block(const Site& site, const FunctionFacts& parent) {
  std::array<uint32_t, 3> out{};
  std::optional<SiteValues> computed;
  for (size_t axis = 0; axis < 3; ++axis) {
    auto value = parent.data.constant(site.block.at(axis));
    // Most blocks are literals; only the others are worth evaluating.
    if (!value && !computed) computed = site_values(parent.values(), site);
    if (!value) value = computed->block.at(axis).value.constant();
    if (!value) return std::nullopt;
    out.at(axis) = static_cast<uint32_t>(*value);
  }
  return out;
}

std::optional<uint32_t> constant_shared_bytes(const Site& site, const FunctionFacts& parent) {
  auto value = parent.data.constant(site.shared);
  if (!value) value = site_values(parent.values(), site).shared.value.constant();
  if (!value) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

uint32_t parameter_limit(const Module& m) {
  return m.version.size() > 2 && m.version >= "8.1" ? 32764 : 4096;
}

// The directive by which a kernel is launched in clusters, with its place.
std::optional<std::string> cluster_directive(const Module& m, const Function& f) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    for (const char* name :
         {".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"}) {
      if (m.is(t, name)) return fmt::format("{} ({})", name, m.place(t));
    }
  }
  return std::nullopt;
}

}  // namespace klap::analysis
