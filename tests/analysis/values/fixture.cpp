#include "fixture.h"

#include <stdexcept>

namespace klap::test {
namespace {

const ptx::Function* pick(const ptx::Module& module, const std::string& name) {
  for (const ptx::Function& f : module.functions) {
    if (f.is_definition && (name.empty() || f.name == name)) return &f;
  }
  throw std::runtime_error("no definition of " + name);
}

}  // namespace

Kernel::Kernel(const std::string& ptx, const std::string& name)
    : module(ptx::parse(ptx, "test")),
      function(pick(module, name)),
      flow(module, *function),
      values(flow),
      symbolic(values.symbolic) {}

uint32_t Kernel::register_of(uint32_t index, const std::string& name) const {
  const uint32_t reg = values.registers.find(index, name);
  if (reg == analysis::VirtualRegisters::kNone) throw std::runtime_error("no register " + name);
  return reg;
}

uint32_t Kernel::index_of(const std::string& part) const {
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (module.compact(flow.instructions()[i].statement->tokens).find(part) != std::string::npos) return i;
  }
  throw std::runtime_error("no instruction holds " + part);
}

std::string module_with(const std::string& body, const std::string& directives) {
  return R"(.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter;
.const .align 4 .u32 table[16];
.visible .entry k(.param .u64 a, .param .u32 b, .param .u32 c, .param .align 8 .b8 s[24]))" +
         directives + R"(
{
.reg .pred %p<16>;
.reg .b16 %h<16>;
.reg .b32 %r<64>;
.reg .f32 %f<16>;
.reg .b64 %rd<32>;
)" + body +
         "\n}\n";
}

}  // namespace klap::test
