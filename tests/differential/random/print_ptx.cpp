#include "random/print_ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "random/print_cells.h"
#include "random/print_expression.h"
#include "random/print_turns.h"

namespace klap::differential::random {

std::string kernel_name(uint32_t kernel) { return fmt::format("kernel{}", kernel); }

namespace {

constexpr uint32_t kLocalSlots = 4;

std::string function_name(uint32_t function) { return fmt::format("function{}", function); }

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

constexpr std::string_view kRuntime =
    R"(.extern .func  (.param .b64 func_retval0) __cudaCDP2GetParameterBufferV2
(
	.param .b64 __cudaCDP2GetParameterBufferV2_param_0,
	.param .align 4 .b8 __cudaCDP2GetParameterBufferV2_param_1[12],
	.param .align 4 .b8 __cudaCDP2GetParameterBufferV2_param_2[12],
	.param .b32 __cudaCDP2GetParameterBufferV2_param_3
)
;
.extern .func  (.param .b32 func_retval0) __cudaCDP2LaunchDeviceV2
(
	.param .b64 __cudaCDP2LaunchDeviceV2_param_0,
	.param .b64 __cudaCDP2LaunchDeviceV2_param_1
)
;
)";

class KernelPrinter {
 public:
  KernelPrinter(const Program& program, const Layout& layout, uint32_t number)
      : program_(program),
        layout_(layout),
        number_(number),
        kernel_(program.kernels[number]),
        name_(kernel_name(number)),
        signature_(signature(program, number)),
        code_(name_, fmt::format("$L__BB{}_", number)),
        expressions_(code_, [this](const Expression& e) { return leaf(e); }) {}

  std::string print() {
    for (uint32_t i = 0; i < kernel_.variables; ++i) variables_.push_back(code_.new_register('r'));
    prologue();
    print(kernel_.body);
    std::string text = header();
    text += "{\n" + shared_declaration() + local_declaration() + code_.declarations() + "\n" + inputs_ +
            "\n" + code_.text() + "\n";
    if (return_label_used_) text += return_label() + ":\n";
    return text + "\tret;\n\n}\n";
  }

 private:
  // ---- header and what is computed at the top ----

  [[nodiscard]] std::string parameter_name(uint32_t parameter) const {
    return fmt::format("{}_param_{}", name_, parameter);
  }

  std::string header() const {
    std::string text = fmt::format("\t// .globl\t{}\n.visible .entry {}(\n", name_, name_);
    for (size_t i = 0; i < signature_.formals.size(); ++i) {
      const Formal& f = signature_.formals[i];
      const std::string what = parameter_name(static_cast<uint32_t>(i));
      text += f.is_structure ? fmt::format("\t.param .align {} .b8 {}[{}]", f.align, what, f.bytes)
                             : fmt::format("\t.param .{} {}", scalar_type(static_cast<uint32_t>(i)), what);
      text += i + 1 < signature_.formals.size() ? ",\n" : "\n";
    }
    return text + ")\n";
  }

  std::string scalar_type(uint32_t parameter) const {
    for (const Slot& slot : signature_.slots) {
      if (slot.parameter != parameter) continue;
      if (slot.role == Role::Values) {
        const std::string_view type = type_of(kernel_.values[slot.value]);
        return type == "s8" ? "u8" : type == "s16" ? "u16" : std::string(type);  // as nvcc declares them
      }
      return slot.role == Role::Room || slot.role == Role::Depth ? "u32" : "u64";
    }
    return "u32";
  }

  // What Exchange needs is declared here or, if dynamic, once for the module.
  std::string shared_declaration() const {
    std::string text;
    if (has_shared_word_) text = fmt::format("\t.shared .align 4 .b8 {}_turn[4];\n", name_);
    if (!has_kind(kernel_.body, Kind::Exchange) || kernel_.dynamic_shared) return text;
    return text + fmt::format("\t.shared .align 4 .b8 {}[{}];\n", shared_name(), 4 * product(kernel_.block));
  }
  std::string local_declaration() const {
    return has_local_ ? fmt::format("\t.local .align 8 .b8 {}[{}];\n", local_name(), 8 * kLocalSlots) : "";
  }
  [[nodiscard]] std::string local_name() const { return fmt::format("__local_depot{}", number_); }
  [[nodiscard]] std::string shared_name() const {
    return kernel_.dynamic_shared ? "dynamic_memory" : name_ + "_shared";
  }

  void prologue() {
    for (const std::string& variable : variables_) code_.emit("mov.u32 \t{}, 0;", variable);
    if (has_kind(kernel_.body, Kind::Exchange)) {
      code_.emit("st.shared.u32 \t[{}], 0;", shared_address(thread()));
      code_.emit("bar.sync \t0;");
    }
    if (kernel_.message) {
      store_own(0, *kernel_.message);
      if (kernel_.barrier_after_message) code_.emit("bar.sync \t0;");
    }
  }

  // Values that are computed before everything else, when they are first asked for.
  std::string once(const std::string& key, char kind,
                   const std::function<void(const std::string&)>& compute) {
    const auto found = inputs_by_key_.find(key);
    if (found != inputs_by_key_.end()) return found->second;
    const std::string into = code_.new_register(kind);
    std::string body;
    code_.swap_text(body);
    compute(into);
    code_.swap_text(body);
    inputs_ += body;
    return inputs_by_key_[key] = into;
  }

  std::string special(const char* what, uint32_t axis) {
    const std::string source = fmt::format("%{}.{}", what, "xyz"[axis]);
    return once(source, 'r', [&](const std::string& into) { code_.emit("mov.u32 \t{}, {};", into, source); });
  }

  // (z * extent_y + y) * extent_x + x
  std::string linear_index(const char* index, const char* extent) {
    return once(std::string("linear ") + index, 'r', [&](const std::string& into) {
      const std::string row = code_.new_register('r');
      const std::string z = special(index, 2), height = special(extent, 1), y = special(index, 1);
      const std::string width = special(extent, 0), x = special(index, 0);
      code_.emit("mad.lo.s32 \t{}, {}, {}, {};", row, z, height, y);
      code_.emit("mad.lo.s32 \t{}, {}, {}, {};", into, row, width, x);
    });
  }
  std::string thread() { return linear_index("tid", "ntid"); }
  std::string threads_of_block() {
    return once("threads", 'r', [&](const std::string& into) {
      const std::string area = code_.new_register('r');
      const std::string x = special("ntid", 0), y = special("ntid", 1), z = special("ntid", 2);
      code_.emit("mul.lo.s32 \t{}, {}, {};", area, x, y);
      code_.emit("mul.lo.s32 \t{}, {}, {};", into, area, z);
    });
  }
  std::string linear() {
    return once("linear", 'r', [&](const std::string& into) {
      const std::string block = linear_index("ctaid", "nctaid"), threads = threads_of_block(),
                        in_block = thread();
      code_.emit("mad.lo.s32 \t{}, {}, {}, {};", into, block, threads, in_block);
    });
  }

  // A pointer parameter as it was passed, and as a global address.
  std::string pointer(Role role) {
    return once(fmt::format("pointer {}", static_cast<int>(role)), 'd', [&](const std::string& into) {
      code_.emit("ld.param.u64 \t{}, [{}];", into, parameter_name(signature_.find(role)->parameter));
    });
  }
  std::string global(Role role) {
    return once(fmt::format("global {}", static_cast<int>(role)), 'd', [&](const std::string& into) {
      const std::string generic = pointer(role);
      code_.emit("cvta.to.global.u64 \t{}, {};", into, generic);
    });
  }
  std::string number(Role role) {
    return once(fmt::format("number {}", static_cast<int>(role)), 'r', [&](const std::string& into) {
      code_.emit("ld.param.u32 \t{}, [{}];", into, parameter_name(signature_.find(role)->parameter));
    });
  }
  // The thread's own words, in global memory.
  std::string own_words() {
    return once("own words", 'd', [&](const std::string& into) {
      const std::string index = linear(), base = global(Role::Own), bytes = code_.new_register('d');
      code_.emit("mul.wide.u32 \t{}, {}, {};", bytes, index, 4 * kernel_.own_words);
      code_.emit("add.s64 \t{}, {}, {};", into, base, bytes);
    });
  }

  std::string value(uint32_t value) {
    return once(fmt::format("value {}", value), 'r',
                [&](const std::string& into) { load_value(into, value); });
  }
  void load_value(const std::string& into, uint32_t value) {
    const Slot* slot = nullptr;
    for (const Slot& s : signature_.slots) {
      if (s.role == Role::Values && s.value == value) slot = &s;
    }
    std::string from = parameter_name(slot->parameter);
    if (slot->inside != 0) from += fmt::format("+{}", slot->inside);
    const Width width = kernel_.values[value];
    switch (width) {
      case Width::U8:
      case Width::U16:
      case Width::U32:
        return code_.emit("ld.param.{} \t{}, [{}];", type_of(width), into, from);
      case Width::S8:
      case Width::S16: {
        const std::string half = code_.new_register('s');
        code_.emit("ld.param.{} \t{}, [{}];", type_of(width), half, from);
        return code_.emit("cvt.s32.s16 \t{}, {};", into, half);
      }
      case Width::U64: {
        const std::string wide = code_.new_register('d'), shifted = code_.new_register('d');
        const std::string low = code_.new_register('r'), high = code_.new_register('r');
        code_.emit("ld.param.u64 \t{}, [{}];", wide, from);
        code_.emit("cvt.u32.u64 \t{}, {};", low, wide);
        code_.emit("shr.u64 \t{}, {}, 32;", shifted, wide);
        code_.emit("cvt.u32.u64 \t{}, {};", high, shifted);
        return code_.emit("xor.b32  \t{}, {}, {};", into, low, high);
      }
      case Width::F32: {
        const std::string real = code_.new_register('f');
        code_.emit("ld.param.f32 \t{}, [{}];", real, from);
        return code_.emit("cvt.rzi.u32.f32 \t{}, {};", into, real);
      }
    }
  }

  // ---- expressions that only kernels have ----

  std::string leaf(const Expression& e) {
    switch (e.op) {
      case Op::Local:
        return variables_.at(e.value);
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
        return load("ld.global.u32", element(global(Role::Previous), e.operands[0], program_.previous_words));
      default:
        return "0";
    }
  }

  std::string load(const char* opcode, const std::string& address) {
    const std::string into = code_.new_register('r');
    code_.emit("{} \t{}, [{}];", opcode, into, address);
    return into;
  }

  // Address of word `index % count`.
  std::string element(const std::string& base, const Expression& index, uint32_t count, uint32_t bytes = 4) {
    const std::string i = in_register(expressions_.print(index));
    const std::string rest = code_.new_register('r'), offset = code_.new_register('d'),
                      at = code_.new_register('d');
    if (std::has_single_bit(count)) {
      code_.emit("and.b32  \t{}, {}, {};", rest, i, count - 1);
    } else {
      code_.emit("rem.u32 \t{}, {}, {};", rest, i, count);
    }
    code_.emit("mul.wide.u32 \t{}, {}, {};", offset, rest, bytes);
    code_.emit("add.s64 \t{}, {}, {};", at, base, offset);
    return at;
  }

  std::string in_register(const std::string& operand) {
    if (operand.starts_with('%')) return operand;
    const std::string into = code_.new_register('r');
    code_.emit("mov.u32 \t{}, {};", into, operand);
    return into;
  }

  // low + of % spread; an immediate if that is constant.
  std::string extent(const Extent& e) {
    if (e.spread == 1) return std::to_string(e.low);
    const std::string x = in_register(expressions_.print(e.of));
    const std::string rest = code_.new_register('r'), sum = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", rest, x, e.spread);
    code_.emit("add.s32 \t{}, {}, {};", sum, rest, e.low);
    return sum;
  }

  // ---- statements ----

  void print(const std::vector<Statement>& body) {
    for (const Statement& s : body) print(s);
  }

  void print(const Statement& s) {
    switch (s.kind) {
      case Kind::Assign:
        return code_.emit("mov.u32 \t{}, {};", variables_.at(s.number), expressions_.print(s.values[0]));
      case Kind::StoreOwn:
        return store_own(s.number, s.values[0]);
      case Kind::Update:
        return update(s);
      case Kind::If:
        return branch(s);
      case Kind::Loop:
        return loop(s);
      case Kind::Return:
        return_label_used_ = true;
        return code_.emit("bra.uni \t{};", return_label());
      case Kind::Call:
        return call(s);
      case Kind::Exchange:
        return exchange(s);
      case Kind::Shuffle:
        return shuffle(s);
      case Kind::Launch:
        return launch(s.site);
      case Kind::Cell:
        return cell(s);
      case Kind::Fetch:
        return fetch(s);
      case Kind::Barrier:
        return print_barrier(code_, s.limit);
      case Kind::Turns:
        return turns(s);
    }
  }

  [[nodiscard]] std::string return_label() const { return fmt::format("$L__BB{}_return", number_); }

  void store_own(uint32_t word, const Expression& e) {
    const std::string stored = expressions_.print(e);
    code_.emit("st.global.u32 \t[{}+{}], {};", own_words(), 4 * word, stored);
  }

  void update(const Statement& s) {
    const bool wide = static_cast<Sum>(s.number) == Sum::AddWide;
    const std::string base = global(Role::Sums), from = code_.new_register('d');
    code_.emit("add.s64 \t{}, {}, {};", from, base, 4 * s.number * kSumWords);
    const std::string at = element(from, s.values[0], kSumWords, wide ? 8 : 4);
    const std::string by = in_register(expressions_.print(s.values[1]));
    if (wide) {
      const std::string product = code_.new_register('d'), old = code_.new_register('d');
      code_.emit("mul.wide.u32 \t{}, {}, {};", product, by, static_cast<int32_t>(kWideFactor));
      return code_.emit("atom.global.add.u64 \t{}, [{}], {};", old, at, product);
    }
    constexpr const char* kNames[] = {"add.u32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32"};
    if (s.limit == 0) return code_.emit("red.global.{} \t[{}], {};", kNames[s.number], at, by);
    code_.emit("atom.global.{} \t{}, [{}], {};", kNames[s.number], code_.new_register('r'), at, by);
  }

  // Goes to `label` if the expression is 0.
  void skip_unless(const Expression& e, const std::string& label) {
    const bool compares = e.op == Op::Equal || e.op == Op::Less || e.op == Op::LessSigned;
    if (compares && ++comparisons_ % 3 != 0) return skip_unless_holds(e, label);
    const std::string x = in_register(expressions_.print(e)), p = code_.new_register('p');
    code_.emit("setp.eq.s32 \t{}, {}, 0;", p, x);
    code_.emit("@{} bra \t{};", p, label);
  }

  // A comparison decides over the branch itself, in one of the forms that compilers give it.
  void skip_unless_holds(const Expression& e, const std::string& label) {
    const std::string a = in_register(expressions_.print(e.operands[0])),
                      b = expressions_.print(e.operands[1]), p = code_.new_register('p');
    const std::string_view type = e.op == Op::Less ? "u32" : "s32";
    const Expression& bound = e.operands[1];
    if (comparisons_ % 3 == 1) {
      code_.emit("setp.{}.{} \t{}, {}, {};", e.op == Op::Equal ? "eq" : "lt", type, p, a, b);
      return code_.emit("@!{} bra \t{};", p, label);
    }
    const bool has_next = bound.op == Op::Constant && bound.value != 0 && bound.value != 1U << 31;
    if (e.op == Op::Equal) {
      code_.emit("setp.ne.s32 \t{}, {}, {};", p, a, b);
    } else if (has_next) {
      code_.emit("setp.gt.{} \t{}, {}, {};", type, p, a, static_cast<int32_t>(bound.value - 1));
    } else {
      code_.emit("setp.ge.{} \t{}, {}, {};", type, p, a, b);
    }
    code_.emit("@{} bra \t{};", p, label);
  }

  // `if (!(a < b)) return;`, as compilers write it.
  bool guard(const Statement& s) {
    const bool returns = s.body.size() == 1 && s.body[0].kind == Kind::Return && s.other.empty();
    const Expression& e = s.values[0];
    if (!returns || e.op != Op::Equal || e.operands[0].op != Op::Less) return false;
    if (e.operands[1].op != Op::Constant || e.operands[1].value != 0) return false;
    const Expression& less = e.operands[0];
    const std::string a = in_register(expressions_.print(less.operands[0]));
    const std::string b = expressions_.print(less.operands[1]), p = code_.new_register('p');
    code_.emit("setp.ge.u32 \t{}, {}, {};", p, a, b);
    code_.emit("@{} bra \t{};", p, return_label());
    return return_label_used_ = true;
  }

  void branch(const Statement& s) {
    if (guard(s)) return;
    const std::string otherwise = code_.new_label(), end = code_.new_label();
    skip_unless(s.values[0], s.other.empty() ? end : otherwise);
    print(s.body);
    if (!s.other.empty()) {
      code_.emit("bra.uni \t{};", end);
      code_.place(otherwise);
      print(s.other);
    }
    code_.place(end);
  }

  void loop(const Statement& s) {
    const std::string head = code_.new_label(), end = code_.new_label();
    const std::string& counter = variables_.at(s.number);
    const std::string x = in_register(expressions_.print(s.values[0]));
    const std::string trips = code_.new_register('r'), none = code_.new_register('p'),
                      more = code_.new_register('p');
    code_.emit("rem.u32 \t{}, {}, {};", trips, x, s.limit + 1);
    code_.emit("mov.u32 \t{}, 0;", counter);
    code_.emit("setp.eq.s32 \t{}, {}, 0;", none, trips);
    code_.emit("@{} bra \t{};", none, end);
    code_.place(head);
    loops_.push_back(&s);
    print(s.body);
    loops_.pop_back();
    code_.emit("add.s32 \t{}, {}, 1;", counter, counter);
    code_.emit("setp.lt.u32 \t{}, {}, {};", more, counter, trips);
    code_.emit("@{} bra \t{};", more, head);
    code_.place(end);
  }

  void call(const Statement& s) {
    const std::string a = expressions_.print(s.values[0]), b = expressions_.print(s.values[1]);
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", calls_++);
    code_.raw("\t.param .b32 param0;\n\tst.param.b32 \t[param0+0], {};\n", a);
    code_.raw("\t.param .b32 param1;\n\tst.param.b32 \t[param1+0], {};\n", b);
    code_.raw("\t.param .b32 retval0;\n\tcall.uni (retval0), \n\t{}, \n\t(\n\tparam0, \n\tparam1\n\t);\n",
              function_name(s.limit));
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", variables_.at(s.number), calls_ - 1);
  }

  std::string shared_address(const std::string& index) {
    const std::string base = code_.new_register('r'), offset = code_.new_register('r'),
                      at = code_.new_register('r');
    code_.emit("mov.u32 \t{}, {};", base, shared_name());
    code_.emit("shl.b32 \t{}, {}, 2;", offset, index);
    code_.emit("add.s32 \t{}, {}, {};", at, base, offset);
    return at;
  }

  void exchange(const Statement& s) {
    const std::string given = in_register(expressions_.print(s.values[0]));
    const std::string index = in_register(expressions_.print(s.values[1])), from = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", from, index, threads_of_block());
    code_.emit("st.shared.u32 \t[{}], {};", shared_address(thread()), given);
    code_.emit("bar.sync \t0;");
    code_.emit("ld.shared.u32 \t{}, [{}];", variables_.at(s.number), shared_address(from));
    code_.emit("bar.sync \t0;");
  }

  void shuffle(const Statement& s) {
    const std::string given = in_register(expressions_.print(s.values[0])), p = code_.new_register('p');
    code_.emit("shfl.sync.bfly.b32 \t{}|{}, {}, {}, 31, -1;", variables_.at(s.number), p, given, s.limit);
  }

  // ---- cells and turns ----

  void turns(const Statement& s) {
    TurnsPlace place{thread(), threads_of_block(), "", [&] { print(s.body); }};
    if (is_by_global_word(s.turns.relation)) {
      place.word = flag();
    } else if (is_by_word(s.turns.relation)) {
      has_shared_word_ = true;
      place.word = code_.new_register('r');
      code_.emit("mov.u32 \t{}, {}_turn;", place.word, name_);
    }
    print_turns(code_, s.turns, place);
  }

  // The block's word behind what threads own.
  std::string flag() {
    const std::string block = linear_index("ctaid", "nctaid"), base = global(Role::Own);
    const std::string bytes = code_.new_register('d'), first = code_.new_register('d'),
                      at = code_.new_register('d');
    code_.emit("mul.wide.u32 \t{}, {}, 4;", bytes, block);
    code_.emit("add.s64 \t{}, {}, {};", first, base, 4 * layout_.flags[number_]);
    code_.emit("add.s64 \t{}, {}, {};", at, first, bytes);
    return at;
  }

  void fetch(const Statement& s) {
    constexpr const char* kNames[] = {"or.b32", "add.u32", "max.u32", "xor.b32"};
    const uint32_t name = s.values.empty() ? 0 : s.values[0].value % 4;
    code_.emit("atom.global.{} \t{}, [{}+{}], 0;", kNames[name], variables_.at(s.number), own_words(),
               4 * s.limit);
  }

  void cell(const Statement& s) {
    const CellAccess& c = s.cell;
    std::string index = in_register(expressions_.print(s.values[0]));
    const std::string operand = in_register(expressions_.print(s.values[1]));
    const std::string swapped = in_register(expressions_.print(s.values[2]));
    if (c.via == Via::LocalIndex) index = through_local(index, operand, "u32");
    // A function takes the address as it was passed.
    const Role role = c.alias ? Role::Alias : Role::Cells;
    const std::string base = c.is_generic || c.via == Via::Function ? pointer(role) : global(role);
    const std::string offset = cell_offset(s, index);
    std::string address = code_.new_register('d');
    code_.emit("add.s64 \t{}, {}, {};", address, base, offset);
    if (c.via == Via::LocalAddress) address = through_local(address, operand, "u64");
    if (c.via == Via::OwnAddress) address = through_own(address);
    const std::string& into = variables_.at(s.number);
    if (c.via == Via::Function) return call_access(c, address, operand, swapped, into);
    // The variable may be an operand.
    const std::string result = code_.new_register('r');
    print_access(code_, c, address, operand, swapped, result);
    code_.emit("mov.u32 \t{}, {};", into, result);
  }

  std::string cell_offset(const Statement& s, const std::string& index) {
    const uint32_t bytes = 4 * s.cell.words();
    std::string offset = code_.new_register('d');
    if (s.values.size() == 3) {
      code_.emit("mul.wide.u32 \t{}, {}, {};", offset, index, bytes);
      return shifted(offset, s.cell.shift);
    }
    const std::string row = code_.new_register('d'), column = code_.new_register('d'),
                      sum = code_.new_register('d');
    code_.emit("mul.wide.u32 \t{}, {}, {};", row, index, expressions_.print(s.values[3]));
    code_.emit("shl.b64 \t{}, {}, {};", offset, row, std::countr_zero(bytes));
    const std::string number = in_register(expressions_.print(s.values[4]));
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
    has_local_ = true;
    const std::string base = code_.new_register('d'), slot = code_.new_register('r'),
                      offset = code_.new_register('d'), at = code_.new_register('d');
    code_.emit("mov.u64 \t{}, {};", base, local_name());
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
    const std::string own = own_words(), loaded = code_.new_register('d');
    code_.emit("st.global.u64 \t[{}+8], {};", own, address);
    code_.emit("ld.global.u64 \t{}, [{}+8];", loaded, own);
    code_.emit("st.global.u64 \t[{}+8], 0;", own);
    return loaded;
  }

  void call_access(const CellAccess& access, const std::string& address, const std::string& operand,
                   const std::string& swapped, const std::string& into) {
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", calls_++);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", address);
    code_.raw("\t.param .b32 param1;\n\tst.param.b32 \t[param1+0], {};\n", operand);
    code_.raw("\t.param .b32 param2;\n\tst.param.b32 \t[param2+0], {};\n", swapped);
    code_.raw(
        "\t.param .b32 retval0;\n\tcall.uni (retval0), \n\t{}, \n\t(\n\tparam0, \n\tparam1, "
        "\n\tparam2\n\t);\n",
        access_function_name(access));
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", into, calls_ - 1);
  }

  // The address of the child's cells: this block's, and further on as the site says.
  std::string cells(Role role, const Site& site) {
    std::string at = pointer(role);
    const auto advance = [&](const std::string& by, uint32_t bytes) {
      const std::string offset = code_.new_register('d'), next = code_.new_register('d');
      code_.emit("mul.wide.u32 \t{}, {}, {};", offset, by, bytes);
      code_.emit("add.s64 \t{}, {}, {};", next, at, offset);
      at = next;
    };
    if (site.block_cells != 0) advance(linear_index("ctaid", "nctaid"), 4 * site.block_cells);
    const Expression& e = site.cells_at;
    if (e.op != Op::Constant || e.value != 0) advance(in_register(expressions_.print(e)), 4 * kCellAlign);
    return at;
  }

  // ---- launches ----

  // Which of the site's rooms the launch gets: by thread, then by the counters of the loops around it.
  std::string room_number(const SiteRoom& room) {
    std::string at = linear();
    if (room.trips == 1) return at;
    for (const Statement* l : loops_) {
      const std::string next = code_.new_register('r');
      code_.emit("mad.lo.s32 \t{}, {}, {}, {};", next, at, std::max(l->limit, 1U), variables_.at(l->number));
      at = next;
    }
    return at;
  }

  struct Rooms {
    std::string own, room, depth;  // what the child is given
  };

  Rooms rooms(const Site& site, const Signature& child) {
    Rooms out;
    const SiteRoom& room = layout_.sites[site.id];
    const bool is_self = site.kernel == number_;
    out.room = std::to_string(is_self ? 0 : layout_.need(site.kernel, site.depth));
    out.depth = std::to_string(site.depth);
    if (is_self) {
      const std::string rest = code_.new_register('r'), part = code_.new_register('r'),
                        less = code_.new_register('r');
      code_.emit("sub.s32 \t{}, {}, {};", rest, number(Role::Room), layout_.fixed[number_]);
      code_.emit("div.u32 \t{}, {}, {};", part, rest, layout_.branches[number_]);
      code_.emit("add.s32 \t{}, {}, -1;", less, number(Role::Depth));
      out.room = part;
      out.depth = less;
    }
    if (child.find(Role::Own) == nullptr) return out;
    const std::string begin = code_.new_register('r'), bytes = code_.new_register('d');
    out.own = code_.new_register('d');
    const uint32_t offset = is_self ? layout_.fixed[number_] : room.offset;
    code_.emit("mad.lo.s32 \t{}, {}, {}, {};", begin, room_number(room), out.room, offset);
    code_.emit("mul.wide.u32 \t{}, {}, 4;", bytes, begin);
    code_.emit("add.s64 \t{}, {}, {};", out.own, pointer(Role::Own), bytes);
    return out;
  }

  // The address of the message word: the thread's own, or that of one of its block.
  std::string message(const Site& site) {
    const std::string own = pointer(Role::Own), bytes = code_.new_register('d'), at = code_.new_register('d');
    std::string owner = linear();
    if (site.neighbour != 0) {
      const std::string first = code_.new_register('r'), shifted = code_.new_register('r');
      const std::string in_block = code_.new_register('r'), index = code_.new_register('r');
      code_.emit("sub.s32 \t{}, {}, {};", first, owner, thread());
      code_.emit("add.s32 \t{}, {}, {};", shifted, thread(), site.neighbour);
      code_.emit("rem.u32 \t{}, {}, {};", in_block, shifted, threads_of_block());
      code_.emit("add.s32 \t{}, {}, {};", index, first, in_block);
      owner = index;
    }
    code_.emit("mul.wide.u32 \t{}, {}, {};", bytes, owner, 4 * kernel_.own_words);
    code_.emit("add.s64 \t{}, {}, {};", at, own, bytes);
    return at;
  }

  void launch(const Site& site) {
    const Kernel& child = program_.kernels[site.kernel];
    const Signature formal = signature(program_, site.kernel);
    const std::string end = code_.new_label();
    if (site.launchers != 0) skip_if("setp.ge.u32", linear(), site.launchers, end);
    if (site.kernel == number_) skip_if("setp.eq.s32", number(Role::Depth), 0, end);
    const std::array<std::string, 3> grid = {extent(site.grid[0]), extent(site.grid[1]),
                                             extent(site.grid[2])};
    const std::array<std::string, 3> block = block_of(site, child);
    const std::vector<std::string> stores = arguments(site, child, formal);
    const bool needs_shared = child.dynamic_shared && has_kind(child.body, Kind::Exchange);
    const std::string address = code_.new_register('d'), buffer = code_.new_register('d');
    code_.emit("mov.u64 \t{}, {};", address, kernel_name(site.kernel));
    get_buffer(address, grid, block, needs_shared ? 4 * product(child.block) : 0, buffer);
    const std::string p = code_.new_register('p');
    code_.emit("setp.eq.s64 \t{}, {}, 0;", p, buffer);
    code_.emit("@{} bra \t{};", p, end);
    code_.raw("\n");
    for (const std::string& store : stores) code_.emit("{}", fmt::format(fmt::runtime(store), buffer));
    launch_call(buffer, site.stream);
    code_.place(end);
  }

  std::array<std::string, 3> block_of(const Site& site, const Kernel& child) {
    if (!site.follows)
      return {extent(site.block_x), std::to_string(child.block[1]), std::to_string(child.block[2])};
    return {in_special("%ntid.x"), in_special("%ntid.y"), in_special("%ntid.z")};
  }

  std::string in_special(const std::string& name) {
    const std::string into = code_.new_register('r');
    code_.emit("mov.u32 \t{}, {};", into, name);
    return into;
  }

  void skip_if(const char* compare, const std::string& x, uint32_t limit, const std::string& label) {
    const std::string p = code_.new_register('p');
    code_.emit("{} \t{}, {}, {};", compare, p, x, limit);
    code_.emit("@{} bra \t{};", p, label);
  }

  void get_buffer(const std::string& address, const std::array<std::string, 3>& grid,
                  const std::array<std::string, 3>& block, uint32_t shared, const std::string& buffer) {
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", calls_);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", address);
    code_.raw("\t.param .align 4 .b8 param1[12];\n");
    for (size_t axis = 0; axis < 3; ++axis)
      code_.raw("\tst.param.b32 \t[param1+{}], {};\n", 4 * axis, grid.at(axis));
    code_.raw("\t.param .align 4 .b8 param2[12];\n");
    for (size_t axis = 0; axis < 3; ++axis)
      code_.raw("\tst.param.b32 \t[param2+{}], {};\n", 4 * axis, block.at(axis));
    code_.raw("\t.param .b32 param3;\n\tst.param.b32 \t[param3+0], {};\n\t.param .b64 retval0;\n", shared);
    code_.raw("\tcall.uni (retval0), \n\t__cudaCDP2GetParameterBufferV2, \n\t(\n");
    code_.raw("\tparam0, \n\tparam1, \n\tparam2, \n\tparam3\n\t);\n");
    code_.raw("\tld.param.b64 \t{}, [retval0+0];\n\t}} // callseq {}\n", buffer, calls_++);
  }

  void launch_call(const std::string& buffer, Stream stream) {
    const int handle = stream == Stream::Null ? 0 : stream == Stream::PerThread ? 2 : 4;
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", calls_);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", buffer);
    code_.raw("\t.param .b64 param1;\n\tst.param.b64 \t[param1+0], {};\n\t.param .b32 retval0;\n", handle);
    code_.raw("\tcall.uni (retval0), \n\t__cudaCDP2LaunchDeviceV2, \n\t(\n\tparam0, \n\tparam1\n\t);\n");
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", code_.new_register('r'), calls_++);
  }

  // Computes the arguments; the stores that put them into the buffer "{}" come later.
  std::vector<std::string> arguments(const Site& site, const Kernel& child, const Signature& formal) {
    const Rooms given = rooms(site, formal);
    std::vector<std::string> stores;
    for (const Slot& slot : formal.slots) {
      const uint32_t at = formal.formals[slot.parameter].offset + slot.inside;
      std::string type = "u64", what;
      switch (slot.role) {
        case Role::Input:
        case Role::Sums:
        case Role::Previous:
          what = pointer(slot.role);
          break;
        case Role::Cells:
        case Role::Alias:
          what = cells(slot.role, site);
          break;
        case Role::Own:
          what = given.own;
          break;
        case Role::Message:
          what = message(site);
          break;
        case Role::Room:
        case Role::Depth:
          type = "u32";
          what = slot.role == Role::Room ? given.room : given.depth;
          break;
        case Role::Values:
          std::tie(type, what) = converted(site.arguments[slot.value], child.values[slot.value]);
          break;
      }
      stores.push_back(
          fmt::format("st.{} \t[{{}}{}], {};", type, at == 0 ? "" : fmt::format("+{}", at), what));
    }
    return stores;
  }

  std::pair<std::string, std::string> converted(const Expression& e, Width width) {
    const std::string x = in_register(expressions_.print(e));
    switch (width) {
      case Width::U8:
      case Width::S8:
        return {"u8", x};
      case Width::U16:
      case Width::S16: {
        const std::string half = code_.new_register('s');
        code_.emit("cvt.u16.u32 \t{}, {};", half, x);
        return {"u16", half};
      }
      case Width::U32:
        return {"u32", x};
      case Width::U64: {
        const std::string wide = code_.new_register('d');
        code_.emit("mul.wide.u32 \t{}, {}, {};", wide, x, static_cast<int32_t>(kWideFactor));
        return {"u64", wide};
      }
      case Width::F32: {
        const std::string low = code_.new_register('r'), real = code_.new_register('f');
        code_.emit("and.b32  \t{}, {}, 65535;", low, x);
        code_.emit("cvt.rn.f32.u32 \t{}, {};", real, low);
        return {"f32", real};
      }
    }
    return {"u32", x};
  }

  const Program& program_;
  const Layout& layout_;
  uint32_t number_;
  const Kernel& kernel_;
  std::string name_;
  Signature signature_;
  Code code_;
  ExpressionPrinter expressions_;
  std::string inputs_;  // text that computes them
  std::map<std::string, std::string> inputs_by_key_;
  std::vector<std::string> variables_;
  std::vector<const Statement*> loops_;
  int calls_ = 0, comparisons_ = 0;
  bool has_shared_word_ = false, has_local_ = false;
  bool return_label_used_ = false;
};

std::string print_function(const Function& function, uint32_t number) {
  const std::string name = function_name(number);
  Code code(name, fmt::format("$L__BBF{}_", number));
  const std::string a = code.new_register('r'), b = code.new_register('r'), trips = code.new_register('r');
  ExpressionPrinter expressions(code, [&](const Expression& e) {
    return e.op == Op::Parameter ? (e.value == 0 ? a : b) : std::string("0");
  });
  code.emit("ld.param.u32 \t{}, [{}_param_0];", a, name);
  code.emit("ld.param.u32 \t{}, [{}_param_1];", b, name);
  const std::string head = code.new_label();
  code.emit("mov.u32 \t{}, {};", trips, function.trips);
  if (function.trips > 1) code.place(head);
  code.emit("mov.u32 \t{}, {};", a, expressions.print(function.step));
  if (function.trips > 1) {
    const std::string p = code.new_register('p');
    code.emit("add.s32 \t{}, {}, -1;", trips, trips);
    code.emit("setp.ne.s32 \t{}, {}, 0;", p, trips);
    code.emit("@{} bra \t{};", p, head);
  }
  code.emit("st.param.b32 \t[func_retval0+0], {};", a);
  return fmt::format(
      ".func  (.param .b32 func_retval0) {0}(\n\t.param .b32 {0}_param_0,\n\t.param .b32 {0}_param_1\n)\n"
      "{{\n{1}\n{2}\tret;\n\n}}\n",
      name, code.declarations(), code.text());
}

// The functions that some kernel calls.
std::set<uint32_t> called(const Program& program) {
  std::set<uint32_t> out;
  for (const Kernel& kernel : program.kernels) {
    for_each(kernel.body, [&](const Statement& s) {
      if (s.kind == Kind::Call) out.insert(s.limit);
    });
  }
  return out;
}

// The functions that make accesses to cells.
std::map<std::string, std::string> access_functions(const Program& program) {
  std::map<std::string, std::string> out;
  for (const Kernel& kernel : program.kernels) {
    for_each(kernel.body, [&](const Statement& s) {
      if (s.kind == Kind::Cell && s.cell.via == Via::Function)
        out[access_function_name(s.cell)] = access_function(s.cell);
    });
  }
  return out;
}

bool has_launches(const Program& program) {
  return std::ranges::any_of(program.kernels, [](const Kernel& k) { return has_kind(k.body, Kind::Launch); });
}

bool has_dynamic_memory(const Program& program) {
  return std::ranges::any_of(
      program.kernels, [](const Kernel& k) { return k.dynamic_shared && has_kind(k.body, Kind::Exchange); });
}

}  // namespace

std::string print_ptx(const Program& program) {
  const Layout layout = lay_out(program);
  std::string text =
      fmt::format("// random program {}\n.version 8.0\n.target sm_90\n.address_size 64\n\n", program.seed);
  if (has_launches(program)) text += kRuntime;
  if (has_dynamic_memory(program)) text += ".extern .shared .align 4 .b8 dynamic_memory[];\n";
  for (const uint32_t function : called(program))
    text += print_function(program.functions[function], function);
  for (const auto& [name, function] : access_functions(program)) text += function;
  // Children first: a kernel's address is taken after its definition, as in what nvcc writes.
  for (auto k = static_cast<uint32_t>(program.kernels.size()); k-- > 0;) {
    text += KernelPrinter(program, layout, k).print();
  }
  return text;
}

}  // namespace klap::differential::random
