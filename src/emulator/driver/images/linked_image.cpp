// The image that cuLinkComplete gives: a file in ELF format for machine 190 (CUDA), as the real linker's,
// with PTX where a GPU would expect instructions.
//
// Each function has a section .text.NAME, and each kernel has .nv.constant0.NAME, of the size of its
// parameters. Programs look for these in linked code. The units themselves are in .klap.ptx, one after
// another: the lengths of name and text, then both. A table of symbols names the variables, and the device
// runtime's functions that launch kernels, if the code calls them, since linked code has these in it.
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "container/elf64.h"
#include "emulator/driver/images/images.h"
#include "support/error.h"

namespace klap::emulator::driver {
namespace {

constexpr std::string_view kUnits = ".klap.ptx";
constexpr std::string_view kCode = "not machine code";
constexpr uint64_t kParameterBase = 0x210;  // where a kernel's parameters begin in its bank, up to sm_90

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string serialised(const Units& units) {
  std::string out;
  for (const Machine::UnitText& unit : units) {
    append(out, uint64_t{unit.name.size()});
    append(out, uint64_t{unit.ptx.size()});
    out += unit.name + unit.ptx;
  }
  return out;
}

Units parsed(container::Bytes bytes) {
  constexpr std::string_view kWhere = "linked image";
  Units units;
  for (uint64_t at = 0; at < bytes.size();) {
    const container::Bytes lengths = container::piece(bytes, at, 16, kWhere, "a unit's lengths");
    const auto name = container::load<uint64_t>(lengths, 0), text = container::load<uint64_t>(lengths, 8);
    at += 16;
    const container::Bytes name_bytes = container::piece(bytes, at, name, kWhere, "a unit's name");
    const container::Bytes text_bytes = container::piece(bytes, at + name, text, kWhere, "a unit's text");
    units.push_back(
        {std::string(container::as_text(name_bytes)), std::string(container::as_text(text_bytes))});
    at += name + text;
  }
  return units;
}

// Contents first, then the table of sections: its end is the end of the file.
class ElfWriter {
 public:
  ElfWriter() {
    sections_.emplace_back();
    out_.resize(sizeof(Elf64_Ehdr));
  }

  // The number of the section.
  uint32_t add(std::string_view name, uint32_t type, uint64_t flags, std::string_view content,
               uint32_t link = 0) {
    out_.resize((out_.size() + 15) / 16 * 16);
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(names_.size());
    section.sh_type = type;
    section.sh_flags = flags;
    section.sh_offset = out_.size();
    section.sh_size = content.size();
    section.sh_addralign = 16;
    section.sh_link = link;
    names_ += std::string(name) + '\0';
    out_ += content;
    sections_.push_back(section);
    return static_cast<uint32_t>(sections_.size() - 1);
  }

  std::string finish(uint32_t compute_capability) {
    const std::string_view table = ".shstrtab";
    const std::string all_names = names_ + std::string(table) + '\0';
    add(table, SHT_STRTAB, 0, all_names);
    out_.resize((out_.size() + 15) / 16 * 16);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = container::kMachineCuda;
    header.e_version = EV_CURRENT;
    header.e_flags = compute_capability;
    header.e_ehsize = sizeof header;
    header.e_shoff = out_.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    header.e_shstrndx = static_cast<uint16_t>(sections_.size() - 1);
    std::memcpy(out_.data(), &header, sizeof header);
    for (const Elf64_Shdr& section : sections_) append(out_, section);
    return std::move(out_);
  }

 private:
  std::string out_, names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> sections_;
};

struct NamedSymbol {
  std::string name;
  unsigned char type = STT_FUNC;
};

// A table of these global symbols, each of which counts as defined.
void add_symbols(ElfWriter& writer, const std::vector<NamedSymbol>& named) {
  std::string strings(1, '\0'), table(sizeof(Elf64_Sym), '\0');
  for (const auto& [name, type] : named) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(strings.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
    symbol.st_shndx = SHN_ABS;
    append(table, symbol);
    strings += name + '\0';
  }
  const uint32_t names = writer.add(".strtab", SHT_STRTAB, 0, strings);
  writer.add(".symtab", SHT_SYMTAB, 0, table, names);
}

// Where the table of sections of an ELF file ends: for images of this file's making, their length.
uint64_t length_of(const void* image, uint64_t limit) {
  Elf64_Ehdr header;
  if (limit < sizeof header) return 0;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != container::kMachineCuda) {
    return 0;
  }
  const uint64_t table = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  return header.e_shoff <= limit && table <= limit - header.e_shoff ? header.e_shoff + table : 0;
}

}  // namespace

std::string make_linked_image(const Units& units, const Image& image, uint32_t compute_capability) {
  ElfWriter writer;
  writer.add(kUnits, SHT_PROGBITS, 0, serialised(units));
  std::vector<NamedSymbol> symbols;
  for (const Variable& variable : image.variables) symbols.push_back({variable.name, STT_OBJECT});
  for (const auto& function : image.functions) {
    if (function->name.find("LaunchDevice") != std::string::npos) symbols.push_back({function->name});
    if (function->builtin >= 0) continue;
    writer.add(".text." + function->name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kCode);
    if (!function->is_kernel) continue;
    const std::string bank(kParameterBase + function->parameter_bytes, '\0');
    writer.add(".nv.constant0." + function->name, SHT_PROGBITS, SHF_ALLOC, bank);
  }
  add_symbols(writer, symbols);
  return writer.finish(compute_capability);
}

std::optional<Units> read_linked_image(const void* image, uint64_t limit) {
  const uint64_t length = length_of(image, limit);
  if (length == 0) return std::nullopt;
  try {
    const container::Elf64 elf({static_cast<const std::byte*>(image), length}, "linked image");
    const container::ElfSection* const section = elf.find(kUnits);
    if (section == nullptr) return std::nullopt;
    return parsed(elf.content(*section));
  } catch (const Error&) {
    return std::nullopt;  // another ELF file, whose contents stand behind its table of sections
  }
}

}  // namespace klap::emulator::driver
