#include "jit/plan/newer_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ptx/tree.h"
#include "support/demangle.h"
#include "transform/runtime_calls/newer_runtime.h"
#include "transform/suspension/split_unit.h"

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

// True if another unit than that one may call the function.
bool is_named_elsewhere(const Program& program, const Unit& unit, const std::string& function) {
  return std::ranges::any_of(program.units, [&](const Unit& other) {
    return !other.is_device_runtime && other.name != unit.name &&
           other.ptx.find(function) != std::string::npos;
  });
}

// Why a kernel in the unit cannot be split where it waits; empty if all can, or none waits.
std::string split(const Program& program, Unit& unit, std::vector<std::string>& waits) {
  auto split = transform::split_at_waits(ptx::parse(unit.ptx, unit.name));
  if (!split) return "";
  if (!split->problem.empty()) return split->problem;
  for (const std::string& function : split->waiting_functions)
    if (is_named_elsewhere(program, unit, function)) return function + " waits, and another unit may call it";
  unit.ptx = std::move(split->text);
  for (const transform::SplitWait& wait : split->waits)
    waits.push_back(fmt::format("{} waits for its children ({}): its blocks stop there, {} bytes a thread",
                                demangle(wait.kernel), wait.place, wait.bytes_per_thread));
  return "";
}

}  // namespace

NewerVersion in_newer_version(const Program& program, uint32_t sm) {
  constexpr uint32_t kFirstWithoutOlder = 90;
  NewerVersion out;
  if (sm < kFirstWithoutOlder) return out;
  const bool is_any_older = std::ranges::any_of(
      program.units, [](const Unit& unit) { return !unit.is_device_runtime && is_older(unit); });
  if (!is_any_older || !may_be_changed(program)) return out;
  Program newer = program;
  // The program's may be too old to have the newer functions.
  std::erase_if(newer.units, [](const Unit& unit) { return unit.is_device_runtime; });
  for (Unit& unit : newer.units) {
    if (unit.ptx.find("cuda") == std::string::npos) continue;
    if (const std::string why = split(program, unit, out.waits); !why.empty()) {
      out.problem = unit.name + ": " + why;
      return out;
    }
    auto text = transform::in_newer_runtime(ptx::parse(unit.ptx, unit.name));
    if (!text) continue;
    unit.ptx = std::move(*text);
    unit.cubin.clear();
  }
  out.program = std::move(newer);
  return out;
}

std::vector<Request> requests_for_all_launches(const Request& request) {
  std::vector<Request> requests = {request};
  if (!request.setting) return requests;
  Request free = request;
  free.setting = [given = request.setting](std::string_view key, const std::string& parent,
                                           const std::string& child) -> std::optional<settings::Given> {
    auto value = given(key, parent, child);
    const bool is_free = key == "launcher" || (key == "granularity" && value && value->text != "none");
    return is_free ? std::nullopt : value;
  };
  requests.push_back(std::move(free));
  return requests;
}

bool all_run_in_newer_version(std::vector<SiteRemark>& remarks, const NewerVersion& version) {
  for (SiteRemark& remark : remarks) {
    remark.notes.emplace_back("dynamic parallelism version 1, run as version 2");
    remark.notes.insert(remark.notes.end(), version.waits.begin(), version.waits.end());
  }
  return std::ranges::all_of(remarks, &SiteRemark::rewritten);
}

void note_why_older(std::vector<SiteRemark>& remarks, const NewerVersion& version,
                    const std::vector<SiteRemark>& newer) {
  std::string why = version.problem;
  const auto left = std::ranges::find(newer, false, &SiteRemark::rewritten);
  if (why.empty() && left != newer.end())
    why = fmt::format("{}:{}:{} would be left: {}: {}", left->unit, left->line, left->column, left->reason,
                      left->detail);
  if (why.empty()) return;
  for (SiteRemark& remark : remarks) remark.notes.push_back("not run as version 2: " + why);
}

}  // namespace klap::jit
