#include "analysis/launches/event_calls.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "analysis/launches/idioms.h"
#include "analysis/launches/scoped_call.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

// A function, and its parameters in their order.
struct EventForm {
  std::string_view name;
  EventUse use;
  std::vector<uint32_t> bytes;
  std::vector<std::string EventCall::*> operands;  // of the first parameters
};

const std::vector<EventForm>& event_forms() {
  static const auto& all = *new std::vector<EventForm>{
      {"EventCreateWithFlags", EventUse::Create, {8, 4}, {&EventCall::event, &EventCall::flags}},
      {"EventDestroy", EventUse::Destroy, {8}, {&EventCall::event}},
      {"EventRecord", EventUse::Record, {8, 8}, {&EventCall::event, &EventCall::stream}},
      {"StreamWaitEvent", EventUse::Wait, {8, 8, 4}, {&EventCall::stream, &EventCall::event}}};
  return all;
}

constexpr std::string_view kPerThreadSuffix = "_ptsz";

bool uses_events(std::string_view function) {
  return idioms().is_kind(function, "event") || idioms().is_kind(function, "stream-wait");
}

const EventForm* event_form(std::string_view function) {
  if (!uses_events(function)) return nullptr;
  if (function.ends_with(kPerThreadSuffix)) function.remove_suffix(kPerThreadSuffix.size());
  const auto found = std::ranges::find_if(
      event_forms(), [&](const EventForm& form) { return function.ends_with(form.name); });
  return found == event_forms().end() ? nullptr : &*found;
}

}  // namespace

std::vector<EventCall> find_event_calls(const ptx::Module& module, const ptx::Function& function,
                                        const ControlFlow& flow, const DataFlow& data) {
  std::vector<EventCall> calls;
  for (const FlatInstruction& instruction : flow.instructions()) {
    const auto call = parse_call(module, *instruction.statement, data.names());
    if (!call || !call->direct) continue;
    const std::string_view called = runtime_function(module, call->callee);
    const EventForm* const form = event_form(called);
    if (form == nullptr) continue;
    const auto read = read_scoped_call(module, function, instruction, *call, form->bytes);
    if (!read) continue;
    EventCall out;
    out.call = instruction.statement;
    out.scope = instruction.scope;
    out.use = form->use;
    for (size_t i = 0; i < form->operands.size(); ++i) out.*form->operands[i] = read->operands[i];
    out.stream_zero_is_per_thread = called.ends_with(kPerThreadSuffix);
    out.result = read->result;
    calls.push_back(std::move(out));
  }
  return calls;
}

bool may_use_events(const ptx::Module& module) {
  return std::ranges::any_of(module.functions, [](const ptx::Function& f) { return uses_events(f.name); });
}

}  // namespace klap::analysis
