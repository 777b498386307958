#include "analysis/order/recursive_group_memory.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace klap::analysis {
namespace {

class RecursiveGroupMemory {
 public:
  RecursiveGroupMemory(const FunctionFacts& parent, const MemoryEffects& parent_effects,
                       const std::vector<std::unique_ptr<ChildAccesses>>& kernels)
      : parent_(parent), parent_effects_(parent_effects), kernels_(kernels) {}

  // Sets of memory only grow, and become unknown at most once.
  void follow_pointers(const std::vector<GroupLaunch>& launches) {
    Pointers pointers;
    for (bool more = true; more;) {
      more = false;
      for (const GroupLaunch& launch : launches) {
        for (const Argument& argument : launch.site->arguments) {
          if (argument.bytes != 8) continue;
          const auto passed = passed_on(launch, argument, pointers);
          const auto [known, is_new] =
              pointers.try_emplace({launch.to, argument.offset}, std::set<HostMemory>());
          more = merge(known->second, passed) || is_new || more;
        }
      }
    }
    for (size_t k = 0; k < kernels_.size(); ++k) {
      for (ChildAccess& access : kernels_[k]->accesses)
        access.memory = memory_in_recursive_group(k, access, pointers);
    }
  }

 private:
  // Kernels' parameters by where they stand, with the memory that the host gave them; nothing where that is
  // not known.
  using Pointers = std::map<std::pair<size_t, uint32_t>, std::optional<std::set<HostMemory>>>;

  // The memory behind an argument that a launching kernel passes on. If the parent launches, the pointers are
  // its own, as the host gave them. Otherwise other launches gave them to the kernel.
  [[nodiscard]] std::optional<std::set<HostMemory>> passed_on(const GroupLaunch& launch,
                                                              const Argument& argument,
                                                              const Pointers& pointers) const {
    if (launch.from == GroupLaunch::kHost) return memory_of_argument(parent_, parent_effects_, argument);
    const ChildAccesses& from = *kernels_[launch.from];
    std::set<HostMemory> out;
    for (const MemoryRoot& root : from.effects.roots_of(argument.source)) {
      const auto memory = memory_in_recursive_group(launch.from, root, pointers);
      if (!memory) return std::nullopt;
      out.insert(memory->begin(), memory->end());
    }
    return out;
  }

  [[nodiscard]] std::optional<std::set<HostMemory>> memory_in_recursive_group(
      size_t kernel, const MemoryRoot& root, const Pointers& pointers) const {
    if (root.kind == MemoryRoot::Kind::Symbol) return std::set{HostMemory{0, root.name}};
    const auto& parameters = kernels_[kernel]->facts->function.parameters;
    if (root.kind != MemoryRoot::Kind::Parameter || root.parameter >= parameters.size()) return std::nullopt;
    const auto found = pointers.find({kernel, parameters[root.parameter].offset + root.offset});
    return found == pointers.end() ? std::optional<std::set<HostMemory>>(std::in_place) : found->second;
  }

  // Whether anything changed.
  static bool merge(std::optional<std::set<HostMemory>>& into,
                    const std::optional<std::set<HostMemory>>& from) {
    if (!into) return false;
    if (!from) {
      into.reset();
      return true;
    }
    const size_t before = into->size();
    into->insert(from->begin(), from->end());
    return into->size() != before;
  }

  [[nodiscard]] std::optional<std::set<HostMemory>> memory_in_recursive_group(
      size_t kernel, const ChildAccess& access, const Pointers& pointers) const {
    std::set<HostMemory> out;
    for (const MemoryRoot& root : access.is->roots) {
      const auto memory = memory_in_recursive_group(kernel, root, pointers);
      if (!memory || memory->empty()) return std::nullopt;
      out.insert(memory->begin(), memory->end());
    }
    return out;
  }

  const FunctionFacts& parent_;
  const MemoryEffects& parent_effects_;
  const std::vector<std::unique_ptr<ChildAccesses>>& kernels_;
};

}  // namespace

void find_recursive_group_memory(const FunctionFacts& parent, const MemoryEffects& parent_effects,
                                 const std::vector<GroupLaunch>& launches,
                                 const std::vector<std::unique_ptr<ChildAccesses>>& kernels) {
  RecursiveGroupMemory(parent, parent_effects, kernels).follow_pointers(launches);
}

}  // namespace klap::analysis
