#include "runtime/load/tuned_settings.h"

#include <cuda.h>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <optional>

#include "jit/cache/cache_folder.h"
#include "jit/cache/cache_key.h"
#include "runtime/driver.h"
#include "runtime/process.h"
#include "support/hash.h"
#include "support/log.h"

namespace klap::runtime {
namespace {

// The GPU's model, and its size: a part of a GPU (MIG) has the name of the whole. A library may be loaded for
// several devices, which are alike in most machines; the first one counts. Empty if the driver does not say.
std::string gpu_model(bool every_device) {
  CUdevice device = 0;
  std::array<char, 256> name{};
  int multiprocessors = 0;
  const Driver& cuda = *driver();
  const CUresult found = every_device ? cuda.device_get(&device, 0) : cuda.ctx_get_device(&device);
  if (found != CUDA_SUCCESS ||
      cuda.device_get_name(name.data(), static_cast<int>(name.size()) - 1, device) != CUDA_SUCCESS ||
      cuda.device_get_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) !=
          CUDA_SUCCESS) {
    return "";
  }
  return fmt::format("{}, {} multiprocessors", name.data(), multiprocessors);
}

std::optional<std::string> read_tuned(const std::string& file) {
  try {
    return jit::CacheFolder::open(config().cache_dir).read(file);
  } catch (const std::exception& error) {
    log().info("tuned settings are not read: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace

TunedSettings tuned_settings(const jit::Program& program, bool every_device) {
  const settings::Config& asked = config();
  TunedSettings out;
  // The process's settings live as long as the process.
  out.config = std::shared_ptr<const settings::Config>(std::shared_ptr<void>(), &asked);
  if (asked.cache_disabled || asked.cache_dir.empty()) return out;
  const std::string model = gpu_model(every_device);
  if (model.empty()) return out;
  out.file = Hasher().add(jit::program_text(program)).add(model).hex() + std::string(jit::kTunedEnding);
  if (asked.tune != settings::TuneMode::On) return out;
  const std::optional<std::string> text = read_tuned(out.file);
  if (!text) return out;
  auto tuned = std::make_shared<settings::Config>(asked);
  for (const std::string& problem : settings::apply_tuned_text(*tuned, *text, out.file))
    log().warn("{}", problem);
  out.is_found = true;
  out.config = std::move(tuned);
  return out;
}

}  // namespace klap::runtime
