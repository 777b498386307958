#include "jit/second_image.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/tree.h"

namespace klap::jit {

namespace {

// nvcc names texts like this.
bool is_text(const ptx::Variable& variable) {
  return variable.linkage == ptx::Linkage::Internal && variable.space == ".global" && variable.initialised &&
         variable.name.starts_with("$str");
}

bool ends_with_its_kernel(const ptx::Variable& variable) {
  return variable.space == ".shared" || variable.space == ".local";
}

std::optional<std::string> obstacle_in(const Unit& unit) {
  if (unit.ptx.empty()) return fmt::format("{} has no PTX", unit.name);
  const ptx::Module module = ptx::parse(unit.ptx, unit.name);
  const auto kept = std::ranges::find_if(module.variables, [](const ptx::Variable& variable) {
    return !ends_with_its_kernel(variable) && !is_text(variable);
  });
  if (kept != module.variables.end()) return fmt::format("{} has the variable {}", unit.name, kept->name);
  for (uint32_t token = 0; token < module.tokens.size(); ++token) {
    if (module.is(token, ".callprototype") || module.is(token, ".calltargets"))
      return fmt::format("{} calls functions by their addresses", unit.name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> obstacle_to_second_image(const Program& program) {
  for (const Unit& unit : program.units) {
    if (unit.is_device_runtime) continue;
    if (auto obstacle = obstacle_in(unit)) return obstacle;
  }
  return std::nullopt;
}

}  // namespace klap::jit
