#include "transform/aggregate/slices.h"

#include <fmt/format.h>

#include <set>

#include "analysis/legality/slicing.h"

namespace klap::transform {
namespace {

constexpr char kParameter[] = "__klap_slice";
constexpr uint32_t kWholeOffset = 12;  // of the grid's extents, behind the first block

// A register of the grid, such as "%ctaid", with 0 for its component x.
struct GridRegister {
  std::string_view name;
  uint32_t axis = 0;
  auto operator<=>(const GridRegister&) const = default;
  [[nodiscard]] std::string replacement() const {
    return fmt::format("%klap_{}_{}", name.substr(1), "xyz"[axis]);
  }
};

std::string text_of(const GridRegister& r) {
  const std::string own = r.replacement();
  if (r.name == "%nctaid") {
    return fmt::format("\t.reg .b32 {0};\n\tld.param.u32 {0}, [{1}+{2}];\n", own, kParameter,
                       kWholeOffset + 4 * r.axis);
  }
  const std::string first = fmt::format("%klap_first_{}", "xyz"[r.axis]);
  return fmt::format(
      "\t.reg .b32 {0}, {1};\n\tld.param.u32 {0}, [{2}+{3}];\n\tmov.u32 {1}, {4}.{5};\n"
      "\tadd.s32 {1}, {1}, {0};\n",
      first, own, kParameter, 4 * r.axis, r.name, "xyz"[r.axis]);
}

}  // namespace

std::string slice_parameter() {
  return fmt::format(".param .align 4 .b8 {}[{}]", kParameter, analysis::kSliceBytes);
}

std::string read_slice(const analysis::FunctionFacts& parent, ptx::Edits& edits) {
  const ptx::Module& m = parent.module;
  std::set<GridRegister> used;
  const ptx::TokenRange body = parent.function.body.tokens;
  for (uint32_t t = body.first; t < body.last; ++t) {
    if (!m.is(t, "%ctaid") && !m.is(t, "%nctaid")) continue;
    const std::string_view axis = m.text(t + 1);
    const GridRegister found{m.is(t, "%ctaid") ? "%ctaid" : "%nctaid", static_cast<uint32_t>(axis[1] - 'x')};
    used.insert(found);
    edits.replace({t, t + 2}, found.replacement());
  }
  std::string text;
  for (const GridRegister& r : used) text += text_of(r);
  return text;
}

}  // namespace klap::transform
