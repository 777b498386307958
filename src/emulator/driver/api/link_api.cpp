// The driver's linker, from PTX to an image that holds PTX.
//
// The inputs are linked when they are complete, so that undefined and doubly defined names are found then and
// not at the load. But the image keeps the units: the load links them again, into memory. The device runtime
// is left out, in whichever form the program adds it, since the machine has one built in.
#include <fmt/format.h>

#include <utility>

#include "emulator/decode/decode.h"
#include "emulator/driver/context.h"
#include "emulator/driver/images/images.h"
#include "emulator/driver/images/jit_options.h"
#include "emulator/driver/images/link_state.h"
#include "emulator/driver/process.h"
#include "ptx/tree.h"
#include "support/error.h"
#include "support/file.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

CUlinkState_st& known(Process& process, CUlinkState state) {
  require(process.links.knows(state), CUDA_ERROR_INVALID_HANDLE);
  return *state;
}

// Runs a step of the link. Errors are also written to the error log.
template <typename Step>
void attempt(const CUlinkState_st& state, Step step) {
  try {
    step();
  } catch (const klap::Error& error) {
    state.options.write_error(error.what());
    throw;
  } catch (const Failure& failure) {
    if (failure.code == CUDA_ERROR_NO_BINARY_FOR_GPU) {
      state.options.write_error("the input holds no PTX for the device; machine code cannot be emulated");
    } else if (failure.code == CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC) {
      state.options.write_error("Unsupported Function 'cudaDeviceSynchronize'");
    }
    throw;
  }
}

Units units_in(CUjitInputType type, std::string_view bytes, const std::string& name, uint32_t sm) {
  switch (type) {
    case CU_JIT_INPUT_PTX: {
      const std::string_view text = bytes.substr(0, bytes.find('\0'));
      return {ptx_unit(name, std::string(text), sm)};
    }
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
      return read_file_image(bytes, name, sm);
    default:
      throw klap::Error(klap::ErrorCode::Unsupported,
                        fmt::format("link inputs of type {} cannot be emulated", static_cast<int>(type)))
          .at(name);
  }
}

void add(Process& process, CUlinkState_st& state, CUjitInputType type, std::string_view bytes,
         const std::string& name) {
  attempt(state, [&] {
    Units units = units_in(type, bytes, name, capability(process));
    refuse_waits(process, units);
    for (Machine::UnitText& unit : units) {
      klap::ptx::parse(unit.ptx, unit.name);  // the driver, too, complains of syntax here
      state.units.push_back(std::move(unit));
    }
  });
}

std::string linked(const Units& units, const Settings& settings) {
  std::vector<klap::ptx::Module> modules;
  modules.reserve(units.size());
  std::vector<const klap::ptx::Module*> all;
  for (const Machine::UnitText& unit : units) {
    all.push_back(&modules.emplace_back(klap::ptx::parse(unit.ptx, unit.name)));
  }
  const DeviceShape& device = settings.machine.executor.device;
  Memory scratch(device.memory_bytes);
  return make_linked_image(units, *link_image(all, scratch), device.compute_capability);
}

}  // namespace

KLAP_DRIVER_API cuLinkCreate_v2(unsigned count, CUjit_option* names, void** values, CUlinkState* state) {
  return call("cuLinkCreate", [&](Process& process) {
    require(state != nullptr);
    current(process);
    const JitOptions options(count, names, values);
    *state = process.links.make();
    (*state)->options = options;
  });
}

KLAP_DRIVER_API cuLinkCreate(unsigned count, CUjit_option* names, void** values, CUlinkState* state) {
  return cuLinkCreate_v2(count, names, values, state);
}

KLAP_DRIVER_API cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                                 const char* name, unsigned, CUjit_option*, void**) {
  return call("cuLinkAddData", [&](Process& process) {
    CUlinkState_st& link = known(process, state);
    require(data != nullptr && bytes != 0 && link.image.empty());
    add(process, link, type, {static_cast<const char*>(data), bytes}, name != nullptr ? name : "input");
  });
}

KLAP_DRIVER_API cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                              const char* name, unsigned count, CUjit_option* names, void** values) {
  return cuLinkAddData_v2(state, type, data, bytes, name, count, names, values);
}

KLAP_DRIVER_API cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned,
                                 CUjit_option*, void**) {
  return call("cuLinkAddFile", [&](Process& process) {
    CUlinkState_st& link = known(process, state);
    require(path != nullptr && link.image.empty());
    add(process, link, type, klap::read_file(path), path);
  });
}

KLAP_DRIVER_API cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                              CUjit_option* names, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, names, values);
}

KLAP_DRIVER_API cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return call("cuLinkComplete", [&](Process& process) {
    CUlinkState_st& link = known(process, state);
    require(image != nullptr);
    require(link.image.empty(), CUDA_ERROR_INVALID_HANDLE);  // driver 580 completes a link once
    attempt(link, [&] { link.image = linked(link.units, process.settings); });
    *image = link.image.data();
    if (bytes != nullptr) *bytes = link.image.size();
  });
}

KLAP_DRIVER_API cuLinkDestroy(CUlinkState state) {
  return call("cuLinkDestroy", [&](Process& process) {
    known(process, state);
    process.links.destroy(state);
  });
}
