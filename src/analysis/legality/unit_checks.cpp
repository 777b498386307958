#include "analysis/legality/unit_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/dialect.h"

namespace klap::analysis {

namespace {

Rejection reject(Reason reason, std::string detail) { return {reason, std::move(detail)}; }

}  // namespace

using ptx::Module;

std::optional<Rejection> check_unit(const Module& m, bool debug_allowed) {
  const std::string directive = m.place(ptx::target_directive(m));
  if (m.debug && !debug_allowed)
    return reject(Reason::DebugBuild, fmt::format("the unit's target says debug ({})", directive));
  const auto target = ptx::parse_target(m.target);
  if (!target || !ptx::parse_version(m.version)) {
    return reject(Reason::NotUnderstood,
                  fmt::format("PTX {} for target {} ({})", m.version, m.target, directive));
  }
  if (m.address_size == 32)
    return reject(
        Reason::NotUnderstood,
        fmt::format(
            "addresses of 32 bits ({})",
            m.place(std::ranges::find(m.items, ptx::ItemKind::AddressSize, &ptx::Item::kind)->tokens.first)));
  if (ptx::runs_in_lockstep(*target)) {
    return reject(Reason::TargetTooOld, fmt::format("the unit's target is {} ({})", m.target, directive));
  }
  return std::nullopt;
}

}  // namespace klap::analysis
