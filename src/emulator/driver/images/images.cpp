#include "emulator/driver/images/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "container/archive.h"
#include "container/host_elf.h"
#include "container/image.h"
#include "emulator/driver/process.h"
#include "ptx/dialect.h"
#include "ptx/tree.h"
#include "support/error.h"

namespace klap::emulator::driver {
namespace {

using container::Fatbin;
using container::ImageKind;

[[noreturn]] void throw_no_binary(const std::string& why) {
  say(why);
  fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
}

// Adds the unit that a fatbin is one form of.
void add_unit(Units& units, const Fatbin& fatbin, const std::string& name, uint32_t sm) {
  if (fatbin.bytes.empty() || container::is_device_runtime(fatbin)) return;
  const container::FatbinEntry* const entry = container::best_ptx(fatbin, sm);
  if (entry == nullptr) {
    throw_no_binary(fmt::format("{} holds no PTX for sm_{}, and machine code cannot be emulated", name, sm));
  }
  units.push_back({entry->name.empty() ? name : entry->name, entry->payload()});
}

void add_units(Units& units, const std::vector<Fatbin>& fatbins, const std::string& name, uint32_t sm) {
  for (size_t i = 0; i < fatbins.size(); ++i) {
    add_unit(units, fatbins[i], fatbins.size() == 1 ? name : fmt::format("{}, unit {}", name, i), sm);
  }
}

Units from_elf(const void* image, uint64_t limit, const std::string& name) {
  if (auto units = read_linked_image(image, limit)) return *std::move(units);
  throw_no_binary(name + " is machine code, which cannot be emulated");
}

bool waits(const ptx::Module& unit) {
  return std::ranges::any_of(unit.functions, [&unit](const ptx::Function& function) {
    return function.is_definition &&
           unit.text(function.tokens).find("cudaDeviceSynchronize") != std::string_view::npos;
  });
}

}  // namespace

void refuse_waits(const Process& process, const Units& units) {
  if (!process.settings.refuses_waits) return;
  for (const Machine::UnitText& unit : units)
    if (waits(ptx::parse(unit.ptx, unit.name))) fail(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC);
}

// Text that has no such line is the parser's to complain of.
Machine::UnitText ptx_unit(std::string name, std::string text, uint32_t sm) {
  constexpr std::string_view kDirective = "\n.target ";
  const size_t found = text.find(kDirective);
  if (found != std::string::npos) {
    const size_t begin = found + kDirective.size();
    const std::string word = text.substr(begin, text.find_first_of(" ,\t\r\n", begin) - begin);
    const auto target = ptx::parse_target(word);
    if (target && !ptx::runs_on(*target, sm)) {
      throw Error(ErrorCode::Parse, fmt::format("the PTX is for {} and does not run on sm_{}", word, sm))
          .at(name);
    }
  }
  return {std::move(name), std::move(text)};
}

Units read_image(const void* image, uint32_t sm) {
  Units units;
  switch (container::classify(image)) {
    case ImageKind::WrapperV1:
      add_units(units, {container::wrapper_fatbin(image)}, "image", sm);
      break;
    case ImageKind::WrapperV2:
      add_units(units, container::prelinked_fatbins(image), "image", sm);
      break;
    case ImageKind::Fatbin:
      add_units(units, {container::parse_fatbin(image)}, "image", sm);
      break;
    case ImageKind::Ptx:
      units.push_back(ptx_unit("PTX module", static_cast<const char*>(image), sm));
      break;
    case ImageKind::Cubin:
      return from_elf(image, container::kMaxImageBytes, "the image");
    default:
      fail(CUDA_ERROR_INVALID_IMAGE);
  }
  return units;
}

Units read_file_image(std::string_view bytes, const std::string& name, uint32_t sm) {
  Units units;
  if (container::is_archive(bytes)) {
    for (const container::ArchiveMember& member : container::archive_members(bytes, name)) {
      // Names and symbols of the archive itself are no members. Members without device code are not looked
      // at.
      Units more = read_file_image(member.bytes, name + "(" + member.name + ")", sm);
      units.insert(units.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    return units;
  }
  if (auto linked = read_linked_image(bytes.data(), bytes.size())) return *std::move(linked);
  const std::string terminated(bytes);
  for (const container::FileImage& image : container::find_images(terminated)) {
    if (image.kind == ImageKind::Ptx) {
      units.push_back(ptx_unit(name, image.text, sm));
    } else if (image.kind == ImageKind::Cubin) {
      throw_no_binary(name + " is machine code, which cannot be emulated");
    } else {
      add_units(units, image.units, name, sm);
    }
  }
  return units;
}

}  // namespace klap::emulator::driver
