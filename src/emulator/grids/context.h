// All parts of one executor share this. They have a namespace of their own, because names like Block mean
// something else in other parts of the emulator.
#pragma once

#include <cstdint>

#include "emulator/grids/listener.h"
#include "emulator/grids/options.h"
#include "emulator/grids/random.h"
#include "emulator/memory_model/memory.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator::execution {

struct Context {
  const ExecutorOptions options;
  Memory& memory;
  MemoryModel& order;
  ExecutorListener& listener;
  const bool ordered;  // accesses go through `order`
  Random random;
  uint64_t steps = 0;  // thread-instructions so far

  // True if the schedule may make choices that hardware hardly ever makes.
  [[nodiscard]] bool adversarial() const {
    return options.schedule != ScheduleKind::Fast && options.schedule != ScheduleKind::RoundRobin;
  }
};

}  // namespace klap::emulator::execution
