#include "runtime/parents/pointers_apart.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/driver.h"

namespace klap::runtime {

namespace {

std::atomic<uint64_t> times_freed = 1;

constexpr size_t kPointerBytes = sizeof(CUdeviceptr);

// Elements have at most so many bytes. A pointer so near to the end of an allocation may have been moved down
// by one element, for a program that counts from one. Then it means the next allocation.
constexpr size_t kLongestElement = 16;

bool is_default_pool(CUmemoryPool pool, int device) {
  CUmemoryPool its_default = nullptr;
  return pool != nullptr && driver()->device_get_default_mem_pool(&its_default, device) == CUDA_SUCCESS &&
         pool == its_default;
}

// The allocation around `address` as the driver knows it; an unknown one if it knows none.
Allocation ask(CUdeviceptr address) {
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  unsigned type = 0;
  int managed = 0, legacy = 0, device = CU_DEVICE_INVALID;
  CUmemoryPool pool = nullptr;
  std::array attributes = {
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
      CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
  };
  std::array<void*, attributes.size()> values = {&begin, &bytes, &type, &managed, &device, &legacy, &pool};
  const CUresult result =
      driver()->pointer_get_attributes(attributes.size(), attributes.data(), values.data(), address);
  const bool on_device = type == CU_MEMORYTYPE_DEVICE && (legacy != 0 || is_default_pool(pool, device));
  const Allocation found{begin, bytes, managed != 0 || on_device};
  if (result != CUDA_SUCCESS || !found.contains(address) || found.end() < begin) return {};
  return found;
}

// The allocations that a pointer may point into.
struct Target {
  bool is_null = false;
  bool is_known = false;  // all of them, and each has one address
  std::vector<Allocation> allocations;
};

// Adds the allocations around `pointer`. False if there is none.
bool add_around(Target& target, CUdeviceptr pointer, bool only_upwards, KnownAllocations& known) {
  const Allocation own = known.around(pointer);
  if (!own.is_known()) return false;
  target.allocations.push_back(own);
  const auto add_neighbour = [&](CUdeviceptr address) {
    if (const Allocation neighbour = known.around(address); neighbour.is_known())
      target.allocations.push_back(neighbour);
  };
  if (pointer == own.begin && !only_upwards) add_neighbour(pointer - 1);
  if (own.end() - pointer <= kLongestElement) add_neighbour(own.end());
  return true;
}

Target target_of(const PointerParameter& parameter, const Launch& launch, const ParameterLayout& layout,
                 KnownAllocations& known) {
  Target target;
  const auto pointer = pointer_parameter(launch, layout, parameter.offset);
  if (!pointer) return target;
  const bool is_null = *pointer == 0;
  if (!is_null && !add_around(target, *pointer, parameter.only_upwards, known)) return target;
  for (const jit::Distance& distance : parameter.distances) {
    const auto place = place_at(launch, layout, parameter.offset, distance);
    if (!place) return target;
    // No array begins where there is no memory: the number marks something else, as a largest or a negative
    // one does. But the place may be the end of an array that is counted downwards.
    if (!add_around(target, *place, parameter.only_upwards, known) && !parameter.only_upwards)
      add_around(target, *place - kLongestElement, true, known);
  }
  target.is_null = is_null && target.allocations.empty();
  target.is_known = std::ranges::all_of(target.allocations, &Allocation::has_one_address);
  return target;
}

bool is_apart(const Target& one, const Target& other) {
  if (one.is_null || other.is_null) return true;
  if (!one.is_known || !other.is_known) return false;
  return std::ranges::none_of(one.allocations, [&](const Allocation& allocation) {
    return std::ranges::any_of(other.allocations,
                               [&](const Allocation& with) { return allocation.overlaps(with); });
  });
}

// The bytes from `offset` of the parameter block on; null where they do not lie within one parameter, or
// where the launch does not pass it.
const unsigned char* parameter_bytes(const Launch& launch, const ParameterLayout& layout, uint32_t offset,
                                     uint32_t bytes) {
  const auto next = std::ranges::upper_bound(layout.offsets, offset);
  if (next == layout.offsets.begin()) return nullptr;
  const uint32_t end = next == layout.offsets.end() ? layout.bytes : *next;
  if (offset > end || end - offset < bytes) return nullptr;
  if (launch.extra && !launch.params) {
    const auto packed = packed_parameters(launch.extra);
    if (packed && packed->size() >= uint64_t{offset} + bytes) return packed->data() + offset;
  } else if (launch.params && !launch.extra) {
    const auto parameter = static_cast<size_t>(std::distance(layout.offsets.begin(), next)) - 1;
    if (const void* const value = launch.params[parameter])
      return static_cast<const unsigned char*>(value) + (offset - layout.offsets[parameter]);
  }
  return nullptr;
}

}  // namespace

std::optional<uint64_t> number_of(const Launch& launch, const ParameterLayout& layout,
                                  const jit::ParameterNumber& number) {
  const uint32_t bytes = number.bytes;
  if (bytes == 0 || bytes > sizeof(uint64_t)) return std::nullopt;
  const unsigned char* const from = parameter_bytes(launch, layout, number.offset, bytes);
  if (!from) return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  const unsigned unused = 64 - 8 * bytes;
  return number.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused) : value;
}

Allocation KnownAllocations::around(CUdeviceptr address) {
  const auto has = [&](const Allocation& allocation) { return allocation.contains(address); };
  if (const auto known = std::ranges::find_if(known_, has); known != known_.end()) return *known;
  if (std::ranges::find(without_, address) != without_.end()) return {};
  const Allocation asked = ask(address);
  if (!asked.is_known()) {
    without_.push_back(address);
  } else {
    if (known_.size() == kMost) known_.clear();
    known_.push_back(asked);
  }
  return asked;
}

std::optional<CUdeviceptr> pointer_parameter(const Launch& launch, const ParameterLayout& layout,
                                             uint32_t offset) {
  const unsigned char* const from = parameter_bytes(launch, layout, offset, kPointerBytes);
  if (!from) return std::nullopt;
  CUdeviceptr pointer = 0;
  std::memcpy(&pointer, from, sizeof pointer);
  return pointer;
}

std::optional<int64_t> number_of(const Launch& launch, const ParameterLayout& layout,
                                 const jit::Distance& distance) {
  if (distance.divisor == 0) return std::nullopt;
  uint64_t sum = 0;
  for (const auto& [coefficient, factors] : distance.products) {
    uint64_t product = coefficient;
    for (const jit::ParameterNumber& factor : factors) {
      const auto number = number_of(launch, layout, factor);
      if (!number) return std::nullopt;
      product *= *number;
    }
    sum += product;
  }
  return static_cast<int64_t>(sum) / static_cast<int64_t>(distance.divisor);
}

std::optional<CUdeviceptr> place_at(const Launch& launch, const ParameterLayout& layout, uint32_t offset,
                                    const jit::Distance& distance) {
  const auto pointer = pointer_parameter(launch, layout, offset);
  const auto from_there = pointer ? number_of(launch, layout, distance) : std::nullopt;
  if (!from_there) return std::nullopt;
  return *pointer + static_cast<uint64_t>(*from_there);
}

bool is_not_negative(const Launch& launch, const ParameterLayout& layout, uint32_t offset, uint32_t bytes) {
  const unsigned char* const from = bytes == 0 ? nullptr : parameter_bytes(launch, layout, offset, bytes);
  constexpr unsigned kSignBit = 0x80;
  return from && (from[bytes - 1] & kSignBit) == 0;
}

bool are_apart(std::span<const ApartPair> pairs, std::span<const ApartFromSymbol> from_symbols,
               const Launch& launch, const ParameterLayout& layout, KnownAllocations& allocations) {
  allocations.begin_launch();
  const auto target = [&](const PointerParameter& parameter) {
    return target_of(parameter, launch, layout, allocations);
  };
  const auto pair_is_apart = [&](const ApartPair& pair) {
    return is_apart(target(pair.first), target(pair.second));
  };
  const auto symbol_is_apart = [&](const ApartFromSymbol& pair) {
    if (pair.symbol == 0 || pair.bytes == 0) return false;
    return is_apart(target(pair.pointer),
                    {.is_known = true, .allocations = {{pair.symbol, pair.bytes, true}}});
  };
  return std::ranges::all_of(pairs, pair_is_apart) && std::ranges::all_of(from_symbols, symbol_is_apart);
}

void forget_allocations() noexcept { times_freed.fetch_add(1); }

uint64_t times_allocations_were_forgotten() noexcept { return times_freed.load(); }

bool PointersFoundApart::knows(std::span<const CUdeviceptr> pointers, const Validity& now) const {
  return std::ranges::any_of(found_, [&](const Found& found) {
    return found.validity == now && std::ranges::equal(found.pointers, pointers);
  });
}

void PointersFoundApart::remember(std::span<const CUdeviceptr> pointers, const Validity& now) {
  found_.at(oldest_) = {now, {pointers.begin(), pointers.end()}};
  oldest_ = (oldest_ + 1) % kMost;
}

KnownAllocations& PointersFoundApart::allocations(const Validity& now) {
  if (now != allocations_validity_) {
    allocations_ = {};
    allocations_validity_ = now;
  }
  return allocations_;
}

}  // namespace klap::runtime
