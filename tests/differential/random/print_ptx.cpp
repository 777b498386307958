#include "random/print_ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "random/print_cells.h"
#include "random/print_expression.h"
#include "random/print_kernel.h"

namespace klap::differential::random {

namespace {

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
    text += print_kernel(program, layout, k);
  }
  return text;
}

}  // namespace klap::differential::random
