#include "transform/aggregate/thresholding.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

constexpr char kRunFunction[] = "__klap_run_serial_child";
constexpr char kBodyMarker[] = "__klap_child_body", kBodyMarkerOfWarps[] = "__klap_child_body_of";
constexpr char kBodyPrefix[] = "klap_o_";
// The marker's operands: block, grid and thread, x y z each. Lanes that share their children's threads have
// three more.
constexpr size_t kPlaces = 9, kMask = 9, kOwner = 10, kRuns = 11, kOperandsOfWarps = 12;

// Declares `to` and fetches into it what lane `owner` has in the argument's operand, which is 4 or 8 bytes
// wide.
std::string fetch_text(const analysis::Argument& argument, const std::string& to, const std::string& owner,
                       const std::string& mask) {
  const auto fetch = [&](const std::string& word) {
    return fmt::format("\tshfl.sync.idx.b32 {0}, {0}, {1}, 31, {2};\n", word, owner, mask);
  };
  const uint32_t bits = 8 * argument.bytes;
  const std::string own = fmt::format("\t.reg .b{0} {1};\n\tmov.b{0} {1}, {2};\n", bits, to, argument.source);
  if (bits == 32) return own + fetch(to);
  const std::string low = to + "_low", high = to + "_high";
  return own + fmt::format("\t.reg .b32 {0}, {1};\n\tmov.b64 {{{0}, {1}}}, {2};\n", low, high, to) +
         fetch(low) + fetch(high) + fmt::format("\tmov.b64 {0}, {{{1}, {2}}};\n", to, low, high);
}

// The child's arguments as lane `owner` has them, in registers of this lane. `text` gets the code that
// fetches them. Arguments that are equal in all lanes keep their operands, and so do those that nobody reads.
std::vector<analysis::Argument> arguments_of(const RecordingSite& site, const std::string& owner,
                                             const std::string& mask, std::string& text) {
  std::vector<analysis::Argument> arguments = site.site.arguments;
  std::map<std::string, std::string> fetched;
  for (analysis::Argument& argument : arguments) {
    if (!argument.source.starts_with('%')) continue;
    const ArgumentPlace* const place = site.layout.find(argument.offset, argument.bytes);
    if (site.layout.packed && (place == nullptr || place->once)) continue;
    const auto [known, is_new] =
        fetched.try_emplace(argument.source, fmt::format("%{}owners{}", kBodyPrefix, fetched.size()));
    if (is_new) text += fetch_text(argument, known->second, owner, mask);
    argument.source = known->second;
  }
  return arguments;
}

// The child's body, for one thread of it. The operands are copied, because the body's own names must not
// depend on the template's.
std::string body_text(const ptx::Module& m, const RecordingSite& site,
                      const std::vector<std::string>& operands, LineTables& lines) {
  const bool by_warps = site.thresholding->by_warps();
  if (operands.size() != (by_warps ? kOperandsOfWarps : kPlaces))
    throw Error(ErrorCode::Internal, "the record template calls its marker in an unknown form");
  InlineKernel kernel;
  kernel.prefix = kBodyPrefix;
  kernel.coherent = true;
  for (size_t axis = 0; axis < 3; ++axis) kernel.ntid.at(axis) = std::to_string(site.block.at(axis));
  const std::array vectors = {&kernel.ctaid, &kernel.nctaid, &kernel.tid};
  std::string text = "{\n";
  for (size_t i = 0; i < kPlaces; ++i) {
    const std::string name = fmt::format("%{}place{}", kBodyPrefix, i);
    text += fmt::format("\t.reg .b32 {0};\n\tmov.b32 {0}, {1};\n", name, operands[i]);
    vectors.at(i / 3)->at(i % 3) = name;
  }
  kernel.operands = &site.site.arguments;
  if (!by_warps) return text + "\t" + inline_kernel(m, *site.child, kernel, lines) + "\n\t}";

  const std::vector<analysis::Argument> arguments =
      arguments_of(site, operands[kOwner], operands[kMask], text);
  kernel.operands = &arguments;
  text += fmt::format(
      "\t.reg .pred %klap_runs;\n\tsetp.ne.u32 %klap_runs, {}, 0;\n"
      "\t@!%klap_runs bra $klap_runs_not;\n\t",
      operands[kRuns]);
  return text + inline_kernel(m, *site.child, kernel, lines) + "\n$klap_runs_not:\n\t}";
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
  call.body_marker = recording.thresholding->by_warps() ? kBodyMarkerOfWarps : kBodyMarker;
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
    if (!m.is(s.head, "ld")) continue;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      if (m.is(t, ".nc")) edits.replace({t, t + 1}, "");
    }
  }
}

}  // namespace klap::transform
