#include "emulator/driver/context.h"

#include <cstdio>

#include "emulator/driver/process.h"

namespace driver = klap::emulator::driver;

namespace {

// Output of device code goes where the program's own printf goes.
void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

CUctx_st::CUctx_st(uint64_t number, int on_device, unsigned creation_flags, bool is_primary_context,
                   const driver::Settings& settings)
    : id(number),
      device(on_device),
      flags(creation_flags),
      is_primary(is_primary_context),
      findings_are_fatal(settings.findings_are_fatal) {
  klap::emulator::MachineOptions options = settings.machine;
  options.print = print;
  options.finding = [this](const std::string& finding) {
    ++driver::the_process().findings;
    driver::say(finding);
    found_ = true;
  };
  machine = std::make_unique<klap::emulator::Machine>(options);
}

void CUctx_st::tell(const std::string& why) {
  if (!told_) driver::say(why);
  told_ = true;
}

void CUctx_st::require_alive() {
  if (machine->error_code() != 0) {
    tell(machine->error_text());
    driver::fail(driver::driver_error(machine->error_code()));
  }
}

void CUctx_st::after_synchronising(int code) {
  if (code != 0) {
    tell(machine->error_text());
    driver::fail(driver::driver_error(code));
  }
  driver::require(!(found_ && findings_are_fatal), CUDA_ERROR_LAUNCH_FAILED);
}

namespace klap::emulator::driver {

CUresult driver_error(int code) {
  constexpr int kInvalidConfiguration = 9;
  return code == kInvalidConfiguration ? CUDA_ERROR_INVALID_VALUE : static_cast<CUresult>(code);
}

CUctx_st& current(Process& process) {
  const std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  require(process.contexts.knows(stack.back()), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return *stack.back();
}

CUctx_st& working(Process& process) {
  CUctx_st& context = current(process);
  context.require_alive();
  return context;
}

CUctx_st& context_or_current(Process& process, CUcontext context) {
  if (context == nullptr) return current(process);
  require(process.contexts.knows(context), CUDA_ERROR_INVALID_CONTEXT);
  return *context;
}

std::optional<Owned> owner_of(Process& process, uint64_t address) {
  std::optional<Owned> found;
  process.contexts.for_each([&](CUctx_st& context) {
    if (found) return;
    if (const Block* block = context.blocks.around(address)) {
      found = Owned{&context, *block};
    } else if (const Allocation* piece = context.machine->memory().find(address, 1);
               piece != nullptr && piece->owner == Owner::Module) {
      found = Owned{&context, {piece->address, piece->bytes, BlockKind::Device, 0, 0}};
    }
  });
  return found;
}

const Block* Blocks::at(uint64_t address) const {
  const auto found = blocks_.find(address);
  return found == blocks_.end() ? nullptr : &found->second;
}

const Block* Blocks::around(uint64_t address) const {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return nullptr;
  const Block& block = std::prev(found)->second;
  return address - block.address < block.bytes ? &block : nullptr;
}

}  // namespace klap::emulator::driver
