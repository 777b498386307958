#include "random/print_kernel.h"

#include <fmt/format.h>

#include <bit>

#include "random/kernel_values.h"
#include "random/print_cell_statement.h"
#include "random/print_launch.h"
#include "random/print_ptx.h"
#include "random/print_turns.h"

namespace klap::differential::random {

std::string function_name(uint32_t function) { return fmt::format("function{}", function); }

namespace {

class KernelPrinter {
 public:
  explicit KernelPrinter(KernelValues& values) : values_(values), code_(values.code) {}

  std::string print() {
    prologue();
    print(values_.kernel.body);
    std::string text = header();
    text += "{\n" + shared_declaration() + local_declaration() + code_.declarations() + "\n" +
            values_.inputs() + "\n" + code_.text() + "\n";
    if (return_label_used_) text += return_label() + ":\n";
    return text + "\tret;\n\n}\n";
  }

 private:
  std::string header() const {
    std::string text = fmt::format("\t// .globl\t{}\n.visible .entry {}(\n", values_.name, values_.name);
    for (size_t i = 0; i < values_.signature.formals.size(); ++i) {
      const Formal& f = values_.signature.formals[i];
      const std::string what = values_.parameter_name(static_cast<uint32_t>(i));
      text += f.is_structure ? fmt::format("\t.param .align {} .b8 {}[{}]", f.align, what, f.bytes)
                             : fmt::format("\t.param .{} {}", scalar_type(static_cast<uint32_t>(i)), what);
      text += i + 1 < values_.signature.formals.size() ? ",\n" : "\n";
    }
    return text + ")\n";
  }

  std::string scalar_type(uint32_t parameter) const {
    for (const Slot& slot : values_.signature.slots) {
      if (slot.parameter != parameter) continue;
      if (slot.role == Role::Values) {
        const std::string_view type = type_of(values_.kernel.values[slot.value]);
        return type == "s8" ? "u8" : type == "s16" ? "u16" : std::string(type);  // as nvcc declares them
      }
      return slot.role == Role::Room || slot.role == Role::Depth ? "u32" : "u64";
    }
    return "u32";
  }

  // What Exchange needs is declared here or, if dynamic, once for the module.
  std::string shared_declaration() const {
    std::string text;
    if (has_shared_word_) text = fmt::format("\t.shared .align 4 .b8 {}_turn[4];\n", values_.name);
    if (!has_kind(values_.kernel.body, Kind::Exchange) || values_.kernel.dynamic_shared) return text;
    return text +
           fmt::format("\t.shared .align 4 .b8 {}[{}];\n", shared_name(), 4 * product(values_.kernel.block));
  }
  [[nodiscard]] std::string local_declaration() const {
    bool is_used = false;
    for_each(values_.kernel.body, [&](const Statement& s) {
      if (s.kind == Kind::Cell && uses_local_array(s)) is_used = true;
    });
    return is_used ? local_array_declaration(values_) : "";
  }
  [[nodiscard]] std::string shared_name() const {
    return values_.kernel.dynamic_shared ? "dynamic_memory" : values_.name + "_shared";
  }

  void prologue() {
    for (const std::string& variable : values_.variables) code_.emit("mov.u32 \t{}, 0;", variable);
    if (has_kind(values_.kernel.body, Kind::Exchange)) {
      code_.emit("st.shared.u32 \t[{}], 0;", shared_address(values_.thread()));
      code_.emit("bar.sync \t0;");
    }
    if (values_.kernel.message) {
      store_own(0, *values_.kernel.message);
      if (values_.kernel.barrier_after_message) code_.emit("bar.sync \t0;");
    }
  }

  void print(const std::vector<Statement>& body) {
    for (const Statement& s : body) print(s);
  }

  void print(const Statement& s) {
    switch (s.kind) {
      case Kind::Assign:
        return code_.emit("mov.u32 \t{}, {};", values_.variables.at(s.number), values_.print(s.values[0]));
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
        return print_launch(values_, s.site);
      case Kind::Cell:
        return print_cell(values_, s);
      case Kind::Fetch:
        return fetch(s);
      case Kind::Barrier:
        return print_barrier(code_, s.limit);
      case Kind::Turns:
        return turns(s);
    }
  }

  [[nodiscard]] std::string return_label() const {
    return fmt::format("$L__BB{}_return", values_.number_of_kernel);
  }

  void store_own(uint32_t word, const Expression& e) {
    const std::string stored = values_.print(e);
    code_.emit("st.global.u32 \t[{}+{}], {};", values_.own_words(), 4 * word, stored);
  }

  void update(const Statement& s) {
    const bool wide = static_cast<Sum>(s.number) == Sum::AddWide;
    const std::string base = values_.global(Role::Sums), from = code_.new_register('d');
    code_.emit("add.s64 \t{}, {}, {};", from, base, 4 * s.number * kSumWords);
    const std::string at = values_.element(from, s.values[0], kSumWords, wide ? 8 : 4);
    const std::string by = values_.in_register(values_.print(s.values[1]));
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
    const std::string x = values_.in_register(values_.print(e)), p = code_.new_register('p');
    code_.emit("setp.eq.s32 \t{}, {}, 0;", p, x);
    code_.emit("@{} bra \t{};", p, label);
  }

  // A comparison decides over the branch itself, in one of the forms that compilers give it.
  void skip_unless_holds(const Expression& e, const std::string& label) {
    const std::string a = values_.in_register(values_.print(e.operands[0])), b = values_.print(e.operands[1]),
                      p = code_.new_register('p');
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
    const std::string a = values_.in_register(values_.print(less.operands[0]));
    const std::string b = values_.print(less.operands[1]), p = code_.new_register('p');
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
    const std::string& counter = values_.variables.at(s.number);
    const std::string x = values_.in_register(values_.print(s.values[0]));
    const std::string trips = code_.new_register('r'), none = code_.new_register('p'),
                      more = code_.new_register('p');
    code_.emit("rem.u32 \t{}, {}, {};", trips, x, s.limit + 1);
    code_.emit("mov.u32 \t{}, 0;", counter);
    code_.emit("setp.eq.s32 \t{}, {}, 0;", none, trips);
    code_.emit("@{} bra \t{};", none, end);
    code_.place(head);
    values_.loops.push_back(&s);
    print(s.body);
    values_.loops.pop_back();
    code_.emit("add.s32 \t{}, {}, 1;", counter, counter);
    code_.emit("setp.lt.u32 \t{}, {}, {};", more, counter, trips);
    code_.emit("@{} bra \t{};", more, head);
    code_.place(end);
  }

  void call(const Statement& s) {
    const std::string a = values_.print(s.values[0]), b = values_.print(s.values[1]);
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", values_.calls++);
    code_.raw("\t.param .b32 param0;\n\tst.param.b32 \t[param0+0], {};\n", a);
    code_.raw("\t.param .b32 param1;\n\tst.param.b32 \t[param1+0], {};\n", b);
    code_.raw("\t.param .b32 retval0;\n\tcall.uni (retval0), \n\t{}, \n\t(\n\tparam0, \n\tparam1\n\t);\n",
              function_name(s.limit));
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", values_.variables.at(s.number),
              values_.calls - 1);
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
    const std::string given = values_.in_register(values_.print(s.values[0]));
    const std::string index = values_.in_register(values_.print(s.values[1])), from = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", from, index, values_.threads_of_block());
    code_.emit("st.shared.u32 \t[{}], {};", shared_address(values_.thread()), given);
    code_.emit("bar.sync \t0;");
    code_.emit("ld.shared.u32 \t{}, [{}];", values_.variables.at(s.number), shared_address(from));
    code_.emit("bar.sync \t0;");
  }

  void shuffle(const Statement& s) {
    const std::string given = values_.in_register(values_.print(s.values[0])), p = code_.new_register('p');
    code_.emit("shfl.sync.bfly.b32 \t{}|{}, {}, {}, 31, -1;", values_.variables.at(s.number), p, given,
               s.limit);
  }

  void turns(const Statement& s) {
    TurnsPlace place{values_.thread(), values_.threads_of_block(), "", [&] { print(s.body); }};
    if (is_by_global_word(s.turns.relation)) {
      place.word = flag();
    } else if (is_by_word(s.turns.relation)) {
      has_shared_word_ = true;
      place.word = code_.new_register('r');
      code_.emit("mov.u32 \t{}, {}_turn;", place.word, values_.name);
    }
    print_turns(code_, s.turns, place);
  }

  // The block's word behind what threads own.
  std::string flag() {
    const std::string block = values_.linear_index("ctaid", "nctaid"), base = values_.global(Role::Own);
    const std::string bytes = code_.new_register('d'), first = code_.new_register('d'),
                      at = code_.new_register('d');
    code_.emit("mul.wide.u32 \t{}, {}, 4;", bytes, block);
    code_.emit("add.s64 \t{}, {}, {};", first, base, 4 * values_.layout.flags[values_.number_of_kernel]);
    code_.emit("add.s64 \t{}, {}, {};", at, first, bytes);
    return at;
  }

  void fetch(const Statement& s) {
    constexpr const char* kNames[] = {"or.b32", "add.u32", "max.u32", "xor.b32"};
    const uint32_t name = s.values.empty() ? 0 : s.values[0].value % 4;
    code_.emit("atom.global.{} \t{}, [{}+{}], 0;", kNames[name], values_.variables.at(s.number),
               values_.own_words(), 4 * s.limit);
  }

  KernelValues& values_;
  Code& code_;
  int comparisons_ = 0;
  bool has_shared_word_ = false, return_label_used_ = false;
};

}  // namespace

std::string print_kernel(const Program& program, const Layout& layout, uint32_t number) {
  KernelValues values(program, layout, number);
  return KernelPrinter(values).print();
}

}  // namespace klap::differential::random
