#include "emulator/machine/loaded_before.h"

#include <algorithm>
#include <cstring>

namespace klap::emulator {
namespace {

constexpr size_t kMostKnown = 8;

Owner owner_of(const Variable& variable) { return variable.is_managed ? Owner::Managed : Owner::Module; }

}  // namespace

LoadedBefore& LoadedBefore::images() {
  // Never destroyed: programs call the driver from destructors of their own at exit.
  static thread_local auto* const images = new LoadedBefore;
  return *images;
}

// Allocates the variables in the order of linking. Succeeds only if each of them lies where it lay before.
bool LoadedBefore::place(const Known& known, Memory& memory) {
  if (memory.range_begin() != known.range_begin) return false;
  const std::vector<Variable>& variables = known.image->variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    const auto address =
        memory.allocate(std::max<uint64_t>(v.bytes, 1), owner_of(v), std::max(v.align, 1u), v.name);
    if (address == v.address) continue;
    if (address) memory.free(*address, owner_of(v));
    while (i-- > 0) memory.free(variables[i].address, owner_of(variables[i]));
    return false;
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::vector<std::byte>& values = known.values[i];
    if (values.empty()) {
      std::memset(pointer_to(variables[i].address), 0, variables[i].bytes);
    } else {
      std::memcpy(pointer_to(variables[i].address), values.data(), values.size());
    }
  }
  return true;
}

std::shared_ptr<const Image> LoadedBefore::find(const std::string& text, uint64_t machine, Memory& memory) {
  const auto at = std::ranges::find(known_, text, &Known::text);
  if (at == known_.end() || at->machine == machine || at->image.use_count() != 1) return nullptr;
  if (!place(*at, memory)) {
    known_.erase(at);
    return nullptr;
  }
  at->machine = machine;
  known_.splice(known_.begin(), known_, at);
  ++found_;
  return at->image;
}

void LoadedBefore::keep(std::string text, uint64_t machine, const Memory& memory,
                        std::shared_ptr<const Image> image) {
  if (std::ranges::find(known_, text, &Known::text) != known_.end()) return;
  Known known{std::move(text), machine, memory.range_begin(), std::move(image), {}};
  for (const Variable& v : known.image->variables) {
    const std::byte* const first = pointer_to(v.address);
    const bool is_zero = std::all_of(first, first + v.bytes, [](std::byte b) { return b == std::byte{}; });
    known.values.emplace_back(first, is_zero ? first : first + v.bytes);
  }
  known_.push_front(std::move(known));
  if (known_.size() > kMostKnown) known_.pop_back();
}

}  // namespace klap::emulator
