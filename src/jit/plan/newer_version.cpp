#include "jit/plan/newer_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/effects/idle_waits.h"
#include "ptx/tree.h"
#include "transform/runtime_calls/newer_runtime.h"

namespace klap::jit {

namespace {

// The names of version 2 contain neither of the first two.
bool is_older(const Unit& unit) {
  return unit.ptx.find("cudaLaunchDevice") != std::string::npos ||
         unit.ptx.find("cudaDeviceSynchronize") != std::string::npos;
}
bool is_newer(const Unit& unit) { return unit.ptx.find("__cudaCDP2LaunchDevice") != std::string::npos; }

// A unit that launches and has no PTX may be of either version.
bool may_be_changed(const Program& program) {
  return std::ranges::none_of(program.units, [](const Unit& unit) {
    return !unit.is_device_runtime && (is_newer(unit) || (unit.launches && unit.ptx.empty()));
  });
}

}  // namespace

std::optional<Program> in_newer_version(const Program& program, uint32_t sm) {
  constexpr uint32_t kFirstWithoutOlder = 90;
  if (sm < kFirstWithoutOlder) return std::nullopt;
  const bool is_any_older = std::ranges::any_of(
      program.units, [](const Unit& unit) { return !unit.is_device_runtime && is_older(unit); });
  if (!is_any_older || !may_be_changed(program)) return std::nullopt;
  Program newer = program;
  // The program's may be too old to have the newer functions.
  std::erase_if(newer.units, [](const Unit& unit) { return unit.is_device_runtime; });
  for (Unit& unit : newer.units) {
    if (unit.ptx.find("cuda") == std::string::npos) continue;
    const ptx::Module module = ptx::parse(unit.ptx, unit.name);
    if (analysis::wait_that_matters(module)) return std::nullopt;
    auto text = transform::in_newer_runtime(module);
    if (!text) continue;
    unit.ptx = std::move(*text);
    unit.cubin.clear();
  }
  return newer;
}

bool all_run_in_newer_version(std::vector<SiteRemark>& remarks) {
  for (SiteRemark& remark : remarks)
    remark.notes.emplace_back("dynamic parallelism version 1, run as version 2");
  return std::ranges::all_of(remarks, &SiteRemark::rewritten);
}

void note_what_is_left(std::vector<SiteRemark>& remarks, const std::vector<SiteRemark>& newer) {
  const auto left = std::ranges::find(newer, false, &SiteRemark::rewritten);
  if (left == newer.end()) return;
  const std::string note = fmt::format("not run as version 2: {}:{}:{} would be left: {}: {}", left->unit,
                                       left->line, left->column, left->reason, left->detail);
  for (SiteRemark& remark : remarks) remark.notes.push_back(note);
}

}  // namespace klap::jit
