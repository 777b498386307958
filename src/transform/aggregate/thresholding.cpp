#include "transform/aggregate/thresholding.h"

#include <fmt/format.h>

#include <array>

#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

constexpr char kRunFunction[] = "__klap_run_serial_child";
constexpr char kBodyMarker[] = "__klap_child_body";
constexpr char kBodyPrefix[] = "klap_o_";
constexpr size_t kPlaces = 9;  // the marker's operands: block, grid and thread, x y z each

// The child's body, for one thread of it. The operands are copied, because the body's own names must not
// depend on the template's.
std::string body_text(const ptx::Module& m, const RecordingSite& site,
                      const std::vector<std::string>& operands, LineTables& lines) {
  if (operands.size() != kPlaces)
    throw Error(ErrorCode::Internal, "the record template calls its marker in an unknown form");
  InlineKernel kernel;
  kernel.prefix = kBodyPrefix;
  kernel.operands = &site.site.arguments;
  kernel.coherent = true;
  for (size_t axis = 0; axis < 3; ++axis) kernel.ntid.at(axis) = std::to_string(site.block.at(axis));
  const std::array vectors = {&kernel.ctaid, &kernel.nctaid, &kernel.tid};
  std::string text = "{\n";
  for (size_t i = 0; i < kPlaces; ++i) {
    const std::string name = fmt::format("%{}place{}", kBodyPrefix, i);
    text += fmt::format("\t.reg .b32 {0};\n\tmov.b32 {0}, {1};\n", name, operands[i]);
    vectors.at(i / 3)->at(i % 3) = name;
  }
  return text + "\t" + inline_kernel(m, *site.child, kernel, lines) + "\n\t}";
}

}  // namespace

std::string serial_child_text(const ptx::Module& m, const RecordingSite& recording, LineTables& lines) {
  const uint32_t most = recording.thresholding->most_threads;
  std::string text = fmt::format("\n\t.reg .pred %klap_recorded;\n\tsetp.gt.u64 %klap_recorded, {}, {};\n",
                                 recording.site.buffer, most);
  if (most == 0) return text + "\t@!%klap_recorded bra $klap_not_recorded;\n";
  InlineCall call;
  call.prefix = "klap_n_";
  call.arguments = {"%klap_serial_threads", recording.site.grid[0]};
  call.body_marker = kBodyMarker;
  call.body = [&](const std::vector<std::string>& operands) {
    return body_text(m, recording, operands, lines);
  };
  text += "\t@%klap_recorded bra $klap_is_recorded;\n";
  text += fmt::format("\t.reg .b32 %klap_serial_threads;\n\tcvt.u32.u64 %klap_serial_threads, {};\n\t",
                      recording.site.buffer);
  text += inline_function(recording.record, template_function(recording.record, kRunFunction), call, lines);
  return text + "\n\tbra $klap_not_recorded;\n$klap_is_recorded:\n";
}

std::string serial_child_end() { return "$klap_not_recorded:\n"; }

void read_coherently(const analysis::FunctionFacts& parent, ptx::Edits& edits) {
  const ptx::Module& m = parent.module;
  for (const analysis::FlatInstruction& i : parent.flow.instructions()) {
    const ptx::Statement& s = *i.statement;
    if (m.is(s.head, "ldu")) edits.replace({s.head, s.head + 1}, "ld");
    if (!m.is(s.head, "ld")) continue;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      if (m.is(t, ".nc")) edits.replace({t, t + 1}, "");
    }
  }
}

}  // namespace klap::transform
