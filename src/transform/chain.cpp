#include "transform/chain.h"

#include <fmt/format.h>

#include "transform/parts.h"

namespace klap::transform {
namespace {

constexpr char kReserveFunction[] = "__klap_chain_reserve";
constexpr char kPublishFunction[] = "__klap_chain_publish";
constexpr uint32_t kHeaderBytes = 32;  // KlapChained in templates/chain.h

uint32_t round_up(uint32_t value, uint32_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// A label with the statement that must stand behind it.
std::string landing(std::string_view name) {
  return fmt::format("$klap_h_{0}:\n\t.reg .pred %klap_h_{0};\n\tmov.pred %klap_h_{0}, 0;\n", name);
}

MarkedFunctions marked_functions(const analysis::Site& site) {
  const analysis::Idiom& idiom = rewriting_idiom(site);
  return {{kGetBufferMarker, idiom.get_buffer}, {kDeviceLaunchMarker, idiom.launch}};
}

}  // namespace

ConsumerShape chain_shape(const ptx::Module& module, const ptx::Function& child,
                          const std::array<uint32_t, 3>& block, bool grid_is_1d, bool in_order) {
  ConsumerShape shape = consumer_shape(module, child, block, grid_is_1d, false, true);
  shape.feeds = false;
  shape.chain = in_order ? Chain::InOrder : Chain::AnyOrder;
  if (in_order) {
    const uint32_t align = shape.layout.arguments_offset;  // as small as alignment lets it be
    shape.layout.arguments_offset = round_up(kHeaderBytes, align);
    shape.layout.record_bytes = round_up(shape.layout.arguments_offset + child.parameter_bytes, align);
  }
  return shape;
}

std::string ChainedSite::registers() {
  return "\t.reg .pred %klap_h_own, %klap_h_none;\n\t.reg .b64 %klap_h_arguments, %klap_h_refused;\n"
         "\t.reg .b64 %klap_h_last;\n\tmov.pred %klap_h_own, 0;\n\tmov.b64 %klap_h_last, 0;\n";
}

std::vector<std::string> ChainedSite::declarations(const ptx::Module& module) const {
  return marker_declarations(module, record_, marked_functions(site_));
}

Around ChainedSite::first_call() const {
  InlineCall call;
  call.prefix = "klap_h_r_";
  call.arguments = {queue_,        site_.grid[0],  site_.grid[1],
                    site_.grid[2], "%klap_h_last", site_.callee_operand};
  call.results = {{0, "%klap_h_arguments"}, {8, "%klap_h_last"}, {16, "%klap_h_refused"}};
  for (const auto& [marker, name] : marked_functions(site_)) call.symbols[marker] = name;
  Around out;
  out.before = "{\n\t" + inline_function(record_, template_function(record_, kReserveFunction), call, lines_);
  // No buffer where the launch is refused: then the arguments' address is none.
  out.before += fmt::format(
      "\n\tsetp.eq.u64 %klap_h_own, %klap_h_arguments, 0;\n\tsetp.eq.u64 %klap_h_none, %klap_h_refused, 0;\n"
      "\tand.pred %klap_h_own, %klap_h_own, %klap_h_none;\n\t@%klap_h_own bra $klap_h_ask;\n"
      "\tmov.b64 {}, %klap_h_arguments;\n\tbra $klap_h_asked;\n{}",
      site_.buffer, landing("ask"));
  out.after = landing("asked") + "\t}\n";
  return out;
}

Around ChainedSite::launch_call() const {
  InlineCall call;
  call.prefix = "klap_h_p_";
  call.arguments = {queue_, "%klap_h_arguments", "%klap_h_last", site_.stream};
  call.results = {{0, "%klap_h_last"}};
  Around out;
  out.before = "{\n\t@%klap_h_own bra $klap_h_launch;\n\t" +
               inline_function(record_, template_function(record_, kPublishFunction), call, lines_) + "\n";
  if (!site_.result.empty()) out.before += fmt::format("\tmov.b32 {}, 0;\n", site_.result);
  out.before += "\tbra $klap_h_launched;\n" + landing("launch");
  out.after = landing("launched") + "\t}\n";
  return out;
}

Surroundings ChainedSite::in_parent() const {
  return {{site_.get_scope, first_call()}, {site_.launch_scope, launch_call()}};
}

}  // namespace klap::transform
