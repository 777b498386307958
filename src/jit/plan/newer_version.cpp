#include "jit/plan/newer_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/facts/rejection.h"
#include "ptx/tree.h"
#include "support/demangle.h"
#include "support/generated_name.h"
#include "transform/runtime_calls/newer_runtime.h"
#include "transform/suspension/poll_waits.h"
#include "transform/suspension/split_unit.h"

namespace klap::jit {

namespace {

// The names of version 2 contain neither of the first two.
bool is_older(const Unit& unit) {
  return unit.ptx.find("cudaLaunchDevice") != std::string::npos ||
         unit.ptx.find("cudaDeviceSynchronize") != std::string::npos;
}
bool is_newer(const Unit& unit) { return unit.ptx.find("__cudaCDP2LaunchDevice") != std::string::npos; }

bool waits_in_newer(const Unit& unit) {
  return unit.ptx.find("__klap_device_synchronize") != std::string::npos;
}

template <class Is>
bool any_unit(const Program& program, const Is& is) {
  return std::ranges::any_of(program.units,
                             [&](const Unit& unit) { return !unit.is_device_runtime && is(unit); });
}

// Whether the program is of version 1 and must be changed, of version 2 and waits, or neither. A unit that
// launches and has no PTX may be of either version.
enum class Kind : uint8_t { Neither, Older, WaitsInNewer };
Kind kind_of(const Program& program, uint32_t sm) {
  constexpr uint32_t kFirstWithoutOlder = 90;
  const bool is_unknown =
      any_unit(program, [](const Unit& unit) { return unit.launches && unit.ptx.empty(); });
  const bool has_older = any_unit(program, is_older), has_newer = any_unit(program, is_newer);
  if (is_unknown || (has_older && has_newer)) return Kind::Neither;
  if (has_older) return sm < kFirstWithoutOlder ? Kind::Neither : Kind::Older;
  return any_unit(program, waits_in_newer) ? Kind::WaitsInNewer : Kind::Neither;
}

// The unit in version 2, with waits that return at once; nothing if that is what it is.
std::optional<std::string> in_newer_text(const Unit& unit) {
  auto text = transform::in_newer_runtime(ptx::parse(unit.ptx, unit.name));
  if (!waits_in_newer(unit)) return text;
  auto idle = transform::with_idle_waits(ptx::parse(text ? *text : unit.ptx, unit.name));
  return idle ? std::move(idle) : std::move(text);
}

// False if no kernel polls.
bool stop_at_polls(Unit& unit) {
  auto text = transform::with_waits_at_polls(ptx::parse(unit.ptx, unit.name));
  if (!text) return false;
  unit.ptx = std::move(*text);
  unit.cubin.clear();
  return true;
}

// True if another unit than that one may call the function.
bool is_named_elsewhere(const Program& program, const Unit& unit, const std::string& function) {
  return std::ranges::any_of(program.units, [&](const Unit& other) {
    return !other.is_device_runtime && other.name != unit.name &&
           other.ptx.find(function) != std::string::npos;
  });
}

// Why a kernel in the unit cannot be split where it waits; empty if all can, or none waits.
std::string split(const Program& program, Unit& unit, std::vector<KernelWait>& waits) {
  auto split = transform::split_at_waits(ptx::parse(unit.ptx, unit.name));
  if (!split) return "";
  if (!split->problem.empty()) return split->problem;
  for (const std::string& function : split->waiting_functions)
    if (is_named_elsewhere(program, unit, function))
      return function + " waits or launches, and another unit may call it";
  unit.ptx = std::move(split->text);
  unit.cubin.clear();
  for (const transform::SplitWait& wait : split->waits)
    waits.push_back(
        {wait.kernel, fmt::format("{} waits for its children ({}): its blocks stop there, {} bytes a thread",
                                  demangle(wait.kernel), wait.place, wait.bytes_per_thread)});
  return "";
}

// Relocatable code keeps functions whose calls were all inlined. No launch is made there.
bool is_run(const SiteRemark& remark) {
  return remark.rewritten || remark.reason == to_string(analysis::Reason::NeverCalled);
}

}  // namespace

NewerVersion in_newer_version(const Program& program, uint32_t sm, Polls polls) {
  NewerVersion out;
  const Kind kind = kind_of(program, sm);
  if (kind == Kind::Neither) return out;
  out.is_changed = kind == Kind::Older;
  Program newer = program;
  // The program's may be too old to have the newer functions.
  if (out.is_changed) std::erase_if(newer.units, [](const Unit& unit) { return unit.is_device_runtime; });
  for (Unit& unit : newer.units) {
    const bool may_wait = unit.ptx.find("cuda") != std::string::npos || waits_in_newer(unit);
    if (unit.is_device_runtime || !may_wait) continue;
    if (polls == Polls::AreWaits && stop_at_polls(unit)) out.stops_at_polls = true;
    if (const std::string why = split(program, unit, out.waits); !why.empty()) {
      out.problem = unit.name + ": " + why;
      return out;
    }
    auto text = in_newer_text(unit);
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
    if (version.is_changed) remark.notes.emplace_back("dynamic parallelism version 1, run as version 2");
    for (const KernelWait& wait : version.waits)
      if (wait.kernel == remark.parent || wait.kernel == name_made_from(remark.parent))
        remark.notes.push_back(wait.text);
  }
  return std::ranges::all_of(remarks, is_run);
}

void note_why_older(std::vector<SiteRemark>& remarks, const NewerVersion& version,
                    const std::vector<SiteRemark>& newer) {
  std::string why = version.problem;
  // A launch that is left only because of another one says little.
  const auto says_why = [](const SiteRemark& remark) {
    return !is_run(remark) && remark.reason != to_string(analysis::Reason::SeveralSites);
  };
  auto left = std::ranges::find_if(newer, says_why);
  if (left == newer.end()) left = std::ranges::find_if_not(newer, is_run);
  if (why.empty() && left != newer.end())
    why = fmt::format("{}:{}:{} would be left: {}: {}", left->unit, left->line, left->column, left->reason,
                      left->detail);
  if (why.empty()) return;
  const char* const what = version.is_changed ? "not run as version 2: " : "not split at its waits: ";
  for (SiteRemark& remark : remarks) remark.notes.push_back(what + why);
}

}  // namespace klap::jit
