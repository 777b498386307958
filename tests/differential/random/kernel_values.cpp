#include "random/kernel_values.h"

#include <fmt/format.h>

#include <bit>

namespace klap::differential::random {

std::string kernel_name(uint32_t kernel) { return fmt::format("kernel{}", kernel); }

const char* type_of(Width width) {
  switch (width) {
    case Width::U8:
      return "u8";
    case Width::S8:
      return "s8";
    case Width::U16:
      return "u16";
    case Width::S16:
      return "s16";
    case Width::U32:
      return "u32";
    case Width::U64:
      return "u64";
    case Width::F32:
      return "f32";
  }
  return "u32";
}

KernelValues::KernelValues(const Program& of, const Layout& rooms, uint32_t which)
    : program(of),
      layout(rooms),
      number_of_kernel(which),
      kernel(of.kernels[which]),
      name(kernel_name(which)),
      signature(random::signature(of, which)),
      code(name, fmt::format("$L__BB{}_", which)),
      expressions_(code, [this](const Expression& e) { return leaf(e); }) {
  for (uint32_t i = 0; i < kernel.variables; ++i) variables.push_back(code.new_register('r'));
}

std::string KernelValues::once(const std::string& key, char kind,
                               const std::function<void(const std::string&)>& compute) {
  const auto found = inputs_by_key_.find(key);
  if (found != inputs_by_key_.end()) return found->second;
  const std::string into = code.new_register(kind);
  std::string body;
  code.swap_text(body);
  compute(into);
  code.swap_text(body);
  inputs_ += body;
  return inputs_by_key_[key] = into;
}

std::string KernelValues::special(const char* what, uint32_t axis) {
  const std::string source = fmt::format("%{}.{}", what, "xyz"[axis]);
  return once(source, 'r', [&](const std::string& into) { code.emit("mov.u32 \t{}, {};", into, source); });
}

std::string KernelValues::linear_index(const char* index, const char* extent) {
  return once(std::string("linear ") + index, 'r', [&](const std::string& into) {
    const std::string row = code.new_register('r');
    const std::string z = special(index, 2), height = special(extent, 1), y = special(index, 1);
    const std::string width = special(extent, 0), x = special(index, 0);
    code.emit("mad.lo.s32 \t{}, {}, {}, {};", row, z, height, y);
    code.emit("mad.lo.s32 \t{}, {}, {}, {};", into, row, width, x);
  });
}

std::string KernelValues::threads_of_block() {
  return once("threads", 'r', [&](const std::string& into) {
    const std::string area = code.new_register('r');
    const std::string x = special("ntid", 0), y = special("ntid", 1), z = special("ntid", 2);
    code.emit("mul.lo.s32 \t{}, {}, {};", area, x, y);
    code.emit("mul.lo.s32 \t{}, {}, {};", into, area, z);
  });
}

std::string KernelValues::linear() {
  return once("linear", 'r', [&](const std::string& into) {
    const std::string block = linear_index("ctaid", "nctaid"), threads = threads_of_block(),
                      in_block = thread();
    code.emit("mad.lo.s32 \t{}, {}, {}, {};", into, block, threads, in_block);
  });
}

std::string KernelValues::pointer(Role role) {
  return once(fmt::format("pointer {}", static_cast<int>(role)), 'd', [&](const std::string& into) {
    code.emit("ld.param.u64 \t{}, [{}];", into, parameter_name(signature.find(role)->parameter));
  });
}

std::string KernelValues::global(Role role) {
  return once(fmt::format("global {}", static_cast<int>(role)), 'd', [&](const std::string& into) {
    const std::string generic = pointer(role);
    code.emit("cvta.to.global.u64 \t{}, {};", into, generic);
  });
}

std::string KernelValues::number(Role role) {
  return once(fmt::format("number {}", static_cast<int>(role)), 'r', [&](const std::string& into) {
    code.emit("ld.param.u32 \t{}, [{}];", into, parameter_name(signature.find(role)->parameter));
  });
}

std::string KernelValues::own_words() {
  return once("own words", 'd', [&](const std::string& into) {
    const std::string index = linear(), base = global(Role::Own), bytes = code.new_register('d');
    code.emit("mul.wide.u32 \t{}, {}, {};", bytes, index, 4 * kernel.own_words);
    code.emit("add.s64 \t{}, {}, {};", into, base, bytes);
  });
}

std::string KernelValues::value(uint32_t value) {
  return once(fmt::format("value {}", value), 'r', [&](const std::string& into) { load_value(into, value); });
}

void KernelValues::load_value(const std::string& into, uint32_t value) {
  const Slot* slot = nullptr;
  for (const Slot& s : signature.slots) {
    if (s.role == Role::Values && s.value == value) slot = &s;
  }
  std::string from = parameter_name(slot->parameter);
  if (slot->inside != 0) from += fmt::format("+{}", slot->inside);
  const Width width = kernel.values[value];
  switch (width) {
    case Width::U8:
    case Width::U16:
    case Width::U32:
      return code.emit("ld.param.{} \t{}, [{}];", type_of(width), into, from);
    case Width::S8:
    case Width::S16: {
      const std::string half = code.new_register('s');
      code.emit("ld.param.{} \t{}, [{}];", type_of(width), half, from);
      return code.emit("cvt.s32.s16 \t{}, {};", into, half);
    }
    case Width::U64: {
      const std::string wide = code.new_register('d'), shifted = code.new_register('d');
      const std::string low = code.new_register('r'), high = code.new_register('r');
      code.emit("ld.param.u64 \t{}, [{}];", wide, from);
      code.emit("cvt.u32.u64 \t{}, {};", low, wide);
      code.emit("shr.u64 \t{}, {}, 32;", shifted, wide);
      code.emit("cvt.u32.u64 \t{}, {};", high, shifted);
      return code.emit("xor.b32  \t{}, {}, {};", into, low, high);
    }
    case Width::F32: {
      const std::string real = code.new_register('f');
      code.emit("ld.param.f32 \t{}, [{}];", real, from);
      return code.emit("cvt.rzi.u32.f32 \t{}, {};", into, real);
    }
  }
}

std::string KernelValues::leaf(const Expression& e) {
  switch (e.op) {
    case Op::Local:
      return variables.at(e.value);
    case Op::Parameter:
      return value(e.value);
    case Op::Tid:
      return special("tid", e.value);
    case Op::Ctaid:
      return special("ctaid", e.value);
    case Op::Ntid:
      return special("ntid", e.value);
    case Op::Nctaid:
      return special("nctaid", e.value);
    case Op::Thread:
      return thread();
    case Op::Linear:
      return linear();
    case Op::Depth:
      return number(Role::Depth);
    case Op::Own:
      return load("ld.global.u32", fmt::format("{}+{}", own_words(), 4 * e.value));
    case Op::Message:
      return load("ld.global.u32", global(Role::Message));
    case Op::Input:
      return load("ld.global.nc.u32", element(global(Role::Input), e.operands[0], kInputWords));
    case Op::Previous:
      return load("ld.global.u32", element(global(Role::Previous), e.operands[0], program.previous_words));
    default:
      return "0";
  }
}

std::string KernelValues::load(const char* opcode, const std::string& address) {
  const std::string into = code.new_register('r');
  code.emit("{} \t{}, [{}];", opcode, into, address);
  return into;
}

std::string KernelValues::element(const std::string& base, const Expression& index, uint32_t count,
                                  uint32_t bytes) {
  const std::string i = in_register(expressions_.print(index));
  const std::string rest = code.new_register('r'), offset = code.new_register('d'),
                    at = code.new_register('d');
  if (std::has_single_bit(count)) {
    code.emit("and.b32  \t{}, {}, {};", rest, i, count - 1);
  } else {
    code.emit("rem.u32 \t{}, {}, {};", rest, i, count);
  }
  code.emit("mul.wide.u32 \t{}, {}, {};", offset, rest, bytes);
  code.emit("add.s64 \t{}, {}, {};", at, base, offset);
  return at;
}

std::string KernelValues::in_register(const std::string& operand) {
  if (operand.starts_with('%')) return operand;
  const std::string into = code.new_register('r');
  code.emit("mov.u32 \t{}, {};", into, operand);
  return into;
}

std::string KernelValues::extent(const Extent& e) {
  if (e.spread == 1) return std::to_string(e.low);
  const std::string x = in_register(expressions_.print(e.of));
  const std::string rest = code.new_register('r'), sum = code.new_register('r');
  code.emit("rem.u32 \t{}, {}, {};", rest, x, e.spread);
  code.emit("add.s32 \t{}, {}, {};", sum, rest, e.low);
  return sum;
}

}  // namespace klap::differential::random
