#include "transform/aggregate/kept_launches.h"

#include <fmt/format.h>

#include "transform/text/parts.h"

namespace klap::transform {
namespace {

constexpr char kRecordIfSmallFunction[] = "__klap_record_if_small";

}  // namespace

std::string KeptLaunch::name(const char* what) const { return fmt::format("klap_k_{}{}", what, number); }

// A label with the statement that must stand behind it.
std::string KeptLaunch::landing(const char* what) const {
  return fmt::format("${0}:\n\t.reg .pred %{0};\n\tmov.pred %{0}, 0;\n", name(what));
}

std::string KeptLaunch::registers() const {
  return fmt::format("\t.reg .pred %{0};\n\t.reg .b64 %{1};\n\tmov.pred %{0}, 0;\n", name("own"),
                     name("arguments"));
}

Surroundings KeptLaunch::around(LineTables& lines) const {
  InlineCall call;
  call.prefix = "klap_r_";
  call.arguments = {queue,         site.grid[0],  site.grid[1],  site.grid[2],
                    site.block[0], site.block[1], site.block[2], site.shared};
  if (!bound.empty()) call.arguments.push_back(bound);
  call.results = {{0, "%" + name("arguments")}};
  Around ask, launch;
  ask.before = fmt::format(
      "{{\n\t{5}\n\tsetp.eq.u64 %{0}, %{1}, 0;\n\t@%{0} bra ${2};\n\tmov.b64 {3}, %{1};\n\tbra ${4};\n",
      name("own"), name("arguments"), name("ask"), site.buffer, name("asked"),
      inline_function(record, template_function(record, kRecordIfSmallFunction), call, lines));
  ask.before += landing("ask");
  ask.after = landing("asked") + "\t}\n";
  launch.before = fmt::format("{{\n\t@%{} bra ${};\n", name("own"), name("launch"));
  if (!site.result.empty()) launch.before += fmt::format("\tmov.b32 {}, 0;\n", site.result);
  launch.before += fmt::format("\tbra ${};\n{}", name("launched"), landing("launch"));
  launch.after = landing("launched") + "\t}\n";
  return {{site.get_scope, ask}, {site.launch_scope, launch}};
}

}  // namespace klap::transform
