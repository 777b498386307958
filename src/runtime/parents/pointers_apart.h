// This file tells whether pointers that a launch passes to its kernel lie in different allocations.
//
// A variant may be right only if two pointer parameters do not alias. The code cannot show that, but the
// values of one launch can: the driver knows the allocation behind each. It takes about a microsecond to say
// so for each pointer. So the results are remembered for as long as the program frees nothing: until then an
// address means the same allocation. Programs move pointers through their arrays from launch to launch, so
// the allocations are remembered beside the pointers.
//
// Two address ranges can be one piece of memory: memory mapped twice, host memory under its device's address,
// memory of another process. So a pointer counts only if it points into memory that has one address: memory
// from cuMemAlloc and cuMemAllocManaged, and from the default pool of a device. No other pointer is shown to
// be apart.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/program_launch.h"

namespace klap::runtime {

// An 8-byte pointer in the parameter block.
struct PointerParameter {
  uint32_t offset = 0;
  // No access lies below the pointer. With one it may be the end of one allocation and the beginning of the
  // next, and counts as a pointer into both.
  bool only_upwards = false;
  // Accesses may begin so far from the pointer, too. They count as accesses through a pointer of their own.
  std::span<const jit::Distance> distances = {};
};

struct ApartPair {
  PointerParameter first, second;
};

// A pointer that has to be apart from a variable of the module.
struct ApartFromSymbol {
  PointerParameter pointer;
  CUdeviceptr symbol = 0;
  size_t bytes = 0;
};

// Where the parameters of a kernel begin in its parameter block, in order, and where the last one ends.
struct ParameterLayout {
  std::span<const uint32_t> offsets;
  uint32_t bytes = 0;
};

// The pointer at `offset` of the parameter block, in whichever form the launch passes its parameters. Nothing
// where it does not lie within one parameter, or where the launch does not pass it.
std::optional<CUdeviceptr> pointer_parameter(const Launch& launch, const ParameterLayout& layout,
                                             uint32_t offset);

// The distance, where all of its numbers are passed.
std::optional<int64_t> number_of(const Launch& launch, const ParameterLayout& layout,
                                 const jit::Distance& distance);

// That pointer and `distance` together. Nothing where a number of the distance is not passed, either.
std::optional<CUdeviceptr> place_at(const Launch& launch, const ParameterLayout& layout, uint32_t offset,
                                    const jit::Distance& distance);

// Whether the launch passes a signed integer of 1, 2, 4 or 8 bytes at `offset`, and one that is not negative.
bool is_not_negative(const Launch& launch, const ParameterLayout& layout, uint32_t offset, uint32_t bytes);

// The number that the launch passes, widened; nothing where it does not pass it.
std::optional<uint64_t> number_of(const Launch& launch, const ParameterLayout& layout,
                                  const jit::ParameterNumber& number);

// A range of addresses that the program allocated at once.
struct Allocation {
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  bool has_one_address = false;

  [[nodiscard]] bool is_known() const { return bytes != 0; }
  [[nodiscard]] CUdeviceptr end() const { return begin + bytes; }
  [[nodiscard]] bool contains(CUdeviceptr address) const {
    return address >= begin && address - begin < bytes;
  }
  [[nodiscard]] bool overlaps(const Allocation& other) const {
    return begin < other.end() && other.begin < end();
  }
};

// The allocations that the driver was asked about. They hold until the program frees memory.
class KnownAllocations {
 public:
  // The allocation around `address`; an unknown one if the driver knows none. The driver is asked if no known
  // one contains the address.
  Allocation around(CUdeviceptr address);

  // To be called before each launch: an address without an allocation may have one by now.
  void begin_launch() { without_.clear(); }

 private:
  static constexpr size_t kMost = 256;
  std::vector<Allocation> known_;
  std::vector<CUdeviceptr> without_;
};

// Whether every pair is shown to lie in different allocations. A null pointer is apart from everything, since
// using it would fault. The launch's context is current. The driver is asked once about each address, and not
// about those in `allocations`.
bool are_apart(std::span<const ApartPair> pairs, std::span<const ApartFromSymbol> from_symbols,
               const Launch& launch, const ParameterLayout& layout, KnownAllocations& allocations);

// To be called before and after memory of the program is freed.
void forget_allocations() noexcept;

// How often forget_allocations() has been called.
uint64_t times_allocations_were_forgotten() noexcept;

// The last launches of one kernel whose pointers were found to be apart. May be used by several threads.
class PointersFoundApart {
 public:
  // Whether the pointers of a launch are apart. `look` finds out, given the allocations that are known, and
  // is called only for pointers that are new. `context_id` is the launch's context, whose memory is freed
  // when it ends.
  template <typename Look>
  bool are_apart(std::span<const CUdeviceptr> pointers, uint64_t context_id, const Look& look) {
    const Validity now{context_id, times_allocations_were_forgotten()};
    const std::lock_guard lock(mutex_);
    if (knows(pointers, now)) return true;
    if (!look(allocations(now))) return false;
    remember(pointers, now);
    return true;
  }

 private:
  // The context that a result is from, and how much the program had freed.
  struct Validity {
    uint64_t context_id = 0, forgotten = 0;
    bool operator==(const Validity&) const = default;
  };
  struct Found {
    Validity validity;
    std::vector<CUdeviceptr> pointers;
  };
  [[nodiscard]] bool knows(std::span<const CUdeviceptr> pointers, const Validity& now) const;
  void remember(std::span<const CUdeviceptr> pointers, const Validity& now);
  KnownAllocations& allocations(const Validity& now);

  static constexpr size_t kMost = 16;  // enough for programs that swap their arrays, or count in one
  std::mutex mutex_;
  std::array<Found, kMost> found_;
  size_t oldest_ = 0;
  Validity allocations_validity_;
  KnownAllocations allocations_;
};

}  // namespace klap::runtime
