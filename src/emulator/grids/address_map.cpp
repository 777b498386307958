// The implementation of address_map.h. A window that is found once serves until the warp's turn ends. Only
// calls of the machine free memory meanwhile, and the interpreter calls enter() again after them.
#include "emulator/grids/address_map.h"

#include <charconv>

#include "emulator/grids/fault.h"

namespace klap::emulator::execution {
namespace {

bool holds(const Window& window, uint64_t address, uint32_t bytes) {
  return bytes <= window.bytes && address - window.begin <= window.bytes - bytes;
}

[[noreturn]] void out_of_window(uint32_t lane, const char* what, uint64_t offset, uint32_t bytes,
                                uint64_t size) {
  throw Fault(kIllegalAddress, lane,
              "illegal address: " + std::to_string(bytes) + " bytes at offset " + hexadecimal(offset) +
                  " of " + what + " of " + std::to_string(size) + " bytes");
}

// Generic addresses name their space by the window they lie in.
Space space_of(uint64_t generic) {
  switch ((generic - kSharedWindow) / kWindowBytes) {
    case 0:
      return Space::Shared;
    case (kLocalWindow - kSharedWindow) / kWindowBytes:
      return Space::Local;
    case (kParamWindow - kSharedWindow) / kWindowBytes:
      return Space::Param;
    default:
      return Space::Global;
  }
}

}  // namespace

uint64_t window_begin(Space space) {
  switch (space) {
    case Space::Shared:
      return kSharedWindow;
    case Space::Local:
      return kLocalWindow;
    case Space::Param:
      return kParamWindow;
    default:
      return 0;
  }
}

std::string hexadecimal(uint64_t value) {
  std::array<char, 16> digits{};
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

Window AddressMap::find(const Fragment& fragment, uint32_t lane, Space space, uint64_t address,
                        uint32_t bytes, bool for_writing) {
  if ((address & (bytes - 1)) != 0)
    throw Fault(kMisalignedAddress, lane,
                "misaligned address: " + std::to_string(bytes) + " bytes at " + hexadecimal(address));
  bool generic = space == Space::Generic;
  if (generic) space = space_of(address);
  uint64_t begin = generic ? window_begin(space) : 0;
  switch (space) {
    case Space::Shared: {
      const Block& block = *warp_->block;
      Window window{begin, block.shared_bytes, block.shared_address - begin, 0, true};
      if (!holds(window, address, bytes))
        out_of_window(lane, "the block's shared memory", address - begin, bytes, window.bytes);
      return window;
    }
    case Space::Local: {
      const LocalMemory& local = warp_->local;
      Window window{begin, fragment.local_top, local.address(0) - begin, local.stride(), false};
      if (!holds(window, address, bytes))
        out_of_window(lane, "the thread's stack", address - begin, bytes, window.bytes);
      return window;
    }
    case Space::Param: {
      const std::vector<std::byte>& parameters = warp_->block->run->grid->launch.parameters;
      Window window{begin, parameters.size(), reinterpret_cast<uint64_t>(parameters.data()) - begin, 0,
                    false};
      if (!holds(window, address, bytes))
        out_of_window(lane, "the kernel's parameters", address - begin, bytes, window.bytes);
      if (for_writing)
        throw Fault(kIllegalAddress, lane, "illegal address: a kernel's parameters cannot be written");
      return window;
    }
    default:
      break;
  }
  Window window;
  for (const Window& known : known_)
    if (holds(known, address, bytes)) window = known;
  if (window.bytes == 0) known_[next_known_++ % known_.size()] = window = find_global(lane, address, bytes);
  window.ordered = space != Space::Const;
  return window;
}

Window AddressMap::find_global(uint32_t lane, uint64_t address, uint32_t bytes) {
  if (exact_) {
    const Allocation* piece = memory_.find(address, bytes);
    // A block's shared memory and a thread's stack have no global address.
    if (piece && piece->owner != Owner::Shared && piece->owner != Owner::Local)
      return {piece->address, piece->bytes, 0, 0, true};
  } else if (memory_.is_mapped(address, bytes)) {
    if (address - memory_.range_begin() < memory_.range_bytes())
      return {memory_.range_begin(), memory_.range_bytes(), 0, 0, true};
    return {address, bytes, 0, 0, true};  // registered memory of the host
  }
  throw Fault(kIllegalAddress, lane,
              "illegal address " + hexadecimal(address) + ": " + memory_.describe(address, bytes));
}

}  // namespace klap::emulator::execution
