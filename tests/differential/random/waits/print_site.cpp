#include "random/waits/print_site.h"

#include <algorithm>

namespace klap::differential::waits {

namespace {

class SitePrinter {
 public:
  SitePrinter(PrintedScope& scope, const Program& program, const Layout& layout, uint32_t kernel,
              const Site& site)
      : scope_(scope),
        code_(scope.code),
        polls_(program.polls),
        layout_(layout),
        kernel_(kernel),
        site_(site),
        child_(program.kernels[site.kernel]) {}

  void launch(int& calls) {
    const std::string end = code_.new_label();
    if (is_self()) {
      const std::string p = code_.new_register('p');
      code_.emit("setp.eq.s32 \t{}, {}, 0;", p, scope_.parameter(kDepth));
      code_.emit("@{} bra \t{};", p, end);
    }
    const std::string blocks = extent();
    const std::vector<std::string> stores = arguments();
    const std::string address = code_.new_register('d'), buffer = code_.new_register('d');
    code_.emit("mov.u64 \t{}, {};", address, kernel_name(site_.kernel));
    get_buffer(address, blocks, buffer, calls++);
    const std::string p = code_.new_register('p');
    code_.emit("setp.eq.s64 \t{}, {}, 0;", p, buffer);
    code_.emit("@{} bra \t{};", p, end);
    code_.raw("\n");
    for (const std::string& store : stores) code_.emit("{}", fmt::format(fmt::runtime(store), buffer));
    if (polls_) count_launched(blocks);
    launch_call(buffer, calls++);
    code_.place(end);
  }

  void fetch(const Statement& s) {
    const Room room = find_room();
    const std::string thread = code_.new_register('r'), to = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", thread, scope_.in_register(s.values[0]),
               child_.threads() * child_.blocks());
    const std::string address =
        scope_.word_address(scope_.words_behind(scope_.own, room.begin), thread, s.limit);
    std::string guard;
    if (is_self()) {
      const std::string p = code_.new_register('p');
      code_.emit("setp.ne.s32 \t{}, {}, 0;", p, scope_.parameter(kDepth));
      code_.emit("mov.u32 \t{}, 0;", to);
      guard = "@" + p + " ";
    }
    code_.emit("{}ld.global.u32 \t{}, [{}];", guard, to, address);
    scope_.assign(s.number, to);
  }

 private:
  [[nodiscard]] bool is_self() const { return site_.kernel == kernel_; }

  std::string extent() {
    if (site_.grid_spread <= 1) return std::to_string(site_.grid_low);
    const std::string rest = code_.new_register('r');
    std::string sum = code_.new_register('r');
    code_.emit("rem.u32 \t{}, {}, {};", rest, scope_.in_register(site_.grid_of), site_.grid_spread);
    code_.emit("add.s32 \t{}, {}, {};", sum, rest, site_.grid_low);
    return sum;
  }

  // The child's words, from the grid's own on, and how many they and their children's are.
  struct Room {
    std::string begin, words;
  };
  Room find_room() {
    const SiteRoom& room = layout_.sites[site_.id];
    const std::string number =
        scope_.multiply_add(site_.of_block ? scope_.block : scope_.linear, std::to_string(room.trips),
                            slot_number(scope_, room.loops));
    if (!is_self()) {
      const std::string need = std::to_string(layout_.need(site_.kernel, site_.depth));
      return {scope_.multiply_add(number, need, std::to_string(room.offset)), need};
    }
    const std::string rest = code_.new_register('r'), part = code_.new_register('r'),
                      behind = code_.new_register('r');
    code_.emit("sub.s32 \t{}, {}, {};", rest, scope_.parameter(kRoom), layout_.fixed[kernel_]);
    code_.emit("div.u32 \t{}, {}, {};", part, rest, layout_.branches[kernel_]);
    code_.emit("add.s32 \t{}, {}, {};", behind, number, room.offset);
    return {scope_.multiply_add(behind, part, std::to_string(layout_.fixed[kernel_])), part};
  }

  // The first thread of the block whose words the child may use.
  std::string first_thread() {
    if (!site_.of_block) return scope_.linear;
    return scope_.multiply_add(scope_.block, std::to_string(scope_.kernel.threads()), "0");
  }

  // Before the launch, since the child may end at once.
  void count_launched(const std::string& blocks) {
    const uint32_t rest = child_.grid[1] * child_.grid[2] * child_.threads();
    const std::string threads = scope_.multiply_add(scope_.in_register(blocks), std::to_string(rest), "0");
    code_.emit("red.global.add.u32 \t[{}+{}], {};", scope_.word_address(scope_.own, first_thread(), 0),
               4 * kLaunchedThreads, threads);
  }

  // The stores of the arguments into the buffer "{}".
  std::vector<std::string> arguments() {
    const Room room = find_room();
    std::string depth = std::to_string(site_.depth);
    if (is_self()) {
      depth = code_.new_register('r');
      code_.emit("add.s32 \t{}, {}, -1;", depth, scope_.parameter(kDepth));
    }
    const std::string own = scope_.words_behind(scope_.parameter(kOwn), room.begin),
                      above = scope_.word_address(scope_.parameter(kOwn), first_thread(), 0);
    const std::array<std::string, kParameters> actual = {
        scope_.parameter(kInput),
        own,
        above,
        std::to_string(site_.of_block ? scope_.kernel.threads() : 1),
        depth,
        room.words};
    std::vector<std::string> stores;
    for (uint32_t i = 0; i < kParameters; ++i) {
      const std::string value = kPlaces.at(i).bytes == 8 ? actual.at(i) : scope_.in_register(actual.at(i));
      stores.push_back(
          fmt::format("st.u{} \t[{{}}+{}], {};", 8 * kPlaces.at(i).bytes, kPlaces.at(i).offset, value));
    }
    for (size_t i = 0; i < site_.arguments.size(); ++i)
      stores.push_back(fmt::format("st.u32 \t[{{}}+{}], {};", kFirstValue + 4 * i,
                                   scope_.in_register(site_.arguments[i])));
    return stores;
  }

  void get_buffer(const std::string& address, const std::string& blocks, const std::string& buffer,
                  int call) {
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", call);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", address);
    code_.raw("\t.param .align 4 .b8 param1[12];\n\tst.param.b32 \t[param1+0], {};\n", blocks);
    for (size_t axis = 1; axis < 3; ++axis)
      code_.raw("\tst.param.b32 \t[param1+{}], {};\n", 4 * axis, child_.grid.at(axis));
    code_.raw("\t.param .align 4 .b8 param2[12];\n");
    for (size_t axis = 0; axis < 3; ++axis)
      code_.raw("\tst.param.b32 \t[param2+{}], {};\n", 4 * axis, child_.block.at(axis));
    code_.raw("\t.param .b32 param3;\n\tst.param.b32 \t[param3+0], {};\n\t.param .b64 retval0;\n",
              child_.shared_bytes());
    code_.raw("\tcall.uni (retval0), \n\tcudaGetParameterBufferV2, \n\t(\n");
    code_.raw("\tparam0, \n\tparam1, \n\tparam2, \n\tparam3\n\t);\n");
    code_.raw("\tld.param.b64 \t{}, [retval0+0];\n\t}} // callseq {}\n", buffer, call);
  }

  void launch_call(const std::string& buffer, int call) {
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", call);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", buffer);
    code_.raw("\t.param .b64 param1;\n\tst.param.b64 \t[param1+0], 0;\n\t.param .b32 retval0;\n");
    code_.raw("\tcall.uni (retval0), \n\tcudaLaunchDeviceV2, \n\t(\n\tparam0, \n\tparam1\n\t);\n");
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", code_.new_register('r'), call);
  }

  PrintedScope& scope_;
  random::Code& code_;
  const bool polls_;
  const Layout& layout_;
  const uint32_t kernel_;
  const Site& site_;
  const Kernel& child_;
};

const Site* find_site(const Kernel& kernel, uint32_t id) {
  const Site* found = nullptr;
  random::for_each(kernel.body, [&](const Statement& s) {
    if (s.kind == Kind::Launch && s.site.id == id) found = &s.site;
  });
  return found;
}

}  // namespace

std::string slot_number(PrintedScope& scope, uint32_t loops) {
  std::string number = scope.slot;
  for (uint32_t i = 0; i < loops && i < scope.loops.size(); ++i)
    number = scope.multiply_add(number, std::to_string(std::max(scope.loops[i]->limit, 1U)),
                                scope.variable(scope.loops[i]->number));
  return scope.in_register(number);
}

void print_launch(PrintedScope& scope, const Program& program, const Layout& layout, uint32_t kernel,
                  const Site& site, int& calls) {
  SitePrinter(scope, program, layout, kernel, site).launch(calls);
}

void print_fetch(PrintedScope& scope, const Program& program, const Layout& layout, uint32_t kernel,
                 const Statement& fetch) {
  const Site* const site = find_site(program.kernels[kernel], fetch.site.id);
  if (site != nullptr) SitePrinter(scope, program, layout, kernel, *site).fetch(fetch);
}

}  // namespace klap::differential::waits
