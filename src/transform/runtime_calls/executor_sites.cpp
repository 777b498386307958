#include "transform/runtime_calls/executor_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/executed/calls.h"
#include "analysis/legality/cooperation.h"
#include "transform/runtime_calls/last_error.h"
#include "transform/runtime_calls/private_streams.h"
#include "transform/text/parts.h"

namespace klap::transform {
namespace {

using analysis::ErrorQuery;
using analysis::ExecutedStream;
using analysis::WithoutOrder;

constexpr char kGridReserveFunction[] = "__klap_grid_reserve";
constexpr char kGridPublishFunction[] = "__klap_grid_publish";
constexpr char kGridTakeBufferFunction[] = "__klap_grid_take_buffer";
constexpr char kGridLaunchFunction[] = "__klap_grid_launch";
constexpr char kGridLeaveFunction[] = "__klap_grid_leave_stream";
constexpr char kGridBarrierFunction[] = "__klap_grid_barrier";
constexpr char kGridCreateFunction[] = "__klap_grid_create_stream";
constexpr char kGridDestroyFunction[] = "__klap_grid_destroy_stream";
constexpr char kGridCopyFunction[] = "__klap_grid_copy";
constexpr char kGridFillFunction[] = "__klap_grid_fill";
constexpr char kGridCopySlicesFunction[] = "__klap_grid_copy_slices";
constexpr char kGridFillSlicesFunction[] = "__klap_grid_fill_slices";
constexpr char kGridCreateEventFunction[] = "__klap_grid_create_event";
constexpr char kGridDestroyEventFunction[] = "__klap_grid_destroy_event";
constexpr char kGridRecordEventFunction[] = "__klap_grid_record_event";
constexpr char kGridWaitEventFunction[] = "__klap_grid_wait_event";
constexpr char kLastOfBlockWord[] =
    "__klap_last_of_block";            // the block's last launch, in the parent's shared memory
constexpr uint32_t kNoRoomError = 69;  // cudaErrorLaunchPendingCountExceeded

const char* function_for(const analysis::CopyCall& copy) {
  if (copy.has_slices) return copy.fills ? kGridFillSlicesFunction : kGridCopySlicesFunction;
  return copy.fills ? kGridFillFunction : kGridCopyFunction;
}

// The operands of a copy or a fill behind those of its stream, in the order of the template's parameters.
std::vector<std::string> passed(const analysis::CopyCall& copy) {
  if (copy.has_slices && !copy.fills) return {copy.parameters};
  if (copy.has_slices)
    return {copy.to, copy.to_pitch, copy.slice_rows, copy.width, copy.height, copy.depth, copy.value};
  if (copy.fills) return {copy.to, copy.to_pitch, copy.width, copy.height, copy.value};
  return {copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.width, copy.height, copy.kind};
}

}  // namespace

// A place for the kernel's text has its own names of registers and operands of the template's functions.
struct ExecutorSites::Place {
  std::string body_prefix, self, block;
  bool in_executor = false;
  std::string threads = {};
};

ExecutorSites::ExecutorSites(const analysis::FunctionFacts& kernel, std::vector<LaunchTarget> targets,
                             const ptx::Module& record, std::string prefix, std::string queue,
                             LineTables& lines)
    : kernel_(kernel),
      targets_(std::move(targets)),
      events_(analysis::event_calls(kernel)),
      record_(record),
      prefix_(std::move(prefix)),
      queue_(std::move(queue)),
      lines_(lines) {}

bool ExecutorSites::has_stream(ExecutedStream stream) const {
  const auto goes_there = [&](const auto& call) {
    return analysis::executed_stream(kernel_, call) == stream;
  };
  for (size_t i = 0; i < kernel_.sites.size(); ++i) {
    if (targets_.at(i).without_order != WithoutOrder::Always && goes_there(kernel_.sites[i])) return true;
  }
  return std::ranges::any_of(kernel_.copies, goes_there) || std::ranges::any_of(events_, goes_there);
}

namespace {

// The name of the register that says whether the parent's block has one row or one layer.
std::string_view shape_register(WithoutOrder without) {
  return without == WithoutOrder::InOneRow ? "one_row" : "one_layer";
}

}  // namespace

// The predicates by which launches of the parent go into no stream.
std::string ExecutorSites::unordered_streams() const {
  const bool asks = std::ranges::any_of(targets_, [](const LaunchTarget& target) {
    return target.without_order == WithoutOrder::InOneRow || target.without_order == WithoutOrder::InOneLayer;
  });
  if (!asks) return "";
  // No extent is 0, so both are 1 if no other bit is set in either.
  return fmt::format(
      "\t.reg .pred {0}one_row, {0}one_layer;\n\t.reg .b32 {0}rows, {0}layers, {0}stream;\n"
      "\tmov.u32 {0}rows, %ntid.y;\n\tmov.u32 {0}layers, %ntid.z;\n"
      "\tsetp.eq.u32 {0}one_layer, {0}layers, 1;\n\tor.b32 {0}rows, {0}rows, {0}layers;\n"
      "\tsetp.eq.u32 {0}one_row, {0}rows, 1;\n",
      "%" + prefix_);
}

// Fills the register with the stream of a launch, where the parent's block decides it.
std::string ExecutorSites::choice_of_stream(size_t number) const {
  const WithoutOrder without = targets_.at(number).without_order;
  if (without == WithoutOrder::Never || without == WithoutOrder::Always) return "";
  return fmt::format("selp.b32 {}, {}, {}, {};\n\t", name("stream"),
                     static_cast<uint32_t>(ExecutedStream::None),
                     static_cast<uint32_t>(analysis::executed_stream(kernel_, kernel_.sites[number])),
                     name(shape_register(without)));
}

// The operands for a launch. Where the block decides, a text in front of the call fills the register.
std::array<std::string, 3> ExecutorSites::stream(size_t number, const Place& place) const {
  std::array<std::string, 3> operands = stream(kernel_.sites[number], place);
  const WithoutOrder without = targets_.at(number).without_order;
  if (without == WithoutOrder::Never) return operands;
  operands.front() = without == WithoutOrder::Always
                         ? std::to_string(static_cast<uint32_t>(ExecutedStream::None))
                         : name("stream");
  return operands;
}

// The operands by which the template's functions are told the stream of a launch, a copy or a fill.
template <class Call>
std::array<std::string, 3> ExecutorSites::stream(const Call& call, const Place& place) const {
  const ExecutedStream stream = analysis::executed_stream(kernel_, call);
  const bool is_handle = stream == ExecutedStream::Handle;
  return {std::to_string(static_cast<uint32_t>(stream)),
          is_handle ? with_prefix(call.stream, place.body_prefix) : "0",
          std::to_string(static_cast<uint32_t>(analysis::null_stream(call)))};
}

std::string ExecutorSites::label(std::string_view what, size_t number) const {
  return fmt::format("${}{}{}", prefix_, what, number);
}

// A label with the statement that must stand behind it.
std::string ExecutorSites::landing(std::string_view what, size_t number) const {
  const std::string at = fmt::format("%{}at_{}{}", prefix_, what, number);
  return fmt::format("{0}:\n\t.reg .pred {1};\n\tmov.pred {1}, 0;\n", label(what, number), at);
}

// A thread is at one of its sites at a time, so they share their registers. `own` tells whether the program's
// own call makes the launch. `error` is the thread's last error.
std::string ExecutorSites::registers() const {
  if (kernel_.sites.empty() && kernel_.copies.empty() && events_.empty() && kernel_.error_queries.empty())
    return "";
  const bool asks =
      std::ranges::any_of(targets_, [](const LaunchTarget& t) { return t.most_shared_bytes.has_value(); });
  return fmt::format(
      "\t.reg .pred {0}own, {0}none;\n\t.reg .b64 {0}arguments, {0}item, {0}refused, {0}last;\n"
      "\t.reg .b32 {0}error{1};\n\tmov.pred {0}own, 0;\n\tmov.b64 {0}item, 0;\n"
      "\tmov.b64 {0}last, 0;\n\tmov.b32 {0}error, 0;\n",
      "%" + prefix_, asks ? fmt::format(", %{}threads", prefix_) : "");
}

// The first thread empties the block's word. All threads are there at the entry, so the barrier holds all of
// them.
std::string ExecutorSites::entry() const {
  std::string text =
      registers() + unordered_streams() + fmt::format("\t.reg .b64 {0};\n\tmov.b64 {0}, 0;\n", name("block"));
  if (!has_stream(ExecutedStream::Block) && !has_stream(ExecutedStream::Handle)) return text;
  return text + fmt::format(
                    "\t.shared .align 4 .b32 {1};\n\t.reg .b32 {0}place, {0}axis;\n\t.reg .pred {0}first;\n"
                    "\tmov.u64 {0}block, {1};\n\tcvta.shared.u64 {0}block, {0}block;\n"
                    "\tmov.u32 {0}place, %tid.x;\n\tmov.u32 {0}axis, %tid.y;\n"
                    "\tor.b32 {0}place, {0}place, {0}axis;\n\tmov.u32 {0}axis, %tid.z;\n"
                    "\tor.b32 {0}place, {0}place, {0}axis;\n\tsetp.eq.u32 {0}first, {0}place, 0;\n"
                    "\t@{0}first st.shared.b32 [{1}], 0;\n\tbar.sync 0;\n",
                    "%" + prefix_, kLastOfBlockWord);
}

std::vector<std::string> ExecutorSites::declarations() const { return last_error_declarations(kernel_); }

// Keeps the error of a call that the program makes itself, if the kernel asks for errors. A thread of the
// executor runs many threads of the program, so it may have an error of an earlier one before the call.
Around ExecutorSites::own_call(const Place& place) const {
  if (kernel_.error_queries.empty()) return {};
  return {place.in_executor ? clear_last_error_text(kernel_, prefix_) : "",
          take_last_error_text(kernel_, prefix_, name("error"))};
}

// Whether CUDA refuses a launch depends on its shared memory, too. If it asks for too much, this text fills
// the register with a limit that no block keeps. The predicate is free before the call.
std::string ExecutorSites::choice_of_threads(size_t number, const Place& place) const {
  const LaunchTarget& target = targets_.at(number);
  if (!target.most_shared_bytes) return "";
  return fmt::format("setp.gt.u32 {0}own, {1}, {2};\n\tselp.b32 {0}threads, 0, {3}, {0}own;\n\t",
                     "%" + prefix_, with_prefix(kernel_.sites[number].shared, place.body_prefix),
                     *target.most_shared_bytes, target.most_threads);
}

std::string ExecutorSites::most_threads(size_t number) const {
  const LaunchTarget& target = targets_.at(number);
  return target.most_shared_bytes ? name("threads") : std::to_string(target.most_threads);
}

Around ExecutorSites::first_call(size_t number, const Place& place) const {
  const analysis::Site& site = kernel_.sites[number];
  InlineCall call;
  call.prefix = prefix_ + "r_";
  call.arguments = {queue_, place.self, place.block};
  for (const auto* extents : {&site.grid, &site.block}) {
    for (const std::string& extent : *extents)
      call.arguments.push_back(with_prefix(extent, place.body_prefix));
  }
  call.arguments.push_back(most_threads(number));
  call.arguments.push_back(std::to_string(targets_.at(number).kernel));
  call.arguments.push_back(stream(number, place).front());
  call.results = {{0, name("arguments")}, {8, name("item")}, {16, name("refused")}};
  const Around own = own_call(place);
  Around out;
  out.before = "{\n\t" + choice_of_stream(number) + choice_of_threads(number, place) +
               inline_function(record_, template_function(record_, kGridReserveFunction), call, lines_) +
               fmt::format(
                   "\n\tsetp.eq.u64 {0}own, {0}arguments, 0;\n\tsetp.eq.u64 {0}none, {0}refused, 0;\n"
                   "\tand.pred {0}own, {0}own, {0}none;\n\t@{0}own bra {1};\n"
                   "\t@!{0}none mov.b32 {0}error, {2};\n\tmov.b64 {3}, {0}arguments;\n\tbra {4};\n",
                   "%" + prefix_, label("ask", number), kNoRoomError,
                   with_prefix(site.buffer, place.body_prefix), label("asked", number)) +
               landing("ask", number) + own.before;
  out.after = own.after + landing("asked", number) + "\t}\n";
  return out;
}

Around ExecutorSites::launch_call(size_t number, const Place& place) const {
  const analysis::Site& site = kernel_.sites[number];
  InlineCall call;
  call.prefix = prefix_ + "p_";
  call.arguments = {queue_, place.self, place.block, name("item"), name("last")};
  for (const std::string& operand : stream(number, place)) call.arguments.push_back(operand);
  Around out;
  out.before = fmt::format("{{\n\t@{} bra {};\n\t", name("own"), label("launch", number)) +
               choice_of_stream(number) +
               answered_call(kGridPublishFunction, std::move(call), site.result, place) +
               fmt::format("\tbra {};\n{}", label("launched", number), landing("launch", number));
  out.after = own_call(place).after + landing("launched", number) + "\t}\n";
  return out;
}

// The first call of the older pair, which does not name the grid.
Around ExecutorSites::buffer_call(const analysis::Site& site, const Place& place) const {
  InlineCall call;
  call.prefix = prefix_ + "t_";
  call.arguments = {queue_, place.self, place.block};
  call.results = {{0, with_prefix(site.buffer, place.body_prefix)}, {8, name("item")}, {16, name("refused")}};
  return {"{\n\t" +
              inline_function(record_, template_function(record_, kGridTakeBufferFunction), call, lines_) +
              "\n\t}\n",
          "", true};
}

// The second call of that pair. A launch that CUDA refuses gets a buffer from the program's own call first.
Around ExecutorSites::buffer_launch(size_t number, const Place& place) const {
  const analysis::Site& site = kernel_.sites[number];
  InlineCall call;
  call.prefix = prefix_ + "o_";
  call.arguments = {queue_, place.self, place.block, name("item"), name("last")};
  for (const auto* extents : {&site.grid, &site.block}) {
    for (const std::string& extent : *extents)
      call.arguments.push_back(with_prefix(extent, place.body_prefix));
  }
  call.arguments.push_back(most_threads(number));
  call.arguments.push_back(std::to_string(targets_.at(number).kernel));
  for (const std::string& operand : stream(number, place)) call.arguments.push_back(operand);
  const std::string code = name("call_error"), returned = name("call_returned");
  call.results = {{0, name("last")}, {8, returned}, {16, name("refused")}};
  Around out;
  out.before =
      fmt::format("{{\n\t.reg .b64 {};\n\t.reg .b32 {};\n\t", returned, code) + choice_of_stream(number) +
      choice_of_threads(number, place) +
      inline_function(record_, template_function(record_, kGridLaunchFunction), call, lines_) +
      fmt::format("\n\tsetp.ne.u64 {0}own, {0}refused, 0;\n\t@{0}own bra {1};\n\tcvt.u32.u64 {2}, {3};\n",
                  "%" + prefix_, label("launch", number), code, returned);
  if (!site.result.empty())
    out.before += fmt::format("\tmov.b32 {}, {};\n", with_prefix(site.result, place.body_prefix), code);
  const Around own = own_call(place);
  out.before += note_error(code) +
                fmt::format("\tbra {};\n{}", label("launched", number), landing("launch", number)) +
                own.before + own_buffer_text(site, place);
  out.after = own.after + landing("launched", number) + "\t}\n";
  return out;
}

// The program's own call for a buffer, once more.
std::string ExecutorSites::own_buffer_text(const analysis::Site& site, const Place& place) const {
  const auto get = analysis::parse_call(kernel_.module, *site.get_call, kernel_.data.names());
  return fmt::format(
      "\t{{\n\t.param .b64 {0}_align, {0}_bytes, {0}_buffer;\n\tst.param.b64 [{0}_align], 64;\n"
      "\tst.param.b64 [{0}_bytes], {1};\n\tcall.uni ({0}_buffer), {2}, ({0}_align, {0}_bytes);\n"
      "\tld.param.b64 {3}, [{0}_buffer];\n\t}}\n",
      prefix_ + "own", with_prefix(site.buffer_bytes, place.body_prefix), get->callee,
      with_prefix(site.buffer, place.body_prefix));
}

Around ExecutorSites::query(const ErrorQuery& query, const Place& place) const {
  // A label before the call needs a statement behind it, even if no code reads the result.
  std::string text = fmt::format("{{\n\t.reg .b32 {0};\n\tmov.b32 {0}, {1};\n", name("asked"), name("error"));
  if (!query.result.empty())
    text += fmt::format("\tmov.b32 {}, {};\n", with_prefix(query.result, place.body_prefix), name("asked"));
  if (query.clears) text += fmt::format("\tmov.b32 {}, 0;\n", name("error"));
  return {text + "\t}\n", "", true};
}

// The last error after a call that the executor answers with the 32-bit register `code`.
std::string ExecutorSites::note_error(const std::string& code) const {
  if (kernel_.error_queries.empty()) return "";
  return fmt::format("\t.reg .pred {0};\n\tsetp.ne.u32 {0}, {1}, 0;\n\t@{0} mov.b32 {2}, {1};\n",
                     name("failed"), code, name("error"));
}

// A call that creates a stream or destroys one, unless all of them can be done without.
Around ExecutorSites::stream_call(const analysis::StreamCall& stream, size_t number,
                                  const Place& place) const {
  const std::string result = name(fmt::format("stream_error{}", number));
  InlineCall call;
  call.prefix = fmt::format("{}s{}_", prefix_, number);
  call.arguments = {queue_, place.self, place.block, with_prefix(stream.operand, place.body_prefix)};
  call.results = {{0, result}};
  const char* const function = stream.creates ? kGridCreateFunction : kGridDestroyFunction;
  std::string text = fmt::format("{{\n\t.reg .b32 {};\n\t", result) +
                     inline_function(record_, template_function(record_, function), call, lines_) + "\n";
  if (!stream.result.empty())
    text += fmt::format("\tmov.b32 {}, {};\n", with_prefix(stream.result, place.body_prefix), result);
  return {text + note_error(result) + "\t}\n", "", true};
}

// A function of the template that may change the thread's last launch in its own stream, and returns an error
// code behind it. The code is the call's result.
std::string ExecutorSites::answered_call(const char* function, InlineCall call, const std::string& result,
                                         const Place& place) const {
  const std::string code = name("call_error"), returned = name("call_returned");
  call.results = {{0, name("last")}, {8, returned}};
  std::string text = fmt::format("\t.reg .b64 {};\n\t.reg .b32 {};\n\t", returned, code) +
                     inline_function(record_, template_function(record_, function), call, lines_) +
                     fmt::format("\n\tcvt.u32.u64 {}, {};\n", code, returned);
  if (!result.empty())
    text += fmt::format("\tmov.b32 {}, {};\n", with_prefix(result, place.body_prefix), code);
  return text + note_error(code);
}

// Such a function in place of the program's call.
Around ExecutorSites::queued_call(const char* function, const std::string& prefix,
                                  const std::vector<std::string>& arguments, const std::string& result,
                                  const Place& place) const {
  InlineCall call;
  call.prefix = prefix;
  call.arguments = {queue_, place.self, place.block, name("last")};
  call.arguments.insert(call.arguments.end(), arguments.begin(), arguments.end());
  return {"{\n" + answered_call(function, std::move(call), result, place) + "\t}\n", "", true};
}

// A copy or a fill. What the program's function does not ask for is passed as a literal.
Around ExecutorSites::copy_call(const analysis::CopyCall& copy, size_t number, const Place& place) const {
  std::vector<std::string> arguments;
  for (const std::string& operand : stream(copy, place)) arguments.push_back(operand);
  for (const std::string& operand : passed(copy))
    arguments.push_back(with_prefix(operand, place.body_prefix));
  return queued_call(function_for(copy), fmt::format("{}m{}_", prefix_, number), arguments, copy.result,
                     place);
}

Around ExecutorSites::event_call(const analysis::EventCall& event, size_t number, const Place& place) const {
  using analysis::EventUse;
  std::vector<std::string> arguments;
  if (event.use == EventUse::Record || event.use == EventUse::Wait) {
    for (const std::string& operand : stream(event, place)) arguments.push_back(operand);
  }
  arguments.push_back(with_prefix(event.event, place.body_prefix));
  if (event.use == EventUse::Create) arguments.push_back(with_prefix(event.flags, place.body_prefix));
  const char* const function = event.use == EventUse::Create    ? kGridCreateEventFunction
                               : event.use == EventUse::Destroy ? kGridDestroyEventFunction
                               : event.use == EventUse::Record  ? kGridRecordEventFunction
                                                                : kGridWaitEventFunction;
  return queued_call(function, fmt::format("{}e{}_", prefix_, number), arguments, event.result, place);
}

// Instead of a barrier of the executor's block, one of the threads that the child's block has.
std::string ExecutorSites::barrier(const Place& place) const {
  InlineCall call;
  call.prefix = prefix_ + "b_";
  call.arguments = {place.block, place.threads};
  return inline_function(record_, template_function(record_, kGridBarrierFunction), call, lines_) + "\n";
}

Surroundings ExecutorSites::around(const Place& place) const {
  Surroundings out = without_private_streams(kernel_, place.body_prefix);
  for (const analysis::FlatInstruction& i : kernel_.flow.instructions()) {
    if (!place.threads.empty() && analysis::is_block_barrier(kernel_.module, *i.statement))
      out[i.statement] = {barrier(place), "", true};
  }
  if (kernel_.private_streams.calls.empty()) {
    size_t number = 0;
    for (const analysis::StreamCall& call : kernel_.private_streams.all)
      out[call.scope] = stream_call(call, number++, place);
  }
  for (size_t i = 0; i < kernel_.sites.size(); ++i) {
    const analysis::Site& site = kernel_.sites[i];
    const bool is_older = site.idiom->form == analysis::LaunchForm::Documented;
    out[site.get_scope] = is_older ? buffer_call(site, place) : first_call(i, place);
    out[site.launch_scope] = is_older ? buffer_launch(i, place) : launch_call(i, place);
  }
  size_t copies = 0;
  for (const analysis::CopyCall& copy : kernel_.copies) out[copy.scope] = copy_call(copy, copies++, place);
  size_t events = 0;
  for (const analysis::EventCall& event : events_) out[event.scope] = event_call(event, events++, place);
  for (const ErrorQuery& q : kernel_.error_queries) out[q.scope] = query(q, place);
  if (kernel_.error_queries.empty()) return out;
  for (const analysis::FlatInstruction* call : analysis::own_runtime_calls(kernel_)) {
    const bool has_scope = call->scope != &kernel_.function.body;
    out[has_scope ? call->scope : call->statement] = own_call(place);
  }
  return out;
}

Surroundings ExecutorSites::in_parent() const { return around({"", "0", name("block"), false}); }

Surroundings ExecutorSites::in_executor(const std::string& body_prefix, const std::string& self,
                                        const std::string& block, const std::string& threads) const {
  return around({body_prefix, self, block, true, threads});
}

std::string ExecutorSites::behind(const std::string& self, const std::string& block) const {
  if (!has_stream(ExecutedStream::Thread) && !has_stream(ExecutedStream::Handle)) return "";
  InlineCall call;
  call.prefix = prefix_ + "l_";
  call.arguments = {queue_, self, block, name("last")};
  return "\t" + inline_function(record_, template_function(record_, kGridLeaveFunction), call, lines_) + "\n";
}

}  // namespace klap::transform
