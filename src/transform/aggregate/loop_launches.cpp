#include "transform/aggregate/loop_launches.h"

#include <fmt/format.h>

#include <algorithm>

#include "transform/runtime_calls/private_streams.h"
#include "transform/text/parts.h"

namespace klap::transform {
namespace {

constexpr char kChainReserveFunction[] = "__klap_loop_reserve";
constexpr char kChainPublishFunction[] = "__klap_loop_publish";
constexpr uint32_t kHeaderBytes = 48;  // KlapLoopRecord in templates/loop_launches/loop_records.h
// The last record of the block, in shared memory; and the error of a launch that was refused.
constexpr char kBlockWord[] = "__klap_last_of_block";
constexpr uint32_t kPendingCountExceeded = 69;  // cudaErrorLaunchPendingCountExceeded

// A label of the site of that number, with the statement that must stand behind it.
std::string landing(std::string_view name, size_t number) {
  return fmt::format("$klap_h_{0}{1}:\n\t.reg .pred %klap_h_{0}{1};\n\tmov.pred %klap_h_{0}{1}, 0;\n", name,
                     number);
}

MarkedFunctions marked_functions(const analysis::FunctionFacts& parent) {
  const analysis::Idiom& idiom = rewriting_idiom(parent.sites.front());
  return {{kGetBufferMarker, idiom.get_buffer}, {kDeviceLaunchMarker, idiom.launch}};
}

// The layout whose header is as small as alignment allows.
RecordLayout layout_of(const std::vector<ConsumerBody>& bodies, bool in_order) {
  uint32_t align = 0, bytes = 0;
  for (const ConsumerBody& body : bodies) {
    align = std::max(align, record_layout(*body.kernel).arguments_offset);
    bytes = std::max(bytes, body.kernel->parameter_bytes);
  }
  const uint32_t header = in_order ? kHeaderBytes : align;
  const uint32_t offset = round_up(header, align);
  return {offset, round_up(offset + bytes, align)};
}

}  // namespace

ConsumerShape loop_consumer_shape(const ptx::Module& module, const analysis::LoopLaunches& loop_launches,
                                  bool grid_is_1d) {
  std::vector<ConsumerBody> bodies;
  uint32_t shared_bytes = 0;
  for (const analysis::LoopKernel& kernel : loop_launches.kernels) {
    const ConsumerShape own = consumer_shape(module, *kernel.function, kernel.block, grid_is_1d, false, true);
    bodies.push_back({kernel.block, own.layout, own.may_exit, kernel.function, kernel.shared_bytes});
    shared_bytes = std::max(shared_bytes, kernel.shared_bytes);
  }
  const analysis::LoopKernel& first = loop_launches.kernels.front();
  ConsumerShape shape = consumer_shape(module, *first.function, first.block, grid_is_1d, false, true);
  shape.is_recursive = false;
  shape.loop_queue = loop_launches.in_order() ? LoopQueue::InOrder : LoopQueue::AnyOrder;
  shape.shared_bytes = shared_bytes;
  shape.layout = layout_of(bodies, loop_launches.in_order());
  shape.bodies = std::move(bodies);
  return shape;
}

bool LoopSites::keeps_block_order() const { return loop_launches_.has(analysis::OrderScope::Block); }

bool LoopSites::refuses(analysis::OrderScope scope) const {
  return analysis::is_refused_when_full(scope, in_groups_);
}

// The first thread empties the block's word. All threads are there at the entry, so the barrier holds all of
// them.
std::string LoopSites::entry() const {
  std::string text =
      "\t.reg .pred %klap_h_own, %klap_h_none;\n\t.reg .b64 %klap_h_arguments, %klap_h_refused;\n"
      "\t.reg .b64 %klap_h_last, %klap_h_word;\n\tmov.pred %klap_h_own, 0;\n\tmov.b64 %klap_h_last, 0;\n"
      "\tmov.b64 %klap_h_word, 0;\n\t.reg .b32 %klap_h_error;\n\tmov.b32 %klap_h_error, 0;\n";
  if (!keeps_block_order()) return text;
  return text + fmt::format(
                    "\t.shared .align 4 .b32 {0};\n\t.reg .b32 %klap_h_place, %klap_h_axis;\n"
                    "\t.reg .pred %klap_h_first;\n"
                    "\tmov.u64 %klap_h_word, {0};\n"
                    "\tcvta.shared.u64 %klap_h_word, %klap_h_word;\n"
                    "\tmov.u32 %klap_h_place, %tid.x;\n\tmov.u32 %klap_h_axis, %tid.y;\n"
                    "\tor.b32 %klap_h_place, %klap_h_place, %klap_h_axis;\n\tmov.u32 %klap_h_axis, %tid.z;\n"
                    "\tor.b32 %klap_h_place, %klap_h_place, %klap_h_axis;\n"
                    "\tsetp.eq.u32 %klap_h_first, %klap_h_place, 0;\n"
                    "\t@%klap_h_first st.shared.b32 [{0}], 0;\n\tbar.sync 0;\n",
                    kBlockWord);
}

std::vector<std::string> LoopSites::declarations() const {
  return marker_declarations(parent_.module, record_, marked_functions(parent_));
}

// The scope as KLAP_SCOPE_NONE and so on in templates/loop_launches/loop_records.h.
std::string LoopSites::scope(size_t number) const {
  return std::to_string(static_cast<uint32_t>(loop_launches_.scopes.at(number)));
}

Around LoopSites::first_call(size_t number) const {
  const analysis::Site& site = parent_.sites[number];
  InlineCall call;
  call.prefix = "klap_h_r_";
  call.arguments = {queue_,         site.grid[0],        site.grid[1], site.grid[2],
                    "%klap_h_last", site.callee_operand, scope(number)};
  call.results = {{0, "%klap_h_arguments"}, {8, "%klap_h_last"}, {16, "%klap_h_refused"}};
  for (const auto& [marker, name] : marked_functions(parent_)) call.symbols[marker] = name;
  Around out;
  out.before =
      "{\n\t" + inline_function(record_, template_function(record_, kChainReserveFunction), call, lines_);
  // A refused launch gets no buffer: then the address of the arguments is null.
  out.before += fmt::format(
      "\n\tsetp.eq.u64 %klap_h_own, %klap_h_arguments, 0;\n\tsetp.eq.u64 %klap_h_none, %klap_h_refused, 0;\n"
      "\tand.pred %klap_h_own, %klap_h_own, %klap_h_none;\n\t@%klap_h_own bra $klap_h_ask{2};\n{3}"
      "\tmov.b64 {0}, %klap_h_arguments;\n\tbra $klap_h_asked{2};\n{1}",
      site.buffer, landing("ask", number), number, note_refusal(number));
  out.after = landing("asked", number) + "\t}\n";
  return out;
}

// If the device runtime has not been asked, the kernel itself must tell the last error.
std::string LoopSites::note_refusal(size_t number) const {
  if (!refuses(loop_launches_.scopes.at(number))) return "";
  return fmt::format("\t@!%klap_h_none mov.b32 %klap_h_error, {};\n", kPendingCountExceeded);
}

// The answer to a query of the last error.
Around LoopSites::query(const analysis::ErrorQuery& query) {
  Around out;
  out.after = "{\n\t.reg .pred %klap_h_failed;\n\tsetp.ne.u32 %klap_h_failed, %klap_h_error, 0;\n";
  if (!query.result.empty())
    out.after += fmt::format("\t@%klap_h_failed mov.b32 {}, %klap_h_error;\n", query.result);
  if (query.clears) out.after += "\tmov.b32 %klap_h_error, 0;\n";
  out.after += "\t}\n";
  return out;
}

Around LoopSites::launch_call(size_t number) const {
  const analysis::Site& site = parent_.sites[number];
  InlineCall call;
  call.prefix = "klap_h_p_";
  call.arguments = {queue_,
                    "%klap_h_arguments",
                    "%klap_h_last",
                    site.stream,
                    std::to_string(loop_launches_.targets.at(number)),
                    "%klap_h_word",
                    scope(number)};
  call.results = {{0, "%klap_h_last"}};
  Around out;
  out.before = fmt::format("{{\n\t@%klap_h_own bra $klap_h_launch{};\n\t", number) +
               inline_function(record_, template_function(record_, kChainPublishFunction), call, lines_) +
               "\n";
  if (!site.result.empty()) out.before += fmt::format("\tmov.b32 {}, 0;\n", site.result);
  out.before += fmt::format("\tbra $klap_h_launched{};\n{}", number, landing("launch", number));
  out.after = landing("launched", number) + "\t}\n";
  return out;
}

// The program's own launches are made late, when a stream of the thread's own might be gone. So no such
// streams are created.
Surroundings LoopSites::in_parent() const {
  Surroundings out = without_private_streams(parent_, "");
  for (size_t i = 0; i < parent_.sites.size(); ++i) {
    out[parent_.sites[i].get_scope] = first_call(i);
    out[parent_.sites[i].launch_scope] = launch_call(i);
  }
  if (std::ranges::none_of(loop_launches_.scopes, [this](auto scope) { return refuses(scope); })) return out;
  for (const analysis::ErrorQuery& q : parent_.error_queries) out[q.scope] = query(q);
  return out;
}

}  // namespace klap::transform
