// A context: one emulated machine, and the objects that the program made in it.
//
// Every context has a machine of its own, with its own memory and its own sticky error. So a context that
// failed leaves the others alone, as with the real driver.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "emulator/driver/api.h"
#include "emulator/driver/blocks.h"
#include "emulator/driver/settings.h"

struct CUctx_st {
  CUctx_st(uint64_t number, int on_device, unsigned creation_flags, bool is_primary_context,
           const klap::emulator::driver::Settings& settings);

  // Fails with the machine's sticky error or, if findings are fatal, with that of a finding.
  void require_alive();
  // The result of one of the machine's synchronising functions.
  void after_synchronising(int code);
  void synchronise() { after_synchronising(machine->synchronise_all()); }

  const uint64_t id;
  const int device;
  unsigned flags;
  const bool is_primary;
  const bool findings_are_fatal;
  std::unique_ptr<klap::emulator::Machine> machine;
  klap::emulator::driver::Blocks blocks;
  std::map<CUlimit, size_t> limits;  // limits that the machine does not keep
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  CUstream legacy_stream = nullptr;
  std::map<std::thread::id, CUstream> per_thread_streams;

 private:
  void tell(const std::string& why);

  bool found_ = false;  // a fatal finding was made
  bool told_ = false;
};

namespace klap::emulator::driver {

class Process;

// The driver API's name for an error number of the machine; the machine uses the runtime's numbers.
CUresult driver_error(int code);

// The calling thread's current context; fails if there is none.
CUctx_st& current(Process& process);
// The current context, which must not have failed.
CUctx_st& working(Process& process);
// `context`, or the current one for null.
CUctx_st& context_or_current(Process& process, CUcontext context);

struct Owned {  // the block that an address belongs to, and its context
  CUctx_st* context;
  Block block;
};
// The context and the allocation that hold the address: one of the program's, or a variable of a module.
std::optional<Owned> owner_of(Process& process, uint64_t address);

}  // namespace klap::emulator::driver
