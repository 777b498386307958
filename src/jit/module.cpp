// The pipeline. analyse() and run_passes() are its table of contents: one line for each step, in order. The
// page src/README.md lists the passes with their files.
#include "jit/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "jit/cache/cache_key.h"
#include "jit/cache/disk_cache.h"
#include "jit/cache/memory_cache.h"
#include "jit/generate/build.h"
#include "jit/generate/retarget.h"
#include "jit/plan/find_device_memory.h"
#include "jit/plan/newer_version.h"
#include "jit/plan/plan.h"
#include "jit/strategy/promotion_plan.h"
#include "support/error.h"

namespace klap::jit {
namespace {

void dump_units(const Program& program, const Request& request) {
  if (!request.dump) return;
  for (size_t u = 0; u < program.units.size(); ++u) {
    const Unit& unit = program.units[u];
    const auto stage = [&](const char* ending, const std::string& bytes) {
      if (!bytes.empty()) request.dump({Pass::Load, fmt::format("unit{}.{}", u, ending), "", bytes});
    };
    stage("ptx", unit.ptx);
    stage("cubin", unit.cubin);
    stage("options", unit.options);
  }
}

// Kernels by name: a weak parent of several units has one variant, from the first unit, as the linker keeps
// one body.
void drop_repeated_parents(Plan& plan) {
  std::set<std::tuple<std::string, bool, bool, bool>> seen;
  std::vector<PlannedSite> kept;
  for (const auto& sites : by_parent(plan.sites)) {
    const PlannedSite& any = sites.front();
    if (seen.emplace(any.parent->function.name, any.is_second, any.in_blocks, any.fused).second) {
      kept.insert(kept.end(), sites.begin(), sites.end());
      continue;
    }
    for (const PlannedSite& site : sites) {
      plan.remarks[site.remark].notes.emplace_back(
          "the same kernel stands in an earlier unit, whose variant serves both");
    }
  }
  plan.sites = std::move(kept);
}

// Units built with different options cannot be assembled in one link, and PTX for another target may need it;
// anything else is a failure of ours.
bool is_retargeted(const Plan& plan, std::span<const PlannedSite> sites) {
  return std::ranges::any_of(sites, [&](const PlannedSite& site) {
    return !plan.units[site.parent_unit]->made_for().empty() ||
           !plan.units[site.child_unit]->made_for().empty();
  });
}
analysis::Reason reason_of(const Error& error, const Plan& plan, std::span<const PlannedSite> sites) {
  if (error.code() == ErrorCode::Unsupported) return analysis::Reason::UnitOptions;
  return is_retargeted(plan, sites) ? analysis::Reason::TargetTooNew : analysis::Reason::BuildFailed;
}

bool are_of_one_kernel(std::span<const PlannedSite> sites) {
  const std::string_view name = sites.front().parent->function.name;
  return std::ranges::all_of(sites, [&](const PlannedSite& s) { return s.parent->function.name == name; });
}

// Links all planned sites. If that fails, finds the variants that do not link by themselves, leaves them, and
// tries once more without them. Where the only kernel's first variant does not link, that is a failure.
BuiltModule build_what_links(const Program& program, const Request& request, Plan& plan, Timings& timings) {
  reject_unproven_targets(program, request, plan);
  if (plan.sites.empty()) return {};
  const auto variants = by_parent(plan.sites);
  const bool is_one_kernel = are_of_one_kernel(plan.sites);
  const auto is_failure = [&](const Error& error) {
    return is_one_kernel && error.code() != ErrorCode::Unsupported && !is_retargeted(plan, plan.sites);
  };
  try {
    return build(program, request, plan, plan.sites, timings);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Toolchain) throw;
    if (variants.size() == 1 && is_failure(error)) throw;
    if (variants.size() == 1) {
      reject(plan, plan.sites, reason_of(error, plan, plan.sites), error.what());
      return {};
    }
  }
  std::vector<PlannedSite> linking;
  for (const auto& sites : variants) {
    try {
      build(program, request, plan, sites, timings);
      linking.insert(linking.end(), sites.begin(), sites.end());
    } catch (const Error& error) {
      if (linking.empty() && is_failure(error)) throw;
      reject(plan, sites, reason_of(error, plan, sites), error.what());
    }
  }
  plan.sites = std::move(linking);
  if (plan.sites.empty()) return {};
  return build(program, request, plan, plan.sites, timings);
}

RewrittenModule without_code(const Plan& plan, const Timings& timings) {
  RewrittenModule out;
  out.remarks = plan.remarks;
  out.timings = timings;
  return out;
}

RewrittenModule build_module(const Program& program, const Request& request, Plan& plan, Timings timings) {
  BuiltModule built = build_what_links(program, request, plan, timings);
  note_device_memory(plan, plan.remarks, !built.cubin.empty());
  RewrittenModule out = without_code(plan, timings);
  out.cubin = std::move(built.cubin);
  out.variants = std::move(built.variants);
  return out;
}

// Everything up to the remarks. Neither NVRTC nor nvJitLink is needed for it.
Plan analyse(const Program& program, const Request& request, Timings& timings) {
  dump_units(program, request);
  Plan plan = load_units(program, request, timings);  // parses, inlines calls and copy loops
  plan_sites(plan, request, timings);  // finds sites and options; promotes, judges, optimises; writes remarks
  plan.memory = find_device_memory(program, request, plan);
  return plan;
}

RewrittenModule run_passes(const Program& program, const Request& request) {
  Timings timings;
  Plan plan = analyse(program, request, timings);
  drop_repeated_parents(plan);
  if (plan.sites.empty()) {
    note_device_memory(plan, plan.remarks, false);
    return without_code(plan, timings);
  }
  // Generates, places in units, links, verifies: unless another request has come to the same decisions.
  const auto [module, cached] =
      MemoryCache::instance().find_or_make(memory_key(program, request, plan.remarks),
                                           [&] { return build_module(program, request, plan, timings); });
  RewrittenModule out = *module;
  out.from_memory_cache = cached;
  return out;
}

std::vector<SiteRemark>& remarks_of(RewrittenModule& module) { return module.remarks; }
std::vector<SiteRemark>& remarks_of(std::vector<SiteRemark>& remarks) { return remarks; }

// Runs `run` for the program in version 2 if all of its launches can be rewritten so, else for it as it is.
// Kernels stop where they poll only if launches would be left otherwise, whatever the reason: which one of
// several is named says little.
template <class Run>
auto in_some_version(const Program& program, const Request& request, const Run& run) {
  NewerVersion newer;
  decltype(run(program, request, newer)) in_newer;
  for (const Polls polls : {Polls::Stay, Polls::AreWaits}) {
    NewerVersion version = in_newer_version(program, request.sm, polls);
    if (polls == Polls::AreWaits && !version.stops_at_polls) break;
    newer = std::move(version);
    if (!newer.program) break;
    for (const Request& each : requests_for_all_launches(request)) {
      in_newer = run(*newer.program, each, newer);
      if (all_run_in_newer_version(remarks_of(in_newer), newer)) return in_newer;
    }
  }
  auto as_it_is = run(program, request, NewerVersion{});
  note_why_older(remarks_of(as_it_is), newer, remarks_of(in_newer));
  return as_it_is;
}

}  // namespace

std::vector<SiteRemark> explain_module(const Program& program, const Request& request) {
  return in_some_version(program, request, [](const Program& of, const Request& how, const NewerVersion&) {
    Timings timings;
    Plan plan = analyse(of, how, timings);
    note_device_memory(plan, plan.remarks, !plan.sites.empty());
    return plan.remarks;
  });
}

RewrittenModule rewrite_module(const Program& program, const Request& request) {
  const auto build = [&] {
    return in_some_version(program, request,
                           [](const Program& of, const Request& how, const NewerVersion& version) {
                             RewrittenModule module = run_passes(of, how);
                             for (Variant& variant : module.variants) variant.stops = !version.waits.empty();
                             return module;
                           });
  };
  if (request.cache == nullptr || request.dump) return build();
  const CacheKey key = make_cache_key(program, request);
  RewrittenModule module = request.cache->find_or_build(key, request, build);
  module.key = key.hash;
  return module;
}

std::optional<RewrittenModule> find_rewritten(const Program& program, const Request& request) {
  if (request.cache == nullptr || request.dump) return std::nullopt;
  const CacheKey key = make_cache_key(program, request);
  std::optional<RewrittenModule> module = request.cache->find(key, request);
  if (module) module->key = key.hash;
  return module;
}

}  // namespace klap::jit
