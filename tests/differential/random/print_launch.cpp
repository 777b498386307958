#include "random/print_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "random/print_ptx.h"

namespace klap::differential::random {

namespace {

class LaunchPrinter {
 public:
  explicit LaunchPrinter(KernelValues& values) : values_(values), code_(values.code) {}

  void print(const Site& site) {
    const Kernel& child = values_.program.kernels[site.kernel];
    const Signature formal = signature(values_.program, site.kernel);
    const std::string end = code_.new_label();
    if (site.launchers != 0) skip_if("setp.ge.u32", values_.linear(), site.launchers, end);
    if (site.kernel == values_.number_of_kernel) skip_if("setp.eq.s32", values_.number(Role::Depth), 0, end);
    const std::array<std::string, 3> grid = {values_.extent(site.grid[0]), values_.extent(site.grid[1]),
                                             values_.extent(site.grid[2])};
    const std::array<std::string, 3> block = block_of(site, child);
    // Compilers compute arguments behind the first call, with branches if they like. Programs about the order
    // of launches stay as they are, since faults of its analysis must be found by so many of them.
    const bool is_late = site.id % kLate == 1 && !has_kind(child.body, Kind::Cell);
    std::vector<std::string> stores;
    if (!is_late) stores = arguments(site, child, formal);
    const bool needs_shared = child.dynamic_shared && has_kind(child.body, Kind::Exchange);
    const std::string address = code_.new_register('d'), buffer = code_.new_register('d');
    code_.emit("mov.u64 \t{}, {};", address, kernel_name(site.kernel));
    get_buffer(address, grid, block, needs_shared ? 4 * product(child.block) : 0, buffer);
    const std::string p = code_.new_register('p');
    code_.emit("setp.eq.s64 \t{}, {}, 0;", p, buffer);
    code_.emit("@{} bra \t{};", p, end);
    code_.raw("\n");
    values_.use_branches(is_late);
    if (is_late) stores = arguments(site, child, formal);
    values_.use_branches(false);
    for (const std::string& store : stores) code_.emit("{}", fmt::format(fmt::runtime(store), buffer));
    launch_call(buffer, site.stream);
    code_.place(end);
  }

 private:
  static constexpr uint32_t kLate = 3;  // one of so many sites

  // The address of the child's cells: this block's, and further on as the site says.
  std::string cells(Role role, const Site& site) {
    std::string at = values_.pointer(role);
    const auto advance = [&](const std::string& by, uint32_t bytes) {
      const std::string offset = code_.new_register('d'), next = code_.new_register('d');
      code_.emit("mul.wide.u32 \t{}, {}, {};", offset, by, bytes);
      code_.emit("add.s64 \t{}, {}, {};", next, at, offset);
      at = next;
    };
    if (site.block_cells != 0) advance(values_.linear_index("ctaid", "nctaid"), 4 * site.block_cells);
    const Expression& e = site.cells_at;
    if (e.op != Op::Constant || e.value != 0) advance(values_.in_register(values_.print(e)), 4 * kCellAlign);
    return at;
  }

  // Which of the site's rooms the launch gets: by thread, then by the counters of the loops around it.
  std::string room_number(const SiteRoom& room) {
    std::string at = values_.linear();
    if (room.trips == 1) return at;
    for (const Statement* l : values_.loops) {
      const std::string next = code_.new_register('r');
      code_.emit("mad.lo.s32 \t{}, {}, {}, {};", next, at, std::max(l->limit, 1U),
                 values_.variables.at(l->number));
      at = next;
    }
    return at;
  }

  struct Rooms {
    std::string own, room, depth;  // what the child is given
  };

  Rooms rooms(const Site& site, const Signature& child) {
    Rooms out;
    const SiteRoom& room = values_.layout.sites[site.id];
    const bool is_self = site.kernel == values_.number_of_kernel;
    out.room = std::to_string(is_self ? 0 : values_.layout.need(site.kernel, site.depth));
    out.depth = std::to_string(site.depth);
    if (is_self) {
      const std::string rest = code_.new_register('r'), part = code_.new_register('r'),
                        less = code_.new_register('r');
      code_.emit("sub.s32 \t{}, {}, {};", rest, values_.number(Role::Room),
                 values_.layout.fixed[values_.number_of_kernel]);
      code_.emit("div.u32 \t{}, {}, {};", part, rest, values_.layout.branches[values_.number_of_kernel]);
      code_.emit("add.s32 \t{}, {}, -1;", less, values_.number(Role::Depth));
      out.room = part;
      out.depth = less;
    }
    if (child.find(Role::Own) == nullptr) return out;
    const std::string begin = code_.new_register('r'), bytes = code_.new_register('d');
    out.own = code_.new_register('d');
    const uint32_t offset = is_self ? values_.layout.fixed[values_.number_of_kernel] : room.offset;
    code_.emit("mad.lo.s32 \t{}, {}, {}, {};", begin, room_number(room), out.room, offset);
    code_.emit("mul.wide.u32 \t{}, {}, 4;", bytes, begin);
    code_.emit("add.s64 \t{}, {}, {};", out.own, values_.pointer(Role::Own), bytes);
    return out;
  }

  // The address of the message word: the thread's own, or that of one of its block.
  std::string message(const Site& site) {
    const std::string own = values_.pointer(Role::Own), bytes = code_.new_register('d'),
                      at = code_.new_register('d');
    std::string owner = values_.linear();
    if (site.neighbour != 0) {
      const std::string first = code_.new_register('r'), shifted = code_.new_register('r');
      const std::string in_block = code_.new_register('r'), index = code_.new_register('r');
      code_.emit("sub.s32 \t{}, {}, {};", first, owner, values_.thread());
      code_.emit("add.s32 \t{}, {}, {};", shifted, values_.thread(), site.neighbour);
      code_.emit("rem.u32 \t{}, {}, {};", in_block, shifted, values_.threads_of_block());
      code_.emit("add.s32 \t{}, {}, {};", index, first, in_block);
      owner = index;
    }
    code_.emit("mul.wide.u32 \t{}, {}, {};", bytes, owner, 4 * values_.kernel.own_words);
    code_.emit("add.s64 \t{}, {}, {};", at, own, bytes);
    return at;
  }

  std::array<std::string, 3> block_of(const Site& site, const Kernel& child) {
    if (!site.follows)
      return {values_.extent(site.block_x), std::to_string(child.block[1]), std::to_string(child.block[2])};
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
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", values_.calls);
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
    code_.raw("\tld.param.b64 \t{}, [retval0+0];\n\t}} // callseq {}\n", buffer, values_.calls++);
  }

  void launch_call(const std::string& buffer, Stream stream) {
    const int handle = stream == Stream::Null ? 0 : stream == Stream::PerThread ? 2 : 4;
    code_.raw("\t{{ // callseq {}, 0\n\t.reg .b32 temp_param_reg;\n", values_.calls);
    code_.raw("\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], {};\n", buffer);
    code_.raw("\t.param .b64 param1;\n\tst.param.b64 \t[param1+0], {};\n\t.param .b32 retval0;\n", handle);
    code_.raw("\tcall.uni (retval0), \n\t__cudaCDP2LaunchDeviceV2, \n\t(\n\tparam0, \n\tparam1\n\t);\n");
    code_.raw("\tld.param.b32 \t{}, [retval0+0];\n\t}} // callseq {}\n", code_.new_register('r'),
              values_.calls++);
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
          what = values_.pointer(slot.role);
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
    const std::string x = values_.in_register(values_.print(e));
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

  KernelValues& values_;
  Code& code_;
};

}  // namespace

void print_launch(KernelValues& values, const Site& site) { LaunchPrinter(values).print(site); }

}  // namespace klap::differential::random
