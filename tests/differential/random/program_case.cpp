#include "random/program_case.h"

#include "random/print_ptx.h"
#include "random/reference.h"

namespace klap::differential::random {

namespace {

enum Buffers : uint32_t { kInput, kSumsBuffer, kOwn, kCells };

template <class T>
Bytes value_bytes(T value) {
  return bytes_of(std::vector<T>{value});
}

Bytes passed(Width width, uint32_t value) {
  switch (width) {
    case Width::U8:
    case Width::S8:
      return value_bytes(static_cast<uint8_t>(value));
    case Width::U16:
    case Width::S16:
      return value_bytes(static_cast<uint16_t>(value));
    case Width::U32:
      return value_bytes(value);
    case Width::U64:
      return value_bytes(uint64_t{value} * kWideFactor);
    case Width::F32:
      return value_bytes(static_cast<float>(value & 0xffffU));
  }
  return value_bytes(value);
}

class CaseMaker {
 public:
  explicit CaseMaker(const Program& program) : program_(program), layout_(lay_out(program)) {}

  Case make() {
    Case c;
    c.name = "random_" + std::to_string(program_.seed);
    c.about = "a random program";
    c.ptx = print_ptx(program_);
    Builder builder(c);
    const Memories before = initial_memories(program_), after = run_reference(program_);
    builder.buffer("input", before.input, after.input);
    builder.buffer("sums", before.sums, after.sums);
    builder.buffer("own", before.own, after.own);
    if (!before.cells.empty()) builder.buffer("cells", before.cells, after.cells);
    const std::vector<StepRoom> rooms = step_rooms(program_, layout_);
    for (size_t i = 0; i < program_.steps.size(); ++i) add(c, builder, program_.steps[i], rooms[i]);
    return c;
  }

 private:
  void add(Case& c, Builder& builder, const Step& from, const StepRoom& room) const {
    const Kernel& kernel = program_.kernels[from.kernel];
    differential::Step step;
    step.stream = from.stream;
    step.launch = {kernel_name(from.kernel), from.grid, from.block, 0, arguments(from, room)};
    if (kernel.dynamic_shared && has_kind(kernel.body, Kind::Exchange)) {
      step.launch.shared = 4 * product(kernel.block);
    }
    c.steps.push_back(std::move(step));
    if (from.wait) builder.synchronise();
  }

  std::vector<Argument> arguments(const Step& step, const StepRoom& room) const {
    const Signature formal = signature(program_, step.kernel);
    std::vector<Argument> out(formal.formals.size());
    for (const Slot& slot : formal.slots) {
      Argument& argument = out[slot.parameter];
      switch (slot.role) {
        case Role::Input:
        case Role::Message:  // the host leaves none: the input's first word
          argument = Builder::address(kInput);
          break;
        case Role::Sums:
          argument = Builder::address(kSumsBuffer);
          break;
        case Role::Own:
          argument = Builder::address(kOwn, 4ULL * room.begin);
          break;
        case Role::Cells:
        case Role::Alias:
          argument = Builder::address(kCells, uint64_t{4} * kCellWords * step.stream);
          break;
        case Role::Previous:
          argument = room.previous ? Builder::address(kOwn, 4ULL * *room.previous) : Builder::address(kInput);
          break;
        case Role::Room:
          argument.bytes = value_bytes(layout_.need(step.kernel, step.depth));
          break;
        case Role::Depth:
          argument.bytes = value_bytes(step.depth);
          break;
        case Role::Values: {
          const Bytes value =
              passed(program_.kernels[step.kernel].values[slot.value], step.arguments[slot.value]);
          argument.bytes.resize(formal.formals[slot.parameter].bytes);
          std::copy(value.begin(), value.end(), argument.bytes.begin() + slot.inside);
          break;
        }
      }
    }
    return out;
  }

  const Program& program_;
  Layout layout_;
};

}  // namespace

Case to_case(const Program& program) { return CaseMaker(program).make(); }

}  // namespace klap::differential::random
