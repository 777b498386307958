// Device code in files, above all in host programs.
//
// nvcc gives each translation unit a wrapper {u32 magic, u32 version, fatbin pointer, second pointer} of 24
// bytes in the section .nvFatBinSegment, and the device link one more. A linked program has these wrappers:
//
//   version 1, fatbin in .nv_fatbin      a unit without relocatable device code: registered, loaded as it is
//   version 1, fatbin in __nv_relfatbin  a unit with relocatable code, or libcudadevrt: never loaded alone
//   version 2, fatbin in .nv_fatbin      the outcome of the device link: the driver gets this one
//
// The second pointer of a version-2 wrapper, the array of the units' fatbins, is useless in a file: the array
// lies in .bss and is filled when the program starts, by __cudaRegisterLinkedBinary in the toolkit's
// crt/link.stub. So the units are the version-1 wrappers that point into __nv_relfatbin. nvcc runs the device
// link for every program: one without relocatable code has a version-2 wrapper with no unit, which nothing
// registers.
//
// In position-independent executables and shared objects the fatbin pointers are filled by relative
// relocations (R_X86_64_RELATIVE in .rela.dyn). Where the linker packed those (DT_RELR), and in executables
// at fixed addresses, the word in the file is the address already. So relocations that are not listed need no
// decoding.
//
// Object files come before all that: their pointers are relocations against sections. But the fatbins can be
// found by walking the two sections, in which they follow one another on 8-byte boundaries.
#include "container/host_elf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "container/bytes.h"
#include "container/elf64.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::container {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr size_t kWrapperBytes = 24;
constexpr const char* kWrapperSection = ".nvFatBinSegment";
constexpr const char* kModuleIdSection = "__nv_module_id";
constexpr const char* kUnitSection = "__nv_relfatbin";
constexpr const char* kFatbinSection = ".nv_fatbin";

enum class Role { PlainUnit, RelocatableUnit, DeviceLink };

struct HostWrapper {
  Role role{};
  std::string where;
  uint64_t fatbin = 0;      // address; 0 where the device link left no code
  size_t units_before = 0;  // relocatable units that precede it
};

// Errors of the fatbin reader know the entry but not the place in the file.
Fatbin parse_at(Bytes bytes, const std::string& where) {
  try {
    return parse_fatbin(bytes.data(), bytes.size());
  } catch (const Error& e) {
    throw Error(e.code(), where + ": " + e.reason());
  }
}

uint32_t relative_relocation(const Elf64& elf) {
  switch (elf.machine()) {
    case kMachineX86_64:
      return 8;
    case kMachineAArch64:
      return 1027;
    default:
      throw Error(ErrorCode::Unsupported,
                  fmt::format("{}: machine {} is neither x86-64 nor AArch64", elf.where(), elf.machine()));
  }
}

// Address of a pointer to the address that it will hold, for the relocations inside `section`.
std::map<uint64_t, uint64_t> relocated_pointers(const Elf64& elf, const ElfSection& section) {
  constexpr size_t kRelaBytes = 24;
  const uint32_t relative = relative_relocation(elf);
  std::map<uint64_t, uint64_t> pointers;
  for (const ElfSection& table : elf.sections()) {
    if (table.type != kSectionRela || table.address == 0) continue;  // not loaded: left over by --emit-relocs
    const Bytes rows = elf.content(table);
    for (size_t at = 0; at + kRelaBytes <= rows.size(); at += kRelaBytes) {
      const auto place = load<uint64_t>(rows, at);
      if (place < section.address || place - section.address >= section.size) continue;
      const auto type = load<uint32_t>(rows, at + 8);
      if (type != relative) {
        damaged(elf.where(), fmt::format("wrapper pointer at {:#x} has relocation type {}, expected {}",
                                         place, type, relative));
      }
      pointers[place] = load<uint64_t>(rows, at + 16);
    }
  }
  return pointers;
}

HostWrapper read_wrapper(Bytes bytes, const std::string& where, uint64_t fatbin, const ElfSection* units) {
  HostWrapper wrapper{.role = Role::PlainUnit, .where = where, .fatbin = fatbin, .units_before = 0};
  if (const auto magic = load<uint32_t>(bytes, 0); magic != kWrapperMagic) {
    damaged(where, fmt::format("magic {:08X}, expected {:08X}", magic, kWrapperMagic));
  }
  const auto version = load<uint32_t>(bytes, 4);
  if (version == 2) {
    wrapper.role = Role::DeviceLink;
  } else if (version != 1) {
    damaged(where, fmt::format("version {}, known are 1 and 2", version));
  } else if (units != nullptr && fatbin >= units->address && fatbin - units->address < units->size) {
    wrapper.role = Role::RelocatableUnit;
  }
  return wrapper;
}

std::vector<HostWrapper> read_wrappers(const Elf64& elf, const ElfSection& section) {
  const ElfSection* units = elf.find(kUnitSection);
  const auto pointers = relocated_pointers(elf, section);
  const Bytes bytes = elf.content(section);
  std::vector<HostWrapper> wrappers;
  size_t unit_count = 0;
  for (size_t at = 0; at < bytes.size(); at += kWrapperBytes) {
    const uint64_t address = section.address + at;
    const std::string where = fmt::format("wrapper {} at {:#x}", wrappers.size(), address);
    const Bytes row = piece(bytes, at, kWrapperBytes, elf.where(), where);
    const auto relocated = pointers.find(address + 8);
    const uint64_t fatbin = relocated != pointers.end() ? relocated->second : load<uint64_t>(row, 8);
    wrappers.push_back(read_wrapper(row, where, fatbin, units));
    wrappers.back().units_before = unit_count;
    if (wrappers.back().role == Role::RelocatableUnit) ++unit_count;
  }
  return wrappers;
}

// The strings of the section __nv_module_id: each unit's object contributes "_ID", each device link "def _ID"
// for every unit it took in.
struct ModuleIds {
  std::vector<std::string_view> units;
  std::map<size_t, std::vector<std::string_view>> linked;  // by the number of units that stand before
};

ModuleIds read_module_ids(const Elf64& elf) {
  constexpr std::string_view kWithoutRelocatableCode = "__NV_MODULE_ID";
  ModuleIds ids;
  const ElfSection* section = elf.find(kModuleIdSection);
  if (section == nullptr) return ids;
  std::string_view rest = as_text(elf.content(*section));
  while (!rest.empty()) {
    const std::string_view id = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), id.size() + 1));
    if (id.starts_with("def _")) {
      ids.linked[ids.units.size()].push_back(id.substr(4));
    } else if (id.starts_with("_") && id != kWithoutRelocatableCode) {
      ids.units.push_back(id);
    }
  }
  return ids;
}

// The device link that took in each of the units. Nothing that survives stripping says so directly, but the
// order does. The linker keeps objects in one order in all sections. So a run of "def" strings in
// __nv_module_id comes from the device link whose wrapper stands after as many units. Units without such a
// string go to the first link. So do units of two device links with no unit between them.
std::vector<const HostWrapper*> owners(const ModuleIds& ids, size_t unit_count,
                                       const std::vector<const HostWrapper*>& links) {
  std::vector<const HostWrapper*> owner(unit_count, links.front());
  if (ids.units.size() != unit_count) return owner;
  for (const auto& [units_before, linked] : ids.linked) {
    const auto same_place = [place = units_before](const HostWrapper* link) {
      return link->units_before == place;
    };
    const auto link = std::find_if(links.begin(), links.end(), same_place);
    if (link == links.end()) continue;
    for (size_t i = 0; i < unit_count; ++i) {
      if (std::find(linked.begin(), linked.end(), ids.units[i]) != linked.end()) owner[i] = *link;
    }
  }
  return owner;
}

Fatbin fatbin_of(const Elf64& elf, const HostWrapper& wrapper) {
  const std::optional<Bytes> bytes = elf.at_address(wrapper.fatbin);
  if (!bytes) {
    damaged(wrapper.where, fmt::format("fatbin pointer {:#x} leads outside the file", wrapper.fatbin));
  }
  return parse_at(*bytes, wrapper.where);
}

std::vector<FileImage> images_of_wrappers(const Elf64& elf, const std::vector<HostWrapper>& wrappers) {
  std::vector<const HostWrapper*> units;
  std::vector<const HostWrapper*> links;
  for (const HostWrapper& wrapper : wrappers) {
    if (wrapper.role == Role::RelocatableUnit) units.push_back(&wrapper);
    if (wrapper.role == Role::DeviceLink) links.push_back(&wrapper);
  }
  std::vector<const HostWrapper*> owner;
  if (!links.empty()) owner = owners(read_module_ids(elf), units.size(), links);

  std::vector<FileImage> images;
  for (const HostWrapper& wrapper : wrappers) {
    FileImage image{.kind = ImageKind::WrapperV1, .where = wrapper.where, .units = {}, .text = {}};
    if (wrapper.role == Role::PlainUnit) image.units.push_back(fatbin_of(elf, wrapper));
    if (wrapper.role == Role::DeviceLink) {
      image.kind = ImageKind::WrapperV2;
      for (size_t i = 0; i < units.size(); ++i) {
        if (owner[i] == &wrapper) image.units.push_back(fatbin_of(elf, *units[i]));
      }
    }
    if (!image.units.empty()) images.push_back(std::move(image));
  }
  return images;
}

void append_images_of_section(const Elf64& elf, const ElfSection& section, std::vector<FileImage>& images) {
  constexpr size_t kAlignment = 8;
  const Bytes bytes = elf.content(section);
  for (size_t at = 0; at + kAlignment <= bytes.size();) {
    if (load<uint64_t>(bytes, at) == 0) {  // padding
      at += kAlignment;
      continue;
    }
    FileImage image{.kind = ImageKind::Fatbin,
                    .where = fmt::format("section {} at {:#x}", elf.name(section), section.offset + at),
                    .units = {},
                    .text = {}};
    image.units.push_back(parse_at(bytes.subspan(at), image.where));
    const size_t size = image.units.front().bytes.size();
    at += (size + kAlignment - 1) / kAlignment * kAlignment;
    images.push_back(std::move(image));
  }
}

std::vector<FileImage> images_of_elf(std::string_view bytes) {
  const Elf64 elf(as_bytes(bytes), "ELF file");
  if (elf.machine() == kMachineCuda) {
    return {{.kind = ImageKind::Cubin, .where = "whole file", .units = {}, .text = std::string(bytes)}};
  }
  const ElfSection* wrappers = elf.find(kWrapperSection);
  if (wrappers != nullptr && elf.type() != kElfRelocatable) {
    return images_of_wrappers(elf, read_wrappers(elf, *wrappers));
  }
  std::vector<FileImage> images;
  for (const ElfSection& section : elf.sections()) {
    const std::string_view name = elf.name(section);
    if (name == kFatbinSection || name == kUnitSection) append_images_of_section(elf, section, images);
  }
  return images;
}

// The bytes that a file has at least, by the header at its beginning; 0 where there is none.
uint64_t least_bytes(const std::string& bytes) {
  constexpr size_t kElfHeader = 64;
  if (is_elf(as_bytes(bytes)))
    return bytes.size() < kElfHeader ? kElfHeader : machine_code_bytes(bytes.data());
  return classify(bytes.c_str()) == ImageKind::Fatbin ? fatbin_bytes(as_bytes(bytes)) : 0;
}

// Makes an error of a damaged file say so if the file ends before its headers do.
Error name_truncation(const Error& error, const std::string& bytes) {
  if (error.code() != ErrorCode::Container || least_bytes(bytes) <= bytes.size()) return error;
  return Error(error.code(),
               fmt::format("the file is truncated, after {} bytes: {}", bytes.size(), error.reason()))
      .fix("copy or build it again");
}

// PTX may end with zero bytes. The driver reads none of what follows one.
std::string_view text_of_ptx(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  if (bytes.find_first_not_of('\0', end) == std::string_view::npos) return bytes.substr(0, end);
  const auto line = 1 + std::ranges::count(bytes.substr(0, end), '\n');
  throw Error(ErrorCode::Container, fmt::format("a zero byte stands in line {}, so this is no text", line));
}

}  // namespace

std::vector<FileImage> find_images(std::string_view bytes) {
  if (is_elf(as_bytes(bytes))) return images_of_elf(bytes);
  if (bytes.empty()) throw Error(ErrorCode::Container, "the file is empty");
  // classify() relies on the NUL that a copy has.
  switch (bytes.size() < 8 ? ImageKind::Unknown : classify(std::string(bytes).c_str())) {
    case ImageKind::Ptx: {
      FileImage image{.kind = ImageKind::Ptx, .where = "whole file", .units = {}, .text = {}};
      image.text = text_of_ptx(bytes);
      return {std::move(image)};
    }
    case ImageKind::Fatbin: {
      FileImage image{.kind = ImageKind::Fatbin, .where = "whole file", .units = {}, .text = {}};
      image.units.push_back(parse_fatbin(bytes.data(), bytes.size()));
      return {std::move(image)};
    }
    case ImageKind::Archive:
      throw Error(ErrorCode::Unsupported, "is an archive of object files: take it apart with ar x");
    default:
      throw Error(ErrorCode::Container, "is neither PTX, fatbin, cubin nor a host ELF file")
          .fix("name the program, or what nvcc makes of its kernels");
  }
}

File open_file(const std::filesystem::path& path) {
  File file{.path = path, .bytes = std::make_shared<const std::string>(read_file(path)), .images = {}};
  try {
    file.images = find_images(*file.bytes);
  } catch (const Error& error) {
    throw name_truncation(error, *file.bytes).at(path.string());
  }
  return file;
}

}  // namespace klap::container
