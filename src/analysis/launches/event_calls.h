// Calls of the device runtime for events, taken apart.
//
// An event stands for all that was in a stream when it was recorded. A stream that waits for it goes on only
// when all of that is complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "ptx/tree.h"

namespace klap::analysis {

enum class EventUse : uint8_t { Create, Destroy, Record, Wait };

// A call in a scope of its own.
struct EventCall {
  const ptx::Statement* call = nullptr;
  const ptx::Statement* scope = nullptr;
  EventUse use = EventUse::Create;
  std::string event;         // operand: the handle, or the address that it is written to
  std::string flags = "0";   // operand, where an event is created
  std::string stream = "0";  // operand, where it is recorded or waited for
  bool stream_zero_is_per_thread = false;
  std::string result;  // register of the error code; empty when it is dropped
};

// All of them in text order, but for those whose form is not known.
std::vector<EventCall> find_event_calls(const ptx::Module& module, const ptx::Function& function,
                                        const ControlFlow& flow, const DataFlow& data);

// False if no function of the module can use events.
bool may_use_events(const ptx::Module& module);

}  // namespace klap::analysis
