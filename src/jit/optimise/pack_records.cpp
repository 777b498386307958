// Packed records: a record leaves out what the consumer knows by itself (transform/text/record_layout.h).
//
// Only where nothing but the site's own consumer reads its records. No thread records twice there: such
// launches stand in no loop.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  return at.is_on("pack_records") && at.strategy().may_pack_records() && !at.site.keeps_launches;
}

void apply(SiteToOptimise& at) {
  at.site.shape.layout = at.strategy().packed_layout(at.child_module(), at.site);
}

bool overlap(const ptx::Parameter& p, const transform::ArgumentPlace& place) {
  return place.from < p.offset + p.bytes && p.offset < place.from + place.bytes;
}

bool is_read(const ptx::Parameter& p, const transform::RecordLayout& layout) {
  return std::ranges::any_of(layout.places, [&](const auto& place) { return overlap(p, place); });
}

// True if all that is read of it is passed once.
bool is_passed_once(const ptx::Parameter& p, const transform::RecordLayout& layout) {
  return is_read(p, layout) && std::ranges::none_of(layout.places, [&](const auto& place) {
           return overlap(p, place) && !place.once;
         });
}

// Says which arguments the records leave out, and how large they are.
OptimisationRemark remark(const PlannedSite& site) {
  const transform::RecordLayout& layout = site.shape.layout;
  if (!layout.packed) return {};
  const std::vector<ptx::Parameter>& parameters = site.child->parameters;
  const auto count = [&](const auto& is) { return std::ranges::count_if(parameters, is); };
  const auto once = count([&](const ptx::Parameter& p) { return is_passed_once(p, layout); });
  const auto unread = count([&](const ptx::Parameter& p) { return !is_read(p, layout); });
  std::vector<std::string> parts;
  if (once != 0) {
    const size_t uniform =
        uniform_arguments(*site.parent, *site.site, *site.child, strategy_of(site).aggregated_threads(site));
    const bool is_all = static_cast<size_t>(once) == uniform;
    parts.push_back(is_all ? "passed once" : fmt::format("{} passed once", once));
  }
  if (unread != 0) parts.push_back(fmt::format("{} never read", unread));
  parts.push_back(fmt::format("record {} bytes", layout.record_bytes));
  OptimisationRemark out;
  out.arguments = fmt::format("{}", fmt::join(parts, ", "));
  return out;
}

}  // namespace

const Optimisation kPackRecords{"pack_records", applies, apply, remark};

}  // namespace klap::jit
