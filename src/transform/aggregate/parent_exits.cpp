#include "transform/aggregate/parent_exits.h"

#include <fmt/format.h>

#include <utility>

#include "transform/aggregate/queue_names.h"
#include "transform/text/parts.h"
#include "transform/text/splice.h"

namespace klap::transform {
namespace {

using analysis::FunctionFacts;
using analysis::Site;
using ptx::Edits;
using ptx::Module;
using ptx::Statement;

constexpr char kExitFunction[] = "__klap_exit";
constexpr char kLaunchFunction[] = "__klap_launch_children";
constexpr char kFirstTurnFunction[] = "__klap_first_turn";
constexpr char kLaunchTurnFunction[] = "__klap_launch_turn";
constexpr char kNextTurnFunction[] = "__klap_next_turn";

// Counts the thread out and ends it; the last one goes on to launch the children.
std::string leave_text(const Module& leave, int number, LineTables& lines) {
  InlineCall call;
  call.prefix = fmt::format("klap_l{}_", number);
  call.arguments = {"%klap_queue"};
  call.results = {{0, "%klap_last"}};
  return inline_function(leave, template_function(leave, kExitFunction), call, lines) +
         "\n\tsetp.ne.u32 %klap_is_last, %klap_last, 0;\n\t@%klap_is_last bra $klap_launch;\n\tret;\n";
}

// The text that replaces one `ret`, `exit` or branch to one, which only some threads may take.
std::string way_out_text(const Module& m, const Statement& way, const Module& leave, int number,
                         LineTables& lines) {
  const std::string text = "\t" + leave_text(leave, number, lines);
  if (!way.predicated) return "{\n" + text + "\t}";
  return fmt::format(
      "{{\n\t@{}{} bra $klap_stay{};\n{}$klap_stay{}:\n\t.reg .pred %klap_stay;\n"
      "\tmov.pred %klap_stay, 0;\n\t}}",
      way.predicate_negated ? "" : "!", m.text(way.predicate), number, text, number);
}

// The text of one of the functions that launch the children in a queue.
std::string launch_queue_text(const char* function, const Site& site, const DeviceLaunch& launch,
                              std::vector<std::string> arguments, LineTables& lines) {
  InlineCall call;
  call.prefix = "klap_d_";
  call.arguments = std::move(arguments);
  const analysis::Idiom& idiom = rewriting_idiom(site);
  call.symbols = {{kGetBufferMarker, idiom.get_buffer}, {kDeviceLaunchMarker, idiom.launch}};
  return fmt::format("\tmov.u64 %klap_consumer, {};\n\t", launch.consumer) +
         inline_function(launch.leave, template_function(launch.leave, function), call, lines) + "\n";
}

// The launches if only the last thread of the grid or group arrives.
std::string launch_children_text(const std::vector<const Site*>& sites,
                                 const std::vector<DeviceLaunch>& launches, LineTables& lines) {
  std::string text;
  for (size_t i = 0; i < sites.size(); ++i) {
    text += launch_queue_text(kLaunchFunction, *sites[i], launches[i],
                              {numbered(kQueueRegister, i), "%klap_consumer"}, lines);
  }
  return text + "\tret;\n";
}

// The launches if the groups take turns, each to launch all of its queues.
std::string launch_in_turns_text(const std::vector<const Site*>& sites,
                                 const std::vector<DeviceLaunch>& launches, LineTables& lines) {
  const Module& leave = launches.front().leave;
  const auto turn = [&](const char* function, std::vector<std::string> arguments) {
    InlineCall call;
    call.prefix = "klap_t_";
    call.arguments = std::move(arguments);
    call.results = {{0, "%klap_turn"}};
    return "\t" + inline_function(leave, template_function(leave, function), call, lines) + "\n";
  };
  std::string text = "\t.reg .b64 %klap_turn;\n\t.reg .pred %klap_no_turn;\n";
  text += turn(kFirstTurnFunction, {kQueueRegister});
  text += "$klap_turns:\n\tsetp.eq.s64 %klap_no_turn, %klap_turn, -1;\n\t@%klap_no_turn ret;\n";
  for (size_t i = 0; i < sites.size(); ++i) {
    text += launch_queue_text(kLaunchTurnFunction, *sites[i], launches[i],
                              {numbered(kQueueRegister, i), "%klap_consumer", "%klap_turn"}, lines);
  }
  return text + turn(kNextTurnFunction, {kQueueRegister, "%klap_turn"}) + "\tbra $klap_turns;\n";
}

}  // namespace

std::vector<std::string> add_exits(const FunctionFacts& parent, const std::vector<const Site*>& sites,
                                   const std::vector<DeviceLaunch>& launches, const analysis::Exits& exits,
                                   Edits& edits, LineTables& lines) {
  const Module& m = parent.module;
  const ptx::TokenRange body = parent.function.body.tokens;
  edits.insert_after(body.first,
                     "\n\t.reg .b64 %klap_consumer;\n\t.reg .b32 %klap_last;\n\t.reg .pred %klap_is_last;\n");
  const Module& leave = launches.front().leave;
  int number = 0;
  for (const Statement* way : exits.ways) {
    edits.replace(way->tokens, way_out_text(m, *way, leave, number, lines));
    ++number;
  }
  std::string end = exits.falls_off_end ? "\t" + leave_text(leave, number, lines) : "";
  const bool in_turns = launches.front().group_blocks != 0 && sites.size() > 1;
  end += "$klap_launch:\n" + (in_turns ? launch_in_turns_text(sites, launches, lines)
                                       : launch_children_text(sites, launches, lines));
  std::vector<std::string> declarations;
  for (size_t i = 0; i < sites.size(); ++i) {
    const analysis::Idiom& idiom = rewriting_idiom(*sites[i]);
    const MarkedFunctions markers = {{kGetBufferMarker, idiom.get_buffer},
                                     {kDeviceLaunchMarker, idiom.launch}};
    for (std::string& text : marker_declarations(m, leave, markers)) declarations.push_back(std::move(text));
    if (!launches[i].declaration.empty()) declarations.push_back(launches[i].declaration);
  }
  edits.insert_before(body.last - 1, "\n" + end);
  return declarations;
}

}  // namespace klap::transform
