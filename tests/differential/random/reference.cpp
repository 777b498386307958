#include "random/reference.h"

#include "random/reference_world.h"
#include "support/error.h"

namespace klap::differential::random {

std::vector<StepRoom> step_rooms(const Program& program, const Layout& layout) {
  std::vector<StepRoom> rooms;
  uint32_t end = 0;
  size_t waited = 0;  // steps before this one are done, whatever their stream
  for (size_t i = 0; i < program.steps.size(); ++i) {
    StepRoom room{end, std::nullopt};
    for (size_t earlier = i; earlier-- > 0 && !room.previous;) {
      const Step& step = program.steps[earlier];
      if (step.stream != program.steps[i].stream && earlier >= waited) continue;
      if (layout.need(step.kernel, step.depth) < program.previous_words) continue;
      room.previous = rooms[earlier].begin;
    }
    rooms.push_back(room);
    end += layout.need(program.steps[i].kernel, program.steps[i].depth);
    if (program.steps[i].wait) waited = i + 1;
  }
  return rooms;
}

uint32_t own_words(const Program& program, const Layout& layout) {
  uint32_t total = 0;
  for (const Step& step : program.steps) total += layout.need(step.kernel, step.depth);
  return total;
}

Memories initial_memories(const Program& program) {
  Memories m;
  for (uint32_t i = 0; i < kInputWords; ++i) {
    m.input.push_back((i + 1) * 2246822519U ^ static_cast<uint32_t>(program.seed * 374761393U));
  }
  m.sums.resize((kSums + 1) * kSumWords);  // those of 64 bits take twice the room
  for (uint32_t i = 0; i < kSumWords; ++i) {
    m.sums[sum_word(Sum::Minimum, i)] = ~0U;
    m.sums[sum_word(Sum::And, i)] = ~0U;
  }
  if (uses_cells(program)) {
    for (uint32_t i = 0; i < kHostStreams * kCellWords; ++i) m.cells.push_back(i * 7);
  }
  const uint32_t words = own_words(program, lay_out(program));
  for (uint32_t i = 0; i < words; ++i) m.own.push_back(0x0badc0deU + i);
  return m;
}

Memories run_reference(const Program& program, GridOrder order) {
  World world(program, order);
  world.run();
  return std::move(world.memories);
}

std::string disorder(const Program& program) {
  try {
    const Memories first = run_reference(program, GridOrder::FirstComeFirstServed);
    for (const GridOrder order : {GridOrder::AtOnce, GridOrder::LastComeFirstServed}) {
      const Memories other = run_reference(program, order);
      if (first.own != other.own || first.sums != other.sums || first.cells != other.cells)
        return "a result that depends on what nothing orders";
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Internal) throw;
    return error.what();
  }
  return "";
}

}  // namespace klap::differential::random
