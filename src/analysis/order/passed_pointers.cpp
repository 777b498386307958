#include "analysis/order/passed_pointers.h"

#include <algorithm>
#include <utility>

#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

// With more contexts, a kernel counts as one that is given any pointers.
constexpr size_t kMostContexts = 8;

constexpr uint32_t kPointerBytes = 8;

}  // namespace

// The launches, with what their arguments are made of.
class PassedPointers::Follower {
 public:
  Follower(const FunctionFacts& parent, const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
           const std::vector<GroupLaunch>& launches) {
    std::map<const FunctionFacts*, MemoryEffects> effects;
    for (const GroupLaunch& launch : launches) {
      const FunctionFacts& from = launch.from == GroupLaunch::kHost ? parent : *kernels[launch.from];
      const auto known = effects.try_emplace(&from, from).first;
      launches_.push_back(launch_of(launch, from, known->second));
    }
  }

  [[nodiscard]] std::vector<std::set<Context>> contexts(size_t kernels) const {
    std::vector<std::set<Context>> out(kernels);
    for (bool more = true; more;) {
      more = false;
      for (const Launch& launch : launches_) {
        if (launch.from == GroupLaunch::kHost) {
          more = add(out[launch.to], passed(launch, nullptr)) || more;
          continue;
        }
        const std::set<Context> of_kernel = out[launch.from];
        for (const Context& context : of_kernel) more = add(out[launch.to], passed(launch, &context)) || more;
      }
    }
    return out;
  }

 private:
  // A pointer argument that leads back to one parameter of the launching kernel, or to a variable.
  struct PassedPointer {
    uint32_t offset = 0;
    HostMemory of_launcher;
    bool is_exact = false;
  };
  struct Launch {
    size_t from = 0, to = 0;
    std::vector<PassedPointer> pointers;
    std::map<uint32_t, uint32_t> numbers;  // parameters that are passed on, by their offset in the child
  };

  static Launch launch_of(const GroupLaunch& launch, const FunctionFacts& from,
                          const MemoryEffects& effects) {
    const SiteValues values = site_values(from.values(), *launch.site);
    Launch out{launch.from, launch.to, {}, {}};
    for (const SiteArgument& argument : values.arguments) {
      const Expr& value = argument.operand.value.exact();
      if (value.known() && value->kind == ExprKind::Parameter && value->bits == 8 * argument.bytes)
        out.numbers.emplace(argument.offset, static_cast<uint32_t>(value->value));
    }
    for (const Argument& argument : launch.site->arguments) {
      if (argument.bytes != kPointerBytes) continue;
      const auto memory = launch.from == GroupLaunch::kHost
                              ? memory_of_argument(from, effects, argument)
                              : memory_of_parent(from, effects.roots_of(argument.source));
      if (!memory || memory->size() != 1) continue;
      const HostMemory& is = *memory->begin();
      const auto same = out.numbers.find(argument.offset);
      const bool is_exact =
          same != out.numbers.end() && same->second == is.parameter_offset && is.variable.empty();
      out.pointers.push_back({argument.offset, is, is_exact});
    }
    return out;
  }

  // The context of a child. The parent that the host launches has none: its parameters are the host's.
  static Context passed(const Launch& launch, const Context* context) {
    Context out;
    for (const PassedPointer& pointer : launch.pointers) {
      const bool is_variable = !pointer.of_launcher.variable.empty();
      if (context == nullptr || is_variable) {
        out.pointers[pointer.offset] = {pointer.of_launcher, pointer.is_exact};
        continue;
      }
      const auto found = context->pointers.find(pointer.of_launcher.parameter_offset);
      if (found == context->pointers.end()) continue;
      out.pointers[pointer.offset] = {found->second.memory, found->second.is_exact && pointer.is_exact};
    }
    for (const auto& [offset, of_launcher] : launch.numbers) {
      if (context == nullptr) {
        out.numbers[offset] = of_launcher;
      } else if (const auto found = context->numbers.find(of_launcher); found != context->numbers.end()) {
        out.numbers[offset] = found->second;
      }
    }
    return out;
  }

  // Whether that changed anything.
  static bool add(std::set<Context>& to, Context context) {
    if (to.size() > kMostContexts) return false;
    if (to.size() == kMostContexts && !to.contains(context)) context = {};
    return to.insert(std::move(context)).second;
  }

  std::vector<Launch> launches_;
};

PassedPointers::PassedPointers(const FunctionFacts& parent,
                               const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
                               const std::vector<GroupLaunch>& launches)
    : contexts_(Follower(parent, kernels, launches).contexts(kernels.size())) {}

// The distances from the host's pointer, where the kernel's pointer may be off by some and its accesses start
// at others from there. Numbers that are not the host's count elements.
std::set<HostDistance> PassedPointers::distances(const std::set<HostDistance>& of_pointer,
                                                 const std::set<HostDistance>& from_there,
                                                 const Context& context) {
  std::set<HostDistance> out = of_pointer;
  for (const HostDistance& distance : from_there) {
    HostDistance of_host{{}, distance.divisor};
    for (HostProduct product : distance.products) {
      const bool is_known = std::ranges::all_of(product.factors, [&](HostFactor& factor) {
        const auto found = context.numbers.find(factor.parameter_offset);
        if (found != context.numbers.end()) factor.parameter_offset = found->second;
        return found != context.numbers.end();
      });
      if (is_known) of_host.products.push_back(std::move(product));
    }
    if (of_host.products.empty()) continue;
    out.insert(of_host);
    for (const HostDistance& first : of_pointer) out.insert(first + of_host);
  }
  return out;
}

// An address goes upwards from the host's pointer only if the kernel's pointer is the same. The numbers on
// which that depends are not followed.
std::optional<HostMemory> PassedPointers::host_memory(const HostMemory& memory, const Context& context) {
  if (!memory.variable.empty()) return memory;
  const auto found = context.pointers.find(memory.parameter_offset);
  if (found == context.pointers.end()) return std::nullopt;
  HostMemory out = found->second.memory;
  out.distances = distances(out.distances, memory.distances, context);
  out.only_upwards = memory.only_upwards && memory.unless_negative.empty() && found->second.is_exact;
  return out;
}

std::optional<OrderConditions> PassedPointers::in_terms_of_host(size_t kernel,
                                                                const OrderConditions& conditions) const {
  OrderConditions out;
  for (const Context& context : contexts_[kernel]) {
    for (const auto& [a, b] : conditions.apart) {
      const auto first = host_memory(a, context), second = host_memory(b, context);
      if (!first || !second || first->has_same_name(*second)) return std::nullopt;
      if (!first->variable.empty() && !second->variable.empty()) continue;
      out.apart.insert(std::minmax(*first, *second));
    }
  }
  return out;
}

}  // namespace klap::analysis
