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
      launches_.push_back({launch.from, launch.to, arguments_of(from, *launch.site, known->second)});
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
  struct Argument {
    uint32_t offset = 0;
    HostMemory of_launcher;
    bool is_exact = false;
  };
  struct Launch {
    size_t from = 0, to = 0;
    std::vector<Argument> arguments;
  };

  static std::vector<Argument> arguments_of(const FunctionFacts& from, const Site& site,
                                            const MemoryEffects& effects) {
    const SiteValues values = site_values(from.values(), site);
    std::vector<Argument> out;
    for (size_t i = 0; i < site.arguments.size(); ++i) {
      const auto& [offset, bytes, type, source, store] = site.arguments[i];
      if (bytes != kPointerBytes) continue;
      const auto memory = memory_of_parent(from, effects.roots_of(source));
      if (!memory || memory->size() != 1) continue;
      const HostMemory& is = *memory->begin();
      const bool is_exact = std::ranges::any_of(values.arguments, [&](const SiteArgument& argument) {
        const Expr& value = argument.operand.value.exact();
        return argument.offset == offset && argument.bytes == bytes && value.known() &&
               value->kind == ExprKind::Parameter && value->bits == 8 * bytes &&
               value->value == is.parameter_offset && is.variable.empty();
      });
      out.push_back({offset, is, is_exact});
    }
    return out;
  }

  // The context of a child. The parent that the host launches has none: its parameters are the host's.
  static Context passed(const Launch& launch, const Context* context) {
    Context out;
    for (const Argument& argument : launch.arguments) {
      const bool is_variable = !argument.of_launcher.variable.empty();
      if (context == nullptr || is_variable) {
        out[argument.offset] = {argument.of_launcher, argument.is_exact};
        continue;
      }
      const auto found = context->find(argument.of_launcher.parameter_offset);
      if (found == context->end()) continue;
      out[argument.offset] = {found->second.memory, found->second.is_exact && argument.is_exact};
    }
    return out;
  }

  // Whether that changed anything.
  static bool add(std::set<Context>& to, Context context) {
    if (to.size() > kMostContexts) return false;
    if (to.size() == kMostContexts && !to.contains(context)) context.clear();
    return to.insert(std::move(context)).second;
  }

  std::vector<Launch> launches_;
};

PassedPointers::PassedPointers(const FunctionFacts& parent,
                               const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
                               const std::vector<GroupLaunch>& launches)
    : contexts_(Follower(parent, kernels, launches).contexts(kernels.size())) {}

// An address goes upwards from the host's pointer only if the kernel's pointer is the same. The numbers on
// which that depends are not followed.
std::optional<HostMemory> PassedPointers::host_memory(const HostMemory& memory, const Context& context) {
  if (!memory.variable.empty()) return memory;
  const auto found = context.find(memory.parameter_offset);
  if (found == context.end()) return std::nullopt;
  HostMemory out = found->second.memory;
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
