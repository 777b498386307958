#include "jit/data/unit.h"

#include <fmt/format.h>

namespace klap::jit {

Program program_from_fatbins(const std::vector<container::Fatbin>& fatbins, uint32_t sm) {
  Program program;
  for (const container::Fatbin& fatbin : fatbins) {
    Unit unit;
    unit.name = fmt::format("unit {}", program.units.size());
    unit.is_device_runtime = container::is_device_runtime(fatbin);
    unit.launches = !unit.is_device_runtime && container::mentions_device_launch(fatbin, sm);
    const container::FatbinEntry* cubin = container::best_cubin(fatbin, sm);
    const container::FatbinEntry* ptx = container::best_ptx(fatbin, sm);
    if (cubin != nullptr) {
      unit.cubin = cubin->payload();
      unit.cubin_suffix = cubin->arch_suffix();
    }
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
    program.units.push_back(std::move(unit));
  }
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
