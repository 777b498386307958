#include "transform/aggregate/warp.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/edit.h"
#include "transform/aggregate/argument_stores.h"
#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

using analysis::FunctionFacts;
using analysis::Site;
using ptx::Edits;
using ptx::Function;
using ptx::Module;

constexpr char kWarpBufferFunction[] = "__klap_warp_buffer";
constexpr char kWarpLaunchFunction[] = "__klap_warp_launch";
constexpr char kLastErrorMarker[] = "__klap_last_error";
constexpr char kLastErrorFunction[] = "__cudaCDP2GetLastError";

constexpr uint32_t kLanes = 32;
constexpr uint32_t kParameterSpace = 4096;  // of a kernel that is launched from the device
constexpr uint32_t kWordBytes = 4;

// The operand, or its value if that is known. A register that a launch reads at its second call may be set
// only after the first.
std::string constant_or(const FunctionFacts& parent, const std::string& operand) {
  const auto value = parent.data.constant(operand);
  return value ? std::to_string(*value) : operand;
}

MarkedFunctions marked_functions(const Site& site, bool last_error) {
  const analysis::Idiom& idiom = rewriting_idiom(site);
  MarkedFunctions functions = {{kGetBufferMarker, idiom.get_buffer}, {kDeviceLaunchMarker, idiom.launch}};
  if (last_error) functions.emplace_back(kLastErrorMarker, kLastErrorFunction);
  return functions;
}

SymbolNames symbols_of(const MarkedFunctions& functions) {
  SymbolNames symbols;
  for (const auto& [marker, name] : functions) symbols[marker] = name;
  return symbols;
}

// One site's registers end in its number.
class SiteText {
 public:
  SiteText(const FunctionFacts& parent, const WarpSite& shared, size_t number, LineTables& lines)
      : parent_(parent),
        shared_(shared),
        site_(*shared.site),
        number_(number),
        symbols_(symbols_of(marked_functions(site_, !parent.error_queries.empty()))),
        lines_(lines) {}

  [[nodiscard]] std::string buffer() const { return fmt::format("%klap_shared{}", number_); }
  [[nodiscard]] std::string group() const { return fmt::format("%klap_group{}", number_); }
  [[nodiscard]] std::string is_first() const { return fmt::format("%klap_is_first{}", number_); }

  // The text that replaces the call for a buffer.
  [[nodiscard]] std::string share() const {
    InlineCall call;
    call.prefix = fmt::format("klap_s{}_", number_);
    call.arguments = {"%klap_consumer", site_.callee_operand};
    for (const auto& dims : {site_.grid, site_.block})
      call.arguments.insert(call.arguments.end(), dims.begin(), dims.end());
    call.arguments.insert(call.arguments.end(),
                          {site_.shared, constant_or(parent_, site_.stream), "%klap_last_error"});
    call.results = {{0, site_.buffer}, {8, buffer()}, {16, group()}, {24, "%klap_last_error"}};
    call.symbols = symbols_;
    return fmt::format("mov.u64 %klap_consumer, {};\n\t", shared_.consumer) +
           inline_function(*shared_.launch, template_function(*shared_.launch, kWarpBufferFunction), call,
                           lines_) +
           (shared_.layout->passes_once() ? find_first() : "");
  }

  // Rewrites the stores between the two calls. A lane on its own is the first of its group: all its arguments
  // are in the program's buffer.
  void keep_stores(Edits& edits) const {
    if (!shared_.layout->packed) return;
    const ArgumentStores stores(parent_.module, site_, *shared_.layout, "", is_first(),
                                ArgumentStores::Once::ByOne);
    for (const ptx::Statement* store : stores.in_order()) edits.replace(store->tokens, stores.text(*store));
  }

  // The text that replaces the launch.
  [[nodiscard]] std::string launch() const {
    InlineCall call;
    call.prefix = fmt::format("klap_l{}_", number_);
    call.arguments = {buffer(), site_.stream, "%klap_group", "%klap_last_error"};
    call.results = {{0, "%klap_error"}, {8, "%klap_last_error"}};
    call.symbols = symbols_;
    std::string text = fmt::format("cvt.u32.u64 %klap_group, {};\n\t", group());
    text += inline_function(*shared_.launch, template_function(*shared_.launch, kWarpLaunchFunction), call,
                            lines_);
    if (!site_.result.empty()) text += fmt::format("\n\tcvt.u32.u64 {}, %klap_error;", site_.result);
    return text;
  }

 private:
  // The lowest lane of a group has the first child.
  [[nodiscard]] std::string find_first() const {
    return fmt::format(
        "\n\t{{\n\t.reg .b32 %klap_lanes, %klap_below;\n\tcvt.u32.u64 %klap_lanes, {};\n"
        "\tmov.u32 %klap_below, %lanemask_lt;\n\tand.b32 %klap_below, %klap_below, %klap_lanes;\n"
        "\tsetp.eq.u32 {}, %klap_below, 0;\n\t}}",
        group(), is_first());
  }

  const FunctionFacts& parent_;
  const WarpSite& shared_;
  const Site& site_;
  size_t number_;
  SymbolNames symbols_;
  LineTables& lines_;
};

// KLAP_RECORDS_OFFSET of templates/warp/warp_records.h.
uint32_t first_record(const RecordLayout& layout, uint32_t lanes) {
  const uint32_t align =
      layout.arguments_offset;  // the header of a record is as small as alignment lets it be
  return (kWordBytes * (lanes + 1) + align - 1) / align * align;
}

// The text behind a query of the device runtime's last error: a pending error there is newer than the copy.
std::string group_query_text(const analysis::ErrorQuery& query) {
  std::string text;
  if (!query.result.empty()) {
    text += fmt::format(
        "\n\t{{\n\t.reg .pred %klap_none;\n\tsetp.eq.u32 %klap_none, {0}, 0;\n"
        "\t@%klap_none cvt.u32.u64 {0}, %klap_last_error;\n\t}}",
        query.result);
  }
  if (query.clears) text += "\n\tmov.u64 %klap_last_error, 0;";
  return text;
}

}  // namespace

uint32_t lanes_that_fit(const RecordLayout& layout) {
  for (uint32_t lanes = kLanes; lanes > 0; --lanes) {
    if (first_record(layout, lanes) + lanes * layout.record_bytes <= kParameterSpace) return lanes;
  }
  return 0;
}

uint32_t first_arguments(const RecordLayout& layout, uint32_t lanes) {
  return first_record(layout, lanes) + layout.arguments_offset;
}

ConsumerShape warp_shape(const Module& module, const Function& child, bool grid_is_1d) {
  ConsumerShape shape;
  shape.grid_is_1d = grid_is_1d;
  shape.exact = true;
  shape.layout = record_layout(child);
  shape.lanes = lanes_that_fit(shape.layout);
  shape.shared_room = analysis::shared_room(module, child);
  return shape;
}

WarpLaunchShape warp_launch_shape(const FunctionFacts& parent, const Site& site) {
  const auto varies = [&](const std::string& operand) { return !parent.data.constant(operand).has_value(); };
  WarpLaunchShape shape;
  shape.match_block = std::any_of(site.block.begin(), site.block.end(), varies);
  shape.match_bytes = varies(site.shared);
  shape.match_stream = varies(site.stream);
  shape.last_error = !parent.error_queries.empty();
  return shape;
}

Generated warp_parent(const FunctionFacts& parent, const std::vector<WarpSite>& sites,
                      const std::string& name, LineTables& lines) {
  const Module& m = parent.module;
  const Function& f = parent.function;
  Edits edits(m);
  Generated out{name, {}, {}, {}};
  edits.replace({f.tokens.first, f.name_token}, linkage_text(f) + ".entry");
  edits.replace({f.name_token, f.name_token + 1}, name);
  lines.keep(m, f.body, edits);
  if (m.debug) drop_debug_labels(m, f.body, edits);
  std::string registers =
      "\n\t.reg .b64 %klap_consumer, %klap_error, %klap_last_error;\n\t.reg .b32 %klap_group;\n";
  for (size_t i = 0; i < sites.size(); ++i) {
    const WarpSite& shared = sites[i];
    const SiteText text(parent, shared, i, lines);
    registers += fmt::format("\t.reg .b64 {}, {};\n", text.buffer(), text.group());
    if (shared.layout->passes_once()) registers += fmt::format("\t.reg .pred {};\n", text.is_first());
    edits.replace(shared.site->get_scope->tokens, text.share());
    text.keep_stores(edits);
    edits.replace(shared.site->launch_scope->tokens, text.launch());
    const auto functions = marked_functions(*shared.site, !parent.error_queries.empty());
    for (std::string& declaration : marker_declarations(m, *shared.launch, functions))
      out.declarations.push_back(std::move(declaration));
    if (!shared.declaration.empty()) out.declarations.push_back(shared.declaration);
  }
  edits.insert_after(f.body.tokens.first, registers + "\tmov.u64 %klap_last_error, 0;\n");
  for (const analysis::ErrorQuery& query : parent.error_queries)
    edits.insert_after(query.scope->tokens.last - 1, group_query_text(query));
  out.text = edits.apply(f.tokens);
  return out;
}

}  // namespace klap::transform
