#include "transform/runtime_calls/stand_in.h"

#include "ptx/edit.h"

namespace klap::transform {
namespace {

using ptx::ItemKind;
using ptx::Module;

bool is_head(const ptx::Item& item) {
  return item.kind == ItemKind::Version || item.kind == ItemKind::Target ||
         item.kind == ItemKind::AddressSize;
}

// Debug information, which names places in the code.
bool is_section(const Module& unit, const ptx::Item& item) {
  return item.kind == ItemKind::Other && unit.is(item.tokens.first, ".section");
}

// `.target sm_80, debug` asks for debug information.
void drop_debug(const Module& unit, const ptx::Item& target, ptx::Edits& edits) {
  for (uint32_t t = target.tokens.first + 1; t < target.tokens.last; ++t)
    if (unit.is(t, "debug")) edits.replace({t - 1, t + 1}, "");
}

}  // namespace

std::string without_code(const Module& unit, const std::string& mark) {
  ptx::Edits edits(unit);
  uint32_t end_of_head = 0;
  for (const ptx::Item& item : unit.items) {
    if (is_head(item)) end_of_head = item.tokens.last - 1;
    if (item.kind == ItemKind::Target) drop_debug(unit, item, edits);
    if (is_section(unit, item)) edits.replace(item.tokens, "");
  }
  edits.insert_after(end_of_head, "\n.weak .global .align 4 .u32 " + mark + " = 1;\n");
  for (const ptx::Function& function : unit.functions)
    if (function.is_definition)
      edits.replace(function.body.tokens,
                    "{ .reg .b32 %mark; ld.volatile.global.u32 %mark, [" + mark + "]; trap; }");
  return edits.apply();
}

}  // namespace klap::transform
