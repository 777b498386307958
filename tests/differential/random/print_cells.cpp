#include "random/print_cells.h"

namespace klap::differential::random {

namespace {

constexpr int kPolls = 4;

class AccessPrinter {
 public:
  AccessPrinter(Code& code, const CellAccess& access, std::string address)
      : code_(code),
        access_(access),
        address_(std::move(address)),
        space_(access.is_generic ? "" : ".global"),
        type_(fmt::format("u{}", 8 * access.bytes)),
        bits_(fmt::format("b{}", 8 * access.bytes)) {}

  void print(const std::string& operand, const std::string& swapped, const std::string& into) {
    code_.emit("mov.u32 \t{}, 0;", into);
    switch (access_.op) {
      case CellOp::Scratch:
        return scratch(operand, into);
      case CellOp::Poll:
        return poll(operand, into);
      case CellOp::AddBySwap:
        return add_by_swap(value(operand, 0));
      case CellOp::AtomicAdd:
        return atomic("red", "add." + type_, "", value(operand, 0), into);
      case CellOp::AtomicMaximum:
        return atomic("red", "max." + type_, "", value(operand, 0), into);
      case CellOp::AtomicAddFloat:
        return atomic("red", "add.f32", "", real(operand), into);
      case CellOp::AtomicAddUsed:
        return atomic("atom", "add." + type_, "", value(operand, 0), into);
      case CellOp::Exchange:
        return atomic("atom", "exch." + bits_, "", value(operand, 0), into);
      case CellOp::CompareSwap:
        return atomic("atom", "cas." + bits_, value(swapped, 0), value(operand, 0), into);
      default:
        return plain(operand, into);
    }
  }

 private:
  [[nodiscard]] char kind() const { return access_.bytes == 8 ? 'd' : 'r'; }

  [[nodiscard]] std::string opcode(const char* name) const {
    const std::string_view cache = access_.form == CellForm::CacheGlobal ? ".cg" : "";
    const std::string_view semantics = access_.form == CellForm::Volatile  ? ".volatile"
                                       : access_.form == CellForm::Relaxed ? ".relaxed.gpu"
                                                                           : "";
    const std::string vector = access_.elements == 1 ? "" : fmt::format(".v{}", access_.elements);
    return fmt::format("{}{}{}{}{}.{}", name, semantics, space_, cache, vector, type_);
  }

  // The operand of one element, no wider than the cell.
  std::string value(const std::string& operand, uint32_t element) {
    if (access_.bytes == 8) {
      const std::string wide = code_.new_register('d');
      code_.emit("mul.wide.u32 \t{}, {}, {};", wide, operand, static_cast<int32_t>(kWideFactor));
      return wide;
    }
    if (access_.bytes == 4 && element == 0) return operand;
    const std::string into = code_.new_register('r');
    if (access_.bytes == 4) {
      code_.emit("add.s32 \t{}, {}, {};", into, operand, element);
    } else {
      code_.emit("and.b32  \t{}, {}, {};", into, operand, (1U << 8 * access_.bytes) - 1);
    }
    return into;
  }

  std::string real(const std::string& operand) {
    const std::string product = code_.new_register('r'), odd = code_.new_register('r'),
                      into = code_.new_register('f');
    code_.emit("mul.lo.s32 \t{}, {}, {};", product, operand, static_cast<int32_t>(kFloatFactor));
    code_.emit("or.b32  \t{}, {}, 1;", odd, product);
    code_.emit("cvt.rn.f32.s32 \t{}, {};", into, odd);
    return into;
  }

  [[nodiscard]] static std::string list(const std::vector<std::string>& names) {
    if (names.size() == 1) return names[0];
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "{" : ", ") + name;
    return text + "}";
  }

  void fold(const std::string& cell, const std::string& into) {
    if (access_.bytes != 8) return code_.emit("xor.b32  \t{}, {}, {};", into, into, cell);
    const std::string low = code_.new_register('r'), high = code_.new_register('r');
    code_.emit("mov.b64 \t{{{}, {}}}, {};", low, high, cell);
    code_.emit("xor.b32  \t{}, {}, {};", into, into, low);
    code_.emit("xor.b32  \t{}, {}, {};", into, into, high);
  }

  std::string changed(const std::string& old, const std::string& by) {
    if (access_.op == CellOp::Write) return by;
    const std::string next = code_.new_register(kind());
    const char* width = access_.bytes == 8 ? "64" : "32";
    if (access_.op == CellOp::Maximum) {
      code_.emit("max.u{} \t{}, {}, {};", width, next, old, by);
    } else if (access_.op == CellOp::Affine) {
      code_.emit("mad.lo.s{} \t{}, {}, 3, {};", width, next, old, by);
    } else {
      code_.emit("add.s{} \t{}, {}, {};", width, next, old, by);
    }
    if (access_.op == CellOp::Affine && access_.bytes < 4)
      code_.emit("and.b32  \t{}, {}, {};", next, next, (1U << 8 * access_.bytes) - 1);
    return next;
  }

  void plain(const std::string& operand, const std::string& into) {
    const bool is_loading = access_.op != CellOp::Write, is_storing = access_.op != CellOp::Read;
    std::vector<std::string> cells, next;
    for (uint32_t i = 0; i < access_.elements; ++i) cells.push_back(code_.new_register(kind()));
    if (is_loading) code_.emit("{} \t{}, [{}];", opcode("ld"), list(cells), address_);
    for (uint32_t i = 0; i < access_.elements && is_storing; ++i)
      next.push_back(changed(cells[i], value(operand, i)));
    if (is_storing) code_.emit("{} \t[{}], {};", opcode("st"), address_, list(next));
    if (!access_.has_result()) return;
    for (const std::string& cell : access_.op == CellOp::Read ? cells : next) fold(cell, into);
  }

  void atomic(const char* name, const std::string& operation, const std::string& compared,
              const std::string& by, const std::string& into) {
    const std::string head = fmt::format("{}{}.{}", name, space_, operation);
    const std::string operands = compared.empty() ? by : compared + ", " + by;
    if (std::string_view(name) == "red") return code_.emit("{} \t[{}], {};", head, address_, operands);
    const std::string old = code_.new_register(kind());
    code_.emit("{} \t{}, [{}], {};", head, old, address_, operands);
    if (access_.has_result()) fold(old, into);
  }

  // Words 0 to 3 are the operand times 1 to 4, are read back and are 0 in the end.
  void scratch(const std::string& operand, const std::string& into) {
    const std::string sum = code_.new_register('r');
    const auto word = [this](uint32_t i) {
      return i == 0 ? address_ : fmt::format("{}+{}", address_, 4 * i);
    };
    code_.emit("mov.u32 \t{}, 0;", sum);
    for (uint32_t i = 0; i < 4; ++i) {
      code_.emit("add.s32 \t{}, {}, {};", sum, sum, operand);
      code_.emit("{} \t[{}], {};", opcode("st"), word(i), sum);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      const std::string found = code_.new_register('r');
      code_.emit("{} \t{}, [{}];", opcode("ld"), found, word(i));
      code_.emit("mad.lo.s32 \t{}, {}, 31, {};", into, into, found);
    }
    for (uint32_t i = 0; i < 4; ++i) code_.emit("{} \t[{}], 0;", opcode("st"), word(i));
  }

  void poll(const std::string& operand, const std::string& into) {
    const std::string head = code_.new_label(), tries = code_.new_register('r');
    const std::string is_there = code_.new_register('p'), again = code_.new_register('p');
    code_.emit("mov.u32 \t{}, 0;", tries);
    code_.place(head);
    code_.emit("{} \t{}, [{}];", opcode("ld"), into, address_);
    code_.emit("add.s32 \t{}, {}, 1;", tries, tries);
    code_.emit("setp.eq.s32 \t{}, {}, {};", is_there, into, operand);
    code_.emit("selp.b32 \t{}, {}, {}, {};", tries, kPolls, tries, is_there);
    code_.emit("setp.lt.u32 \t{}, {}, {};", again, tries, kPolls);
    code_.emit("@{} bra \t{};", again, head);
  }

  void add_by_swap(const std::string& by) {
    const std::string head = code_.new_label(), again = code_.new_register('p');
    const std::string old = code_.new_register(kind()), sum = code_.new_register(kind()),
                      found = code_.new_register(kind());
    const char* width = access_.bytes == 8 ? "64" : "32";
    code_.emit("ld.relaxed.gpu{}.{} \t{}, [{}];", space_, type_, old, address_);
    code_.place(head);
    code_.emit("add.s{} \t{}, {}, {};", width, sum, old, by);
    code_.emit("atom{}.cas.{} \t{}, [{}], {}, {};", space_, bits_, found, address_, old, sum);
    code_.emit("setp.ne.s{} \t{}, {}, {};", width, again, found, old);
    code_.emit("mov.{} \t{}, {};", bits_, old, found);
    code_.emit("@{} bra \t{};", again, head);
  }

  Code& code_;
  const CellAccess& access_;
  std::string address_;
  std::string_view space_;
  std::string type_, bits_;
};

}  // namespace

void print_access(Code& code, const CellAccess& access, const std::string& address,
                  const std::string& operand, const std::string& swapped, const std::string& into) {
  AccessPrinter(code, access, address).print(operand, swapped, into);
}

std::string access_function_name(const CellAccess& access) {
  return fmt::format("access_{}_{}_{}x{}{}{}", static_cast<int>(access.op), static_cast<int>(access.form),
                     access.bytes, access.elements, access.is_generic ? "_generic" : "",
                     access.drops_result ? "_dropped" : "");
}

std::string access_function(const CellAccess& access) {
  const std::string name = access_function_name(access);
  Code code(name, fmt::format("$L__BB_{}_", name));
  std::string address = code.new_register('d');
  const std::string operand = code.new_register('r'), swapped = code.new_register('r'),
                    result = code.new_register('r');
  code.emit("ld.param.u64 \t{}, [{}_param_0];", address, name);
  code.emit("ld.param.u32 \t{}, [{}_param_1];", operand, name);
  code.emit("ld.param.u32 \t{}, [{}_param_2];", swapped, name);
  if (!access.is_generic) {
    const std::string global = code.new_register('d');
    code.emit("cvta.to.global.u64 \t{}, {};", global, address);
    address = global;
  }
  print_access(code, access, address, operand, swapped, result);
  code.emit("st.param.b32 \t[func_retval0+0], {};", result);
  return fmt::format(
      ".func  (.param .b32 func_retval0) {0}(\n\t.param .b64 {0}_param_0,\n\t.param .b32 {0}_param_1,\n"
      "\t.param .b32 {0}_param_2\n)\n{{\n{1}\n{2}\tret;\n\n}}\n",
      name, code.declarations(), code.text());
}

}  // namespace klap::differential::random
