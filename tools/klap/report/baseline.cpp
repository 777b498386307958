#include "klap/report/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace klap::tool {

namespace {

// The time on the clock without compiling. Natively there is none, though a baseline that klap_jit timed has
// it, and later runs find what was compiled. How long several processes took for it together says nothing
// about the clock.
double without_compiling(const Statistics& all, double seconds) {
  const double compiling = all.processes == 1 ? all.compile_ms : 0;
  return std::max(0.0, 1000 * seconds - compiling);
}

}  // namespace

Baseline::Baseline(const Statistics& now, std::optional<Statistics> before)
    : now_(now), before_(std::move(before)) {}

std::string Baseline::name() const {
  const bool is_native = !before_ || (before_->run && before_->run->is_native) ||
                         before_->left_launches().contains("original is asked for");
  return is_native ? "natively" : "in the baseline";
}

std::optional<Gain> Baseline::program() const {
  if (!now_.run) return std::nullopt;
  const double now_ms = without_compiling(now_, now_.run->seconds);
  if (before_) {
    if (!before_->run) return std::nullopt;
    return Gain{without_compiling(*before_, before_->run->seconds), now_ms};
  }
  if (!now_.run->native_seconds) return std::nullopt;
  return Gain{1000 * *now_.run->native_seconds, now_ms};
}

std::string Baseline::warning() const {
  if (!now_.run) return "";
  std::optional<int> before = now_.run->native_exit_code;
  if (before_) before = before_->run ? before_->run->exit_code : std::nullopt;
  if (!before || !now_.run->exit_code || before == now_.run->exit_code) return "";
  return fmt::format(
      "The exit code was {} {}, and is {} now, so the times may be those of different work. "
      "Natively, launches beyond CUDA's limit of pending ones are lost.",
      *before, name(), *now_.run->exit_code);
}

std::optional<Gain> Baseline::gpu() const {
  Gain sum;
  for (const auto& [mangled, kernel] : now_.kernels) {
    const std::optional<Gain> one = launch(mangled);
    if (!one) continue;
    sum.before_ms += one->before_ms * static_cast<double>(kernel.timed);
    sum.now_ms += kernel.timed_ms();
  }
  return sum.before_ms > 0 && sum.now_ms > 0 ? std::optional(sum) : std::nullopt;
}

std::optional<Gain> Baseline::launch(const std::string& mangled) const {
  if (!before_) return std::nullopt;
  const auto before = before_->kernels.find(mangled), now = now_.kernels.find(mangled);
  if (before == before_->kernels.end() || now == now_.kernels.end() || before->second.timed == 0 ||
      now->second.timed == 0)
    return std::nullopt;
  return Gain{before->second.timed_ms() / static_cast<double>(before->second.timed),
              now->second.timed_ms() / static_cast<double>(now->second.timed)};
}

std::optional<Gain> guard_gain(const KernelRecord& kernel) {
  Gain mean;
  double launches = 0;
  for (const GuardFinding& found : kernel.guard) {
    if (found.variant_ms <= 0 || found.original_ms <= 0) continue;
    const auto weight = static_cast<double>(std::max<uint64_t>(found.launches, 1));
    mean.before_ms += weight * found.original_ms;
    mean.now_ms += weight * found.variant_ms;
    launches += weight;
  }
  if (launches == 0) return std::nullopt;
  return Gain{mean.before_ms / launches, mean.now_ms / launches};
}

}  // namespace klap::tool
