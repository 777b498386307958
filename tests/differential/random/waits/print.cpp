#include "random/waits/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "random/waits/print_scope.h"
#include "random/waits/print_site.h"

namespace klap::differential::waits {

std::string kernel_name(uint32_t kernel) { return fmt::format("kernel{}", kernel); }

namespace {

constexpr std::string_view kRuntime =
    R"(.extern .func  (.param .b64 func_retval0) cudaGetParameterBufferV2
(
	.param .b64 cudaGetParameterBufferV2_param_0,
	.param .align 4 .b8 cudaGetParameterBufferV2_param_1[12],
	.param .align 4 .b8 cudaGetParameterBufferV2_param_2[12],
	.param .b32 cudaGetParameterBufferV2_param_3
)
;
.extern .func  (.param .b32 func_retval0) cudaLaunchDeviceV2
(
	.param .b64 cudaLaunchDeviceV2_param_0,
	.param .b64 cudaLaunchDeviceV2_param_1
)
;
.extern .func  (.param .b32 func_retval0) cudaDeviceSynchronize
()
;
.extern .func  (.param .b32 func_retval0) cudaGetLastError
()
;
)";
constexpr std::string_view kDynamic = "dynamic_slots";

// Facts that all functions of a kernel share.
struct Context {
  const Program& program;
  const Layout& layout;
  uint32_t number = 0;
  int calls = 0, functions = 0;
  std::string text;  // of the functions
};

std::string formals(const std::string& name, uint32_t values, const char* wide, const char* narrow) {
  std::string text;
  for (uint32_t i = 0; i < kParameters + values; ++i) {
    const bool is_wide = i < kParameters && kPlaces.at(i).bytes == 8;
    text += fmt::format("{}\t.param .{} {}_param_{}", i == 0 ? "" : ",\n", is_wide ? wide : narrow, name, i);
  }
  return text + "\n)\n";
}

bool launches(const Kernel& kernel) {
  bool found = false;
  random::for_each(kernel.body, [&](const Statement& s) { found = found || s.kind == Kind::Launch; });
  return found;
}

class BodyPrinter {
 public:
  BodyPrinter(Context& context, std::string name, const std::string& labels, const std::vector<Type>& types)
      : context_(context),
        kernel_(context.program.kernels[context.number]),
        scope_(kernel_, std::move(name), labels, types),
        code_(scope_.code) {}

  std::string print_kernel() {
    scope_.begin(false);
    begin_variables(kernel_.types.size(), 0);
    begin_memory();
    print(kernel_.body);
    code_.place(return_label());
    if (context_.program.polls) count_ended();
    return "{\n" + variables() + scope_.declarations() + "\n" + code_.text() + "\n\tret;\n\n}\n";
  }

  // Its first variable is its last parameter but for the number of the iteration around the call.
  std::string print_function(const Statement& s) {
    scope_.begin(true);
    const std::string argument = code_.new_register('r');
    code_.emit("ld.param.u32 \t{}, [{}];", argument, scope_.parameter_name(kParameters + kernel_.values + 1));
    scope_.assign(0, argument);
    begin_variables(s.types.size(), 1);
    print(s.body);
    code_.emit("st.param.b32 \t[func_retval0+0], {};", scope_.in_register(s.result));
    return fmt::format(".func  (.param .b32 func_retval0) {}(\n{}", scope_.name,
                       formals(scope_.name, kernel_.values + 2, "b64", "b32")) +
           "{\n" + scope_.declarations() + "\n" + code_.text() + "\tret;\n\n}\n";
  }

 private:
  void begin_variables(size_t count, uint32_t first) {
    for (uint32_t i = first; i < count; ++i) scope_.assign(i, "0");
  }

  void begin_memory() {
    if (kernel_.local_elements != 0) {
      local_ = code_.new_register('d');
      code_.emit("mov.u64 \t{}, {};", local_, local_name());
      if (kernel_.is_generic) {
        const std::string generic = code_.new_register('d');
        code_.emit("cvta.local.u64 \t{}, {};", generic, local_);
        local_ = generic;
      }
      for (uint32_t i = 0; i < kernel_.local_elements; ++i) store_local(constant(i), constant(0));
    }
    if (!kernel_.has_shared) return;
    code_.emit("st.shared.u{} \t[{}], {};", 8 * kernel_.slot_bytes, slot_address(0), scope_.in_register("0"));
    clear_total();
    code_.emit("bar.sync \t0;");
  }

  [[nodiscard]] std::string local_name() const { return fmt::format("{}_local", scope_.name); }
  [[nodiscard]] std::string slots_name() const {
    return kernel_.is_dynamic ? std::string(kDynamic) : scope_.name + "_slots";
  }
  [[nodiscard]] std::string return_label() const { return fmt::format("$L__BB{}_return", context_.number); }

  [[nodiscard]] std::string variables() const {
    std::string text;
    if (kernel_.local_elements != 0)
      text += fmt::format("\t.local .align 8 .b8 \t{}[{}];\n", local_name(),
                          kernel_.local_elements * kernel_.local_bytes);
    if (!kernel_.has_shared) return text;
    if (!kernel_.is_dynamic)
      text += fmt::format("\t.shared .align 4 .b8 {}[{}];\n", slots_name(),
                          kernel_.slot_bytes * kernel_.threads());
    return text + fmt::format("\t.shared .align 4 .b8 {}_total[4];\n", scope_.name);
  }

  void print(const std::vector<Statement>& list) {
    for (const Statement& s : list) print(s);
  }

  void print(const Statement& s) {
    switch (s.kind) {
      case Kind::Assign:
        return scope_.assign(s.number, scope_.print(s.values[0]));
      case Kind::StoreOwn:
        return code_.emit("st.global.u32 \t[{}+{}], {};", scope_.own_words, 4 * s.number,
                          scope_.in_register(s.values[0]));
      case Kind::AddOwn:
        return code_.emit("red.global.add.u32 \t[{}+{}], {};", scope_.own_words, 4 * s.number,
                          scope_.in_register(s.values[0]));
      case Kind::AddAbove:
        return add_above(s);
      case Kind::If:
        return branch(s);
      case Kind::Loop:
        return loop(s);
      case Kind::Return:
        return code_.emit("bra.uni \t{};", return_label());
      case Kind::Function:
        return call(s);
      case Kind::Launch:
        return print_launch(scope_, context_.program, context_.layout, context_.number, s.site,
                            context_.calls);
      case Kind::Fetch:
        return print_fetch(scope_, context_.program, context_.layout, context_.number, s);
      case Kind::Wait:
        if (context_.program.polls) return poll(s, launches(kernel_));
        return runtime_call(s);
      case Kind::LastError:
        return runtime_call(s);
      case Kind::Barrier:
        return barrier(s);
      default:
        return access(s);
    }
  }

  void access(const Statement& s) {
    switch (s.kind) {
      case Kind::StoreShared:
        return code_.emit("st.shared.u{} \t[{}], {};", 8 * kernel_.slot_bytes, slot_address(0),
                          scope_.in_register(s.values[0]));
      case Kind::LoadShared: {
        const std::string to = code_.new_register('r');
        code_.emit("ld.shared.u{} \t{}, [{}];", 8 * kernel_.slot_bytes, to, slot_address(s.limit));
        return scope_.assign(s.number, to);
      }
      case Kind::AddTotal:
        return code_.emit("red.shared.add.u32 \t[{}_total], {};", scope_.name,
                          scope_.in_register(s.values[0]));
      case Kind::ClearTotal:
        return clear_total();
      case Kind::LoadTotal: {
        const std::string to = code_.new_register('r');
        code_.emit("ld.shared.u32 \t{}, [{}_total];", to, scope_.name);
        return scope_.assign(s.number, to);
      }
      case Kind::StoreLocal:
        return store_local(s.values[0], s.values[1]);
      default:
        return load_local(s);
    }
  }

  void clear_total() {
    const std::string p = code_.new_register('p'), end = code_.new_label();
    code_.emit("setp.ne.s32 \t{}, {}, 0;", p, scope_.thread);
    code_.emit("@{} bra \t{};", p, end);
    code_.emit("st.shared.u32 \t[{}_total], {};", scope_.name, scope_.in_register("0"));
    code_.place(end);
  }

  // The slot of the thread so many behind.
  std::string slot_address(uint32_t behind) {
    std::string thread = scope_.thread;
    if (behind != 0) {
      const std::string sum = code_.new_register('r');
      thread = code_.new_register('r');
      code_.emit("add.s32 \t{}, {}, {};", sum, scope_.thread, behind);
      code_.emit("rem.u32 \t{}, {}, {};", thread, sum, kernel_.threads());
    }
    return element(slots_name(), thread, kernel_.slot_bytes);
  }

  std::string element(const std::string& base, const std::string& index, uint32_t bytes) {
    const std::string begin = code_.new_register('d'), offset = code_.new_register('d');
    std::string to = code_.new_register('d');
    code_.emit("mov.u64 \t{}, {};", begin, base);
    code_.emit("mul.wide.u32 \t{}, {}, {};", offset, index, bytes);
    code_.emit("add.s64 \t{}, {}, {};", to, begin, offset);
    return to;
  }

  std::string local_element(const Expression& index) {
    const std::string number = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", number, scope_.in_register(index), kernel_.local_elements);
    return element(local_, number, kernel_.local_bytes);
  }
  [[nodiscard]] const char* local_space() const { return kernel_.is_generic ? "" : ".local"; }

  void store_local(const Expression& index, const Expression& value) {
    std::string stored = scope_.in_register(value);
    if (kernel_.local_bytes == 8) {
      const std::string wide = code_.new_register('d');
      code_.emit("cvt.u64.u32 \t{}, {};", wide, stored);
      stored = wide;
    }
    code_.emit("st{}.u{} \t[{}], {};", local_space(), 8 * kernel_.local_bytes, local_element(index), stored);
  }

  void load_local(const Statement& s) {
    const bool is_wide = kernel_.local_bytes == 8;
    const std::string loaded = code_.new_register(is_wide ? 'd' : 'r');
    code_.emit("ld{}.u{} \t{}, [{}];", local_space(), 8 * kernel_.local_bytes, loaded,
               local_element(s.values[0]));
    if (!is_wide) return scope_.assign(s.number, loaded);
    const std::string narrow = code_.new_register('r');
    code_.emit("cvt.u32.u64 \t{}, {};", narrow, loaded);
    scope_.assign(s.number, narrow);
  }

  void add_above(const Statement& s) {
    const std::string value = scope_.in_register(s.values[1]), thread = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", thread, scope_.in_register(s.values[0]),
               scope_.parameter(kAboveCount));
    code_.emit("red.global.add.u32 \t[{}+{}], {};", scope_.word_address(scope_.above, thread, 0),
               4 * s.number, value);
  }

  void branch(const Statement& s) {
    const std::string p = scope_.predicate(s.values[0]), other = code_.new_label(), end = code_.new_label();
    code_.emit("@!{} bra \t{};", p, other);
    print(s.body);
    if (!s.other.empty()) code_.emit("bra.uni \t{};", end);
    code_.place(other);
    print(s.other);
    if (!s.other.empty()) code_.place(end);
  }

  void loop(const Statement& s) {
    const std::string bound = code_.new_register('r'), head = code_.new_label(), end = code_.new_label();
    code_.emit("rem.u32 \t{}, {}, {};", bound, scope_.in_register(s.values[0]), s.limit + 1);
    scope_.assign(s.number, "0");
    code_.place(head);
    const std::string p = code_.new_register('p'), counter = scope_.variable(s.number);
    code_.emit("setp.ge.u32 \t{}, {}, {};", p, counter, bound);
    code_.emit("@{} bra \t{};", p, end);
    scope_.loops.push_back(&s);
    print(s.body);
    scope_.loops.pop_back();
    code_.emit("add.s32 \t{}, {}, 1;", counter, counter);
    code_.emit("bra.uni \t{};", head);
    code_.place(end);
  }

  // What the thread has written is there for its parent, which may poll.
  void count_ended() {
    code_.emit("membar.gl;");
    code_.emit("red.global.add.u32 \t[{}+{}], {};", scope_.above, 4 * kEndedThreads, scope_.in_register("1"));
  }

  // Looks at the children of each thread of the block in turn.
  void poll(const Statement& s, bool has_children) {
    if (has_children) look_at_children();
    if (s.number != kNoVariable) scope_.assign(s.number, "0");
  }

  void look_at_children() {
    const std::string thread = code_.new_register('r'), head = code_.new_label(), again = code_.new_label(),
                      p = code_.new_register('p');
    code_.emit("mov.u32 \t{}, 0;", thread);
    code_.place(head);
    const std::string linear = scope_.multiply_add(scope_.block, std::to_string(kernel_.threads()), thread),
                      words = scope_.word_address(scope_.own, linear, 0), ended = code_.new_register('r'),
                      launched = code_.new_register('r');
    code_.place(again);
    if (context_.program.seed % 3 == 0) code_.emit("nanosleep.u32 \t{};", scope_.in_register("20"));
    if (context_.program.seed % 2 == 0)
      code_.emit("atom.global.add.u32 \t{}, [{}+{}], 0;", ended, words, 4 * kEndedThreads);
    else
      code_.emit("ld.volatile.global.u32 \t{}, [{}+{}];", ended, words, 4 * kEndedThreads);
    code_.emit("ld.volatile.global.u32 \t{}, [{}+{}];", launched, words, 4 * kLaunchedThreads);
    code_.emit("setp.ne.s32 \t{}, {}, {};", p, ended, launched);
    code_.emit("@{} bra \t{};", p, again);
    code_.emit("add.s32 \t{}, {}, 1;", thread, thread);
    const std::string has_next = code_.new_register('p');
    code_.emit("setp.lt.u32 \t{}, {}, {};", has_next, thread, kernel_.threads());
    code_.emit("@{} bra \t{};", has_next, head);
    code_.emit("membar.gl;");
  }

  // A function without arguments.
  void runtime_call(const Statement& s) {
    const std::string result = code_.new_register('r');
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b32 retval0;\n", context_.calls);
    code_.raw("\tcall.uni (retval0), \n\t{}, \n\t(\n\t);\n",
              s.kind == Kind::Wait ? "cudaDeviceSynchronize" : "cudaGetLastError");
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", result, context_.calls++);
    if (s.number != kNoVariable) scope_.assign(s.number, result);
  }

  void barrier(const Statement& s) {
    const auto form = static_cast<BarrierForm>(s.limit);
    if (form == BarrierForm::Plain) return code_.emit("bar.sync \t0;");
    if (form == BarrierForm::NotAligned) return code_.emit("barrier.sync \t0;");
    const std::string asks = scope_.predicate(s.values[0]), result = code_.new_register('r');
    if (form == BarrierForm::Count) {
      code_.emit("bar.red.popc.u32 \t{}, 0, {};", result, asks);
      return scope_.assign(s.number, result);
    }
    // In the form of nvcc's, whose results are predicates of a scope of their own.
    code_.raw("\t{{ \n\t.reg .pred \t%voted; \n\tbar.red.{}.pred \t%voted, 0, {}{}; \n",
              form == BarrierForm::Any ? "or" : "and", form == BarrierForm::NotAll ? "!" : "", asks);
    code_.raw("\tselp.u32 \t{}, 1, 0, %voted; \n\t}}\n", result);
    scope_.assign(s.number, result);
  }

  void call(const Statement& s) {
    const std::string name = fmt::format("function{}_{}", context_.number, ++context_.functions);
    const std::string labels = fmt::format("$L__BBF{}_{}_", context_.number, context_.functions);
    context_.text += BodyPrinter(context_, name, labels, s.types).print_function(s);
    std::vector<std::string> actual;
    for (uint32_t i = 0; i < kParameters + kernel_.values; ++i) actual.push_back(scope_.parameter(i));
    actual.push_back(slot_number(scope_, static_cast<uint32_t>(scope_.loops.size())));
    actual.push_back(scope_.in_register(s.values[0]));
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", context_.calls);
    std::string list;
    for (size_t i = 0; i < actual.size(); ++i) {
      const unsigned bits = i < kParameters ? 8 * kPlaces.at(i).bytes : 32;
      code_.raw("\t.param .b{0} param{1};\n\tst.param.b{0} \t[param{1}+0], {2};\n", bits, i, actual[i]);
      list += fmt::format("{}\tparam{}", i == 0 ? "" : ", \n", i);
    }
    const std::string result = code_.new_register('r');
    code_.raw("\t.param .b32 retval0;\n\tcall.uni (retval0), \n\t{}, \n\t(\n{}\n\t);\n", name, list);
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", result, context_.calls++);
    scope_.assign(s.number, result);
  }

  Context& context_;
  const Kernel& kernel_;
  PrintedScope scope_;
  random::Code& code_;
  std::string local_;  // the address of the local array
};

}  // namespace

std::string print_ptx(const Program& program) {
  const Layout layout = lay_out(program);
  std::string text =
      fmt::format("// random program {}\n.version 8.0\n.target sm_80\n.address_size 64\n\n", program.seed);
  text += kRuntime;
  if (std::ranges::any_of(program.kernels, &Kernel::is_dynamic))
    text += fmt::format(".extern .shared .align 4 .b8 {}[];\n", kDynamic);
  for (auto k = static_cast<uint32_t>(program.kernels.size()); k-- > 0;) {
    Context context{program, layout, k, 0, 0, ""};
    const Kernel& kernel = program.kernels[k];
    const std::string header = fmt::format(".visible .entry {}(\n", kernel_name(k)) +
                               formals(kernel_name(k), kernel.values, "u64", "u32");
    const std::string body =
        BodyPrinter(context, kernel_name(k), fmt::format("$L__BB{}_", k), kernel.types).print_kernel();
    if (!context.text.empty()) text += header + ";\n";
    text += context.text + fmt::format("\t// .globl\t{}\n", kernel_name(k)) + header + body;
  }
  return text;
}

}  // namespace klap::differential::waits
