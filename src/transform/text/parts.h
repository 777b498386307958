// Helpers that the generators of parent and child kernels share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/launches/sites.h"
#include "ptx/edit.h"
#include "ptx/tree.h"

namespace klap::transform {

// Markers of the templates for the device runtime's functions.
inline constexpr char kGetBufferMarker[] = "__klap_get_buffer";
inline constexpr char kDeviceLaunchMarker[] = "__klap_device_launch";

// Rounds up to the next multiple.
constexpr uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A function that a compiled template must define.
const ptx::Function& template_function(const ptx::Module& module, const char* name);

// ".weak " or ".visible ", for a kernel made from `f`.
std::string linkage_text(const ptx::Function& f);

// Removes labels that only debug sections refer to: the sections mean the original's code, not the copy's.
void drop_debug_labels(const ptx::Module& m, const ptx::Statement& body, ptx::Edits& edits);

// The token in front of which declarations may stand: the first one behind the unit's `.address_size`.
uint32_t behind_header(const ptx::Module& unit);

// The idiom that a template's own launch is written in.
const analysis::Idiom& rewriting_idiom(const analysis::Site& site);

// `.extern` declarations of the functions that stand for the markers of a template, where the unit has none.
using MarkedFunctions = std::vector<std::pair<const char*, std::string>>;  // marker, function
std::vector<std::string> marker_declarations(const ptx::Module& m, const ptx::Module& compiled,
                                             const MarkedFunctions& functions);

}  // namespace klap::transform
