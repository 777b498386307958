// The pipeline. rewrite_module() is its table of contents; each pass below it does one thing and says what it
// needs.
#include "jit/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "jit/cache/cache_key.h"
#include "jit/cache/disk_cache.h"
#include "jit/generate/build.h"
#include "jit/generate/retarget.h"
#include "jit/plan/plan.h"
#include "jit/plan/promotion_plan.h"
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
  std::set<std::pair<std::string, bool>> seen;
  std::vector<PlannedSite> kept;
  for (const auto& sites : by_parent(plan.sites)) {
    if (seen.emplace(sites.front().parent->function.name, sites.front().is_second).second) {
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

// Links all planned sites. If that fails, finds the parents that do not link by themselves, leaves them, and
// tries once more without them.
BuiltModule build_what_links(const Program& program, const Request& request, Plan& plan, Timings& timings) {
  leave_unproven_targets(program, request, plan);
  if (plan.sites.empty()) return {};
  const auto parents = by_parent(plan.sites);
  try {
    return build(program, request, plan, plan.sites, timings);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Toolchain) throw;
    if (parents.size() == 1) {
      if (error.code() != ErrorCode::Unsupported && !is_retargeted(plan, plan.sites)) throw;
      leave(plan, plan.sites, reason_of(error, plan, plan.sites), error.what());
      return {};
    }
  }
  std::vector<PlannedSite> linking;
  for (const auto& sites : parents) {
    try {
      build(program, request, plan, sites, timings);
      linking.insert(linking.end(), sites.begin(), sites.end());
    } catch (const Error& error) {
      leave(plan, sites, reason_of(error, plan, sites), error.what());
    }
  }
  plan.sites = std::move(linking);
  if (plan.sites.empty()) return {};
  return build(program, request, plan, plan.sites, timings);
}

// Modules that were rewritten before in this process. A module that is being built by one thread is waited
// for by the others; a failed build is not kept.
class MemoryCache {
 public:
  using Entry = std::shared_ptr<const RewrittenModule>;

  static MemoryCache& instance() {
    static auto& cache = *new MemoryCache;  // leaked: threads may load code during exit
    return cache;
  }

  template <typename Make>
  std::pair<Entry, bool> find_or_make(const std::string& key, const Make& make) {
    std::promise<Entry> promise;
    std::shared_future<Entry> waiting;
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(key);
      if (found != entries_.end()) {
        waiting = found->second;
      } else {
        entries_[key] = promise.get_future().share();
      }
    }
    if (waiting.valid()) return {waiting.get(), true};
    try {
      Entry made = std::make_shared<const RewrittenModule>(make());
      promise.set_value(made);
      return {made, false};
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      entries_.erase(key);
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Entry>> entries_;
};

RewrittenModule assemble(const Program& program, const Request& request, Plan& plan, Timings timings) {
  RewrittenModule out;
  BuiltModule built = build_what_links(program, request, plan, timings);
  note_device_memory(plan, plan.remarks, !built.cubin.empty());
  out.cubin = std::move(built.cubin);
  out.variants = std::move(built.variants);
  out.remarks = plan.remarks;
  out.timings = timings;
  return out;
}

RewrittenModule analyse_and_build(const Program& program, const Request& request) {
  Timings timings;
  dump_units(program, request);
  Plan plan = make_plan(program, request, &timings);
  drop_repeated_parents(plan);
  if (plan.sites.empty()) {
    RewrittenModule nothing;
    note_device_memory(plan, plan.remarks, false);
    nothing.remarks = plan.remarks;
    nothing.timings = timings;
    return nothing;
  }
  const auto [module, cached] = MemoryCache::instance().find_or_make(
      memory_key(program, request, plan.remarks), [&] { return assemble(program, request, plan, timings); });
  RewrittenModule out = *module;
  out.from_memory_cache = cached;
  return out;
}

}  // namespace

std::vector<SiteRemark> explain_module(const Program& program, const Request& request) {
  dump_units(program, request);
  Plan plan = make_plan(program, request);
  note_device_memory(plan, plan.remarks, !plan.sites.empty());
  return plan.remarks;
}

RewrittenModule rewrite_module(const Program& program, const Request& request) {
  const auto build = [&] { return analyse_and_build(program, request); };
  if (request.cache == nullptr || request.dump) return build();
  return request.cache->find_or_build(make_cache_key(program, request), request, build);
}

}  // namespace klap::jit
