// What all parts of one executor share. They have a namespace of their own, because names like Block mean
// something else in other parts of the emulator.
#pragma once

#include <cstdint>

#include "emulator/executor/executor.h"
#include "emulator/executor/random.h"

namespace klap::emulator::execution {

struct Context {
  const ExecutorOptions options;
  Memory& memory;
  Order& order;
  ExecutorListener& listener;
  const bool ordered;  // accesses go through `order`
  Random random;
  uint64_t steps = 0;  // thread-instructions so far

  // Whether the schedule may do what hardware hardly ever does.
  [[nodiscard]] bool adversarial() const {
    return options.schedule != ScheduleKind::Fast && options.schedule != ScheduleKind::RoundRobin;
  }
};

}  // namespace klap::emulator::execution
