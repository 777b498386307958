#include "transform/suspension/frame_functions.h"

#include <string_view>

#include "analysis/suspension/suspension.h"
#include "ptx/edit.h"

namespace klap::transform {

namespace {

using ptx::Function;
using ptx::Item;
using ptx::ItemKind;
using ptx::Module;

bool is_frame_function(const Function& function) {
  return function.name == analysis::kTakeFrame || function.name == analysis::kGiveFrame;
}

// The definitions of `frames`, for this unit alone. They will stand at that token. Functions that the unit
// declares before are left out. The one variable that others may name is the same in all units.
std::string definitions(const Module& unit, uint32_t at, const Module& frames) {
  std::string text;
  for (const Item& item : frames.items) {
    if (item.kind == ItemKind::Version || item.kind == ItemKind::Target || item.kind == ItemKind::AddressSize)
      continue;
    ptx::TokenRange tokens = item.tokens;
    if (item.kind == ItemKind::Function) {
      const Function& function = frames.functions[item.index];
      const Function* const declared = unit.find_function(function.name);
      if (!function.is_definition && declared != nullptr && declared->tokens.first < at) continue;
      if (function.is_definition && is_frame_function(function))
        while (!frames.is(tokens.first, ".func")) ++tokens.first;
    }
    if (item.kind == ItemKind::Variable && frames.variables[item.index].linkage == ptx::Linkage::Visible) {
      while (!frames.is(tokens.first, ".global")) ++tokens.first;
      text += ".weak ";
    }
    text += std::string(frames.text(tokens)) + "\n";
  }
  return text;
}

}  // namespace

bool has_frame_functions(const std::string& ptx) {
  return ptx.find(analysis::kTakeFrame) != std::string::npos;
}

std::string with_frame_functions(const std::string& ptx, const Module& frames, const std::string& name) {
  const Module unit = ptx::parse(ptx, name);
  ptx::Edits edits(unit);
  bool are_defined = false;
  for (const Function& function : unit.functions) {
    if (!is_frame_function(function)) continue;
    edits.replace(function.tokens, are_defined ? "" : definitions(unit, function.tokens.first, frames));
    are_defined = true;
  }
  return edits.apply();
}

}  // namespace klap::transform
