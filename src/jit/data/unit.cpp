#include "jit/data/unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace klap::jit {

namespace {

// Why a unit has no code for compute capability `sm`, if what it has for others launches, or cannot be looked
// into.
std::string why_without_code(const container::Fatbin& fatbin, uint32_t sm) {
  std::set<std::string> targets;
  bool is_machine_code = false;
  for (const container::FatbinEntry& entry : fatbin.entries) {
    is_machine_code = is_machine_code || entry.kind == container::EntryKind::Cubin;
    std::string target = fmt::format("sm_{}", entry.arch);
    if (entry.arch_suffix() != 0) target += entry.arch_suffix();
    targets.insert(std::move(target));
  }
  if (targets.empty()) return "";
  if (!is_machine_code) {
    return fmt::format(
        "the unit holds LTO-IR alone (for {1}), and whether that launches kernels cannot be seen; build it "
        "with PTX, as by nvcc -gencode arch=compute_{0},code=compute_{0}",
        sm, fmt::join(targets, ", "));
  }
  if (!container::mentions_device_launch(fatbin)) return "";
  return fmt::format(
      "the unit launches kernels but holds nothing for sm_{0}, only machine code for {1}; build it with PTX, "
      "as "
      "by nvcc -gencode arch=compute_{0},code=compute_{0}",
      sm, fmt::join(targets, ", "));
}

bool machine_code_launches(std::string_view cubin, const std::string& name) {
  return container::mentions_device_launch(cubin, name) || container::has_device_launch(cubin, name);
}

}  // namespace

Program program_from_fatbins(const std::vector<container::Fatbin>& fatbins, uint32_t sm) {
  Program program;
  for (const container::Fatbin& fatbin : fatbins) {
    Unit unit;
    unit.name = fmt::format("unit {}", program.units.size());
    const container::FatbinEntry* cubin = container::best_cubin(fatbin, sm);
    const container::FatbinEntry* ptx = container::best_ptx(fatbin, sm);
    if (cubin != nullptr) {
      unit.cubin = cubin->payload();
      unit.cubin_suffix = cubin->arch_suffix();
    }
    // The runtime has a megabyte, which takes most of the time of a warm start to decompress. This is done
    // once.
    unit.is_device_runtime = cubin != nullptr ? container::is_device_runtime(unit.cubin, cubin->describe())
                                              : container::is_device_runtime(fatbin);
    // The runtime's PTX is only needed where there is no machine code of it.
    if (ptx != nullptr && (!unit.is_device_runtime || cubin == nullptr)) {
      unit.ptx = ptx->payload();
      unit.options = ptx->options;
    }
    // PTX that the driver would not take may still do as a source for the variants.
    const container::FatbinEntry* foreign =
        ptx == nullptr && !unit.is_device_runtime ? container::nearest_foreign_ptx(fatbin, sm) : nullptr;
    if (foreign != nullptr) {
      unit.ptx = foreign->payload();
      unit.options = foreign->options;
    }
    if (unit.options.empty() && cubin != nullptr) unit.options = cubin->options;
    if (!unit.is_device_runtime) {
      if (unit.ptx.empty() && unit.cubin.empty()) unit.without_code = why_without_code(fatbin, sm);
      unit.launches =
          !unit.without_code.empty() || (unit.cubin.empty() ? container::mentions_device_launch(fatbin, sm)
                                                            : machine_code_launches(unit.cubin, unit.name));
    }
    program.units.push_back(std::move(unit));
  }
  return program;
}

Program program_from_machine_code(std::string cubin, std::string name) {
  Program program;
  Unit unit;
  unit.launches = machine_code_launches(cubin, name);
  unit.name = std::move(name);
  unit.cubin = std::move(cubin);
  program.units.push_back(std::move(unit));
  return program;
}

Program program_from_ptx(std::string_view ptx, std::string name) {
  Program program;
  Unit unit;
  unit.name = std::move(name);
  unit.ptx = std::string(ptx);
  unit.launches = ptx.find("LaunchDevice") != std::string_view::npos;
  program.units.push_back(std::move(unit));
  return program;
}

}  // namespace klap::jit
