#include "random/print_cell_statement.h"

#include <fmt/format.h>

#include <bit>

#include "random/print_cells.h"

namespace klap::differential::random {

namespace {

constexpr uint32_t kLocalSlots = 4;

std::string local_array_name(const KernelValues& values) {
  return fmt::format("__local_depot{}", values.number_of_kernel);
}

class CellPrinter {
 public:
  explicit CellPrinter(KernelValues& values) : values_(values), code_(values.code) {}

  void print(const Statement& s) {
    const CellAccess& c = s.cell;
    std::string index = values_.in_register(values_.print(s.values[0]));
    const std::string operand = values_.in_register(values_.print(s.values[1]));
    const std::string swapped = values_.in_register(values_.print(s.values[2]));
    if (c.via == Via::LocalIndex) index = through_local(index, operand, "u32");
    // A function takes the address as it was passed.
    const Role role = c.alias ? Role::Alias : Role::Cells;
    const std::string base =
        c.is_generic || c.via == Via::Function ? values_.pointer(role) : values_.global(role);
    const std::string offset = cell_offset(s, index);
    std::string address = code_.new_register('d');
    code_.emit("add.s64 \t{}, {}, {};", address, base, offset);
    if (c.via == Via::LocalAddress) address = through_local(address, operand, "u64");
    if (c.via == Via::OwnAddress) address = through_own(address);
    const std::string& into = values_.variables.at(s.number);
    if (c.via == Via::Function) return call_access(c, address, operand, swapped, into);
    // The variable may be an operand.
    const std::string result = code_.new_register('r');
    print_access(code_, c, address, operand, swapped, result);
    code_.emit("mov.u32 \t{}, {};", into, result);
  }

 private:
  std::string cell_offset(const Statement& s, const std::string& index) {
    const uint32_t bytes = 4 * s.cell.words();
    std::string offset = code_.new_register('d');
    if (s.values.size() == 3) {
      code_.emit("mul.wide.u32 \t{}, {}, {};", offset, index, bytes);
      return shifted(offset, s.cell.shift);
    }
    const std::string row = code_.new_register('d'), column = code_.new_register('d'),
                      sum = code_.new_register('d');
    code_.emit("mul.wide.u32 \t{}, {}, {};", row, index, values_.print(s.values[3]));
    code_.emit("shl.b64 \t{}, {}, {};", offset, row, std::countr_zero(bytes));
    const std::string number = values_.in_register(values_.print(s.values[4]));
    code_.emit("mul.wide.u32 \t{}, {}, {};", column, number, bytes);
    code_.emit("add.s64 \t{}, {}, {};", sum, shifted(offset, s.cell.shift), column);
    return sum;
  }

  std::string shifted(const std::string& offset, uint32_t by) {
    if (by == 0) return offset;
    std::string into = code_.new_register('d');
    code_.emit("shl.b64 \t{}, {}, {};", into, offset, by);
    return into;
  }

  // Stores a value to the element `which % kLocalSlots` of a local array, and loads it.
  std::string through_local(const std::string& value, const std::string& which, std::string_view type) {
    const std::string base = code_.new_register('d'), slot = code_.new_register('r'),
                      offset = code_.new_register('d'), at = code_.new_register('d');
    code_.emit("mov.u64 \t{}, {};", base, local_array_name(values_));
    code_.emit("and.b32  \t{}, {}, {};", slot, which, kLocalSlots - 1);
    code_.emit("mul.wide.u32 \t{}, {}, 8;", offset, slot);
    code_.emit("add.s64 \t{}, {}, {};", at, base, offset);
    const std::string loaded = code_.new_register(type == "u64" ? 'd' : 'r');
    code_.emit("st.local.{} \t[{}], {};", type, at, value);
    code_.emit("ld.local.{} \t{}, [{}];", type, loaded, at);
    return loaded;
  }

  // Stores an address to the thread's own words 2 and 3, and loads it. No address is left there.
  std::string through_own(const std::string& address) {
    const std::string own = values_.own_words(), loaded = code_.new_register('d');
    code_.emit("st.global.u64 \t[{}+8], {};", own, address);
    code_.emit("ld.global.u64 \t{}, [{}+8];", loaded, own);
    code_.emit("st.global.u64 \t[{}+8], 0;", own);
    return loaded;
  }

  void call_access(const CellAccess& access, const std::string& address, const std::string& operand,
                   const std::string& swapped, const std::string& into) {
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", values_.calls++);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", address);
    code_.raw("\t.param .b32 param1;\n\tst.param.b32 \t[param1+0], {};\n", operand);
    code_.raw("\t.param .b32 param2;\n\tst.param.b32 \t[param2+0], {};\n", swapped);
    code_.raw(
        "\t.param .b32 retval0;\n\tcall.uni (retval0), \n\t{}, \n\t(\n\tparam0, \n\tparam1, "
        "\n\tparam2\n\t);\n",
        access_function_name(access));
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", into, values_.calls - 1);
  }

  KernelValues& values_;
  Code& code_;
};

}  // namespace

std::string local_array_declaration(const KernelValues& values) {
  return fmt::format("\t.local .align 8 .b8 {}[{}];\n", local_array_name(values), 8 * kLocalSlots);
}

bool uses_local_array(const Statement& s) {
  return s.cell.via == Via::LocalIndex || s.cell.via == Via::LocalAddress;
}

void print_cell(KernelValues& values, const Statement& s) { CellPrinter(values).print(s); }

}  // namespace klap::differential::random
