#include "jit/generate/linked_image.h"

#include <span>

#include "container/elf64.h"
#include "support/error.h"

namespace klap::jit {
namespace {

constexpr std::string_view kParameterBank = ".nv.constant0.";  // every kernel has one, a function has none

}  // namespace

std::set<std::string> kernels_of(std::string_view cubin, const std::string& name) {
  std::set<std::string> out;
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), name);
  for (const container::ElfSection& section : elf.sections()) {
    const std::string_view text = elf.name(section);
    if (text.starts_with(kParameterBank)) out.emplace(text.substr(kParameterBank.size()));
  }
  return out;
}

void check_linked(const Program& program, const GeneratedUnits& generated, const std::string& cubin) {
  const std::set<std::string> linked = kernels_of(cubin, "linked image");
  const auto require = [&](const std::string& kernel) {
    if (!linked.contains(kernel)) {
      throw Error(ErrorCode::Link, "the linked image lacks a kernel").kernel(kernel);
    }
  };
  for (const Variant& variant : generated.variants) {
    for (const std::string* kernel : {&variant.parent, &variant.parent_variant}) require(*kernel);
    if (variant.is_fused()) continue;
    for (const ChildQueue& queue : variant.queues) require(queue.consumer);
  }
  for (const Unit& unit : program.units) {
    if (unit.is_device_runtime || unit.cubin.empty()) continue;
    for (const std::string& kernel : kernels_of(unit.cubin, unit.name)) require(kernel);
  }
}

void check_unique(const Program& program, const GeneratedUnits& generated) {
  std::set<std::string> names;
  for (const Unit& unit : program.units) {
    if (!unit.cubin.empty()) names.merge(kernels_of(unit.cubin, unit.name));
  }
  for (const auto& code : generated.code) {
    if (!code) continue;
    for (const transform::Generated& kernel : code->kernels) {
      if (!names.insert(kernel.name).second) {
        throw Error(ErrorCode::Internal, "the name of a generated kernel is taken").kernel(kernel.name);
      }
    }
  }
}

}  // namespace klap::jit
