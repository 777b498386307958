#include "runtime/parents/made_for.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "runtime/driver.h"
#include "runtime/parents/pointers_apart.h"

namespace klap::runtime {

namespace {

// A variant that depends on more places than that is not launched.
constexpr size_t kMostPlacesApart = 64;

// Asks for the allocations of all pointers, and for the places of variables.
bool find_memory_apart(ParentKernel& parent, const Launch& launch, const ParameterLayout& layout,
                       KnownAllocations& allocations) {
  std::vector<ApartPair> pairs;
  std::vector<ApartFromSymbol> from_symbols;
  for (const auto& [first, second] : parent.variant().apart) {
    const bool is_pair = first.variable.empty() && second.variable.empty();
    const jit::HostMemory& pointer = first.variable.empty() ? first : second;
    const PointerParameter parameter{pointer.offset, pointer.only_upwards, pointer.distances};
    if (is_pair) {
      pairs.push_back({parameter, {second.offset, second.only_upwards, second.distances}});
    } else {
      const auto [address, bytes] =
          parent.variable(first.variable.empty() ? second.variable : first.variable);
      from_symbols.push_back({parameter, address, bytes});
    }
  }
  return are_apart(pairs, from_symbols, launch, layout, allocations);
}

// Whether the memory of all pairs is shown to lie in different allocations, and all numbers of which that
// depends are not negative. Programs launch the same kernel with the same pointers again and again, so a
// launch first looks only at these.
bool has_memory_apart(ParentKernel& parent, const Launch& launch) {
  const jit::Variant& variant = parent.variant();
  if (variant.apart.empty()) return true;
  const ParameterLayout layout{variant.parent_param_offsets, variant.parent_param_bytes};
  const auto is_negative = [&](const jit::ParameterBytes& number) {
    return !is_not_negative(launch, layout, number.offset, number.bytes);
  };
  if (std::ranges::any_of(variant.not_negative, is_negative)) return false;
  const std::span<const ParentKernel::Place> places = parent.places_apart();
  std::array<CUdeviceptr, kMostPlacesApart> addresses{};
  if (places.size() > addresses.size()) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto address = place_at(launch, layout, places[i].pointer, places[i].distance);
    if (!address) return false;
    addresses.at(i) = *address;
  }
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS) return false;
  const auto look = [&](KnownAllocations& allocations) {
    return find_memory_apart(parent, launch, layout, allocations);
  };
  return parent.pointers_apart().are_apart(std::span(addresses).first(places.size()), context_id, look);
}

// True if guards that the host can check let several blocks of the grid launch.
bool has_several_blocks(const jit::Variant& variant, const Launch& launch) {
  const ParameterLayout layout{variant.parent_param_offsets, variant.parent_param_bytes};
  for (size_t axis = 0; axis < std::size(launch.grid); ++axis) {
    const auto lets_several_through = [&](const jit::BlockLimit& limit) {
      if (limit.axis != axis) return true;
      const auto bound = number_of(launch, layout, limit.bound);
      const unsigned begin_of_second = limit.step == 0 ? launch.block[axis] : limit.step;
      return bound && *bound > static_cast<int64_t>(begin_of_second);
    };
    if (launch.grid[axis] > 1 && std::ranges::all_of(variant.block_limits, lets_several_through)) return true;
  }
  return false;
}

}  // namespace

bool is_made_for(ParentKernel& parent, const Launch& launch) {
  const jit::Variant& variant = parent.variant();
  const auto fits = [](uint32_t needed, unsigned is) { return needed == 0 || needed == is; };
  return std::ranges::equal(variant.block, launch.block, fits) &&
         std::ranges::equal(variant.grid, launch.grid, fits) &&
         (!variant.several_blocks || has_several_blocks(variant, launch)) && has_memory_apart(parent, launch);
}

ParentKernel* variant_for(const std::shared_ptr<ParentKernel>& first, const Launch& launch) {
  for (ParentKernel* parent = first.get(); parent != nullptr; parent = parent->otherwise().get()) {
    const bool is_chosen_elsewhere = parent != first.get() && parent->variant().is_another_form();
    if (!is_chosen_elsewhere && is_made_for(*parent, launch)) return parent;
  }
  return nullptr;
}

}  // namespace klap::runtime
