#include "analysis/executed/calls.h"

#include <algorithm>
#include <array>

#include "analysis/executed/streams.h"
#include "analysis/facts/runtime_calls.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {

bool depends_on_no_grid(std::string_view function) {
  constexpr std::array kKinds = {"query", "function-query", "occupancy", "allocation", "error-text"};
  return std::ranges::any_of(kKinds, [&](std::string_view kind) { return idioms().is_kind(function, kind); });
}

namespace {

// The function of the device runtime that a statement calls; empty if it calls none.
std::string_view called_by(const FunctionFacts& kernel, const ptx::Statement& statement) {
  const auto call = parse_call(kernel.module, statement, kernel.data.names());
  return call && call->direct ? runtime_function(kernel.module, call->callee) : std::string_view{};
}

bool is_error_query(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return std::ranges::any_of(kernel.error_queries, [&](const ErrorQuery& query) {
    return query.call == &statement && query.problem.empty();
  });
}

bool is_copy(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return std::ranges::any_of(kernel.copies, [&](const CopyCall& copy) { return copy.call == &statement; });
}

bool is_event_call(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return std::ranges::any_of(event_calls(kernel),
                             [&](const EventCall& event) { return event.call == &statement; });
}

}  // namespace

std::vector<EventCall> event_calls(const FunctionFacts& kernel) {
  if (!may_use_events(kernel.module)) return {};
  return find_event_calls(kernel.module, kernel.function, kernel.flow, kernel.data);
}

std::vector<const FlatInstruction*> own_runtime_calls(const FunctionFacts& kernel) {
  std::vector<const FlatInstruction*> calls;
  for (const FlatInstruction& instruction : kernel.flow.instructions()) {
    const std::string_view function = called_by(kernel, *instruction.statement);
    if (depends_on_no_grid(function) && !idioms().is_error_text(function)) calls.push_back(&instruction);
  }
  return calls;
}

bool is_executed_call(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return is_executed_stream_call(kernel, statement) || is_error_query(kernel, statement) ||
         is_copy(kernel, statement) || is_event_call(kernel, statement) ||
         depends_on_no_grid(called_by(kernel, statement));
}

std::optional<Rejection> check_executed_calls(const FunctionFacts& kernel) {
  for (const FlatInstruction& instruction : kernel.flow.instructions()) {
    const std::string_view function = called_by(kernel, *instruction.statement);
    if (function.empty() || is_executed_call(kernel, *instruction.statement)) continue;
    const std::string place = kernel.module.place(instruction.statement->head);
    return Rejection{Reason::ChildLaunches, runtime_call_text(function, place)};
  }
  return std::nullopt;
}

}  // namespace klap::analysis
