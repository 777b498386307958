#include "jit/plan/find_device_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "analysis/launches/device_memory.h"
#include "analysis/legality/unit_checks.h"
#include "jit/plan/options.h"
#include "support/error.h"
#include "support/hash.h"

namespace klap::jit {
namespace {

using analysis::kHeapFunctions;
using analysis::kRuntimeHeapFunctions;

bool is_set_to(const Request& request, std::string_view value) {
  const auto given = heap_setting(request);
  return given && given->text == value;
}

// The first of the functions that machine code may refer to: its name stands whole in it, at the end of
// another name or by itself. Names of functions that are called stand in relocatable code.
std::string_view function_in_machine_code(std::string_view cubin) {
  for (const auto& names : {kHeapFunctions, kRuntimeHeapFunctions}) {
    for (const std::string_view name : names) {
      if (cubin.find(std::string(name) + '\0') != std::string_view::npos) return name;
    }
  }
  return {};
}

class Finder {
 public:
  Finder(const Program& program, const Request& request, Plan& plan)
      : program_(program), request_(request), plan_(plan) {}

  DeviceMemory find() {
    for (size_t u = 0; u < program_.units.size(); ++u) {
      if (program_.units[u].is_device_runtime) continue;
      std::string rejection = examine(u);
      if (!rejection.empty() && out_.rejection.empty())
        out_.rejection = fmt::format("{}: {}", program_.units[u].name, rejection);
    }
    if (out_.rejection.empty() && !request_.device_runtime)
      out_.rejection = "the module is linked without the device runtime";
    if (out_.rejection.empty()) out_.rejection = check_options();
    Hasher hasher;
    for (const size_t u : out_.units) hasher.add(program_.units[u].ptx);
    out_.in_chunks = is_set_to(request_, "chunks");
    out_.tag = hasher.hex().substr(0, 8);
    return std::move(out_);
  }

 private:
  // Why the unit stands in the way; empty if it does not.
  std::string examine(size_t u) {
    const Unit& unit = program_.units[u];
    if (unit.ptx.empty()) return "it carries no PTX";
    std::set<std::string> functions;
    if (analysis::may_use_device_memory(unit.ptx)) {
      try {
        functions = analysis::device_memory_functions(*plan_.units[u]->original());
      } catch (const Error& error) {
        return fmt::format("its PTX cannot be read: {}", error.what());
      }
    }
    if (functions.empty()) {
      const std::string_view hidden = function_in_machine_code(unit.cubin);
      return hidden.empty() ? "" : fmt::format("its machine code calls {}, its PTX does not", hidden);
    }
    out_.units.insert(u);
    for (const std::string_view name : kRuntimeHeapFunctions)
      out_.has_runtime = out_.has_runtime || functions.contains(std::string(name));
    return check_unit(u);
  }

  // To assembling all code of a unit that takes or frees memory anew.
  std::string check_unit(size_t u) {
    const ptx::Module& module = *plan_.units[u]->original();
    const std::string& made_for = plan_.units[u]->made_for();
    if (!made_for.empty()) return fmt::format("its PTX is for {}", made_for);
    if (module.debug && !request_.debug_units) return "it was compiled for debugging";
    return analysis::check_own_memory(module);
  }

  // PTX of one link shares its options (LinkPlanner), and variants of the others are PTX as well.
  [[nodiscard]] std::string check_options() const {
    const Unit* first = nullptr;
    for (const Unit& unit : program_.units) {
      if (unit.is_device_runtime) continue;
      if (first == nullptr) first = &unit;
      if (parse_options(unit.options).code_changing != parse_options(first->options).code_changing)
        return fmt::format("{} and {} were built with different options", first->name, unit.name);
    }
    return {};
  }

  const Program& program_;
  const Request& request_;
  Plan& plan_;
  DeviceMemory out_;
};

}  // namespace

DeviceMemory find_device_memory(const Program& program, const Request& request, Plan& plan) {
  const bool is_asked = is_set_to(request, "warp") || is_set_to(request, "chunks");
  return is_asked ? Finder(program, request, plan).find() : DeviceMemory();
}

namespace {

bool takes_memory(ParsedUnit& unit) {
  if (!analysis::may_use_device_memory(unit.unit().ptx)) return false;
  const std::set<std::string> functions = analysis::device_memory_functions(*unit.original());
  return functions.contains(std::string(kHeapFunctions[0])) ||
         functions.contains(std::string(kRuntimeHeapFunctions[0]));
}

// Says at the first site of a unit that takes memory how it could be faster.
void note_own_memory(const Plan& plan, std::vector<SiteRemark>& remarks) {
  std::set<size_t> units;  // that were searched
  const auto taking = std::ranges::find_if(plan.sites, [&](const PlannedSite& site) {
    return units.insert(site.parent_unit).second && takes_memory(*plan.units[site.parent_unit]);
  });
  if (taking == plan.sites.end() || !remarks[taking->remark].rewritten) return;
  remarks[taking->remark].notes.emplace_back(
      "each thread takes its device memory alone; if nobody but this module frees it, "
      "KLAP_AGGREGATE_MALLOC=chunks is faster");
}

}  // namespace

void note_device_memory(const Plan& plan, std::vector<SiteRemark>& remarks, bool is_built) {
  const DeviceMemory& memory = plan.memory;
  if (remarks.empty()) return;
  if (memory.units.empty()) return note_own_memory(plan, remarks);
  const auto rewritten = std::ranges::find(remarks, true, &SiteRemark::rewritten);
  SiteRemark& remark = rewritten == remarks.end() ? remarks.front() : *rewritten;
  std::string why = memory.rejection;
  if (why.empty() && !is_built) why = "no launch of the module is rewritten";
  if (!why.empty()) {
    remark.notes.push_back("the module's device memory is not aggregated: " + why);
    return;
  }
  std::vector<std::string> units;
  for (const size_t u : memory.units) units.push_back(plan.units[u]->unit().name);
  remark.notes.push_back(fmt::format(
      "the module's device memory is aggregated {}, in the program's own kernels, too: units assembled "
      "anew for it: {}",
      memory.in_chunks ? "in chunks" : "by warp", fmt::join(units, ", ")));
}

}  // namespace klap::jit
