// ELF64 reading. Offsets are those of the System V ABI; CUDA's toolkits write tables in the usual places,
// except that cubins put the tables of names and symbols before the code.
#include "container/elf64.h"

#include <fmt/format.h>

#include "support/error.h"

namespace klap::container {
namespace {

constexpr size_t kHeaderBytes = 64, kSectionBytes = 64, kSegmentBytes = 56, kSymbolBytes = 24;
constexpr uint32_t kSegmentLoad = 1;
// Stands in e_shnum and e_shstrndx when the real number needs more than 16 bits and is kept in section 0.
constexpr uint16_t kIndexInSectionZero = 0xFFFF;

}  // namespace

bool is_elf(Bytes bytes) {
  return as_text(bytes).starts_with(
      "\x7f"
      "ELF");
}

Elf64::Elf64(Bytes bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {
  const Bytes header = piece(bytes, 0, kHeaderBytes, where_, "ELF header");
  if (!is_elf(bytes)) damaged(where_, "not an ELF file");
  constexpr uint8_t kClass64 = 2, kLittleEndian = 1;
  if (load<uint8_t>(header, 4) != kClass64 || load<uint8_t>(header, 5) != kLittleEndian) {
    throw Error(ErrorCode::Unsupported, where_ + ": only 64-bit little-endian ELF files are read");
  }
  type_ = load<uint16_t>(header, 16);
  machine_ = load<uint16_t>(header, 18);
  read_sections();
  read_segments();
}

ElfSection Elf64::section_header(Bytes table, size_t index) const {
  const Bytes row = table.subspan(index * kSectionBytes, kSectionBytes);
  return {.name = load<uint32_t>(row, 0),
          .type = load<uint32_t>(row, 4),
          .address = load<uint64_t>(row, 16),
          .offset = load<uint64_t>(row, 24),
          .size = load<uint64_t>(row, 32),
          .entry_size = load<uint64_t>(row, 56),
          .link = load<uint32_t>(row, 40)};
}

void Elf64::read_sections() {
  const auto offset = load<uint64_t>(bytes_, 40);
  if (offset == 0) return;
  if (load<uint16_t>(bytes_, 58) != kSectionBytes) damaged(where_, "ELF section headers are not of 64 bytes");
  const ElfSection zero =
      section_header(piece(bytes_, offset, kSectionBytes, where_, "ELF section table"), 0);
  uint64_t count = load<uint16_t>(bytes_, 60);
  if (count == 0) count = zero.size;
  uint32_t names = load<uint16_t>(bytes_, 62);
  if (names == kIndexInSectionZero) names = zero.link;
  if (count > bytes_.size() / kSectionBytes)
    damaged(where_, fmt::format("ELF section count {} is too high", count));

  const Bytes table = piece(bytes_, offset, count * kSectionBytes, where_, "ELF section table");
  sections_.reserve(count);
  for (size_t i = 0; i < count; ++i) sections_.push_back(section_header(table, i));
  if (names >= count)
    damaged(where_, fmt::format("ELF section {} should hold the names, of {}", names, count));
  section_names_ = content(sections_[names]);
}

void Elf64::read_segments() {
  const auto offset = load<uint64_t>(bytes_, 32);
  const auto count = load<uint16_t>(bytes_, 56);
  if (count == 0) return;
  if (load<uint16_t>(bytes_, 54) != kSegmentBytes) damaged(where_, "ELF program headers are not of 56 bytes");
  const Bytes table = piece(bytes_, offset, count * kSegmentBytes, where_, "ELF program header table");
  for (size_t i = 0; i < count; ++i) {
    const Bytes row = table.subspan(i * kSegmentBytes, kSegmentBytes);
    if (load<uint32_t>(row, 0) != kSegmentLoad) continue;
    segments_.push_back({.offset = load<uint64_t>(row, 8),
                         .address = load<uint64_t>(row, 16),
                         .file_size = load<uint64_t>(row, 32)});
  }
}

std::string_view Elf64::string_at(Bytes strings, uint32_t offset, std::string_view field) const {
  if (offset >= strings.size())
    damaged(where_, fmt::format("{}: name at {:#x} lies outside its table", field, offset));
  const std::string_view rest = as_text(strings).substr(offset);
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos)
    damaged(where_, fmt::format("{}: name at {:#x} has no end", field, offset));
  return rest.substr(0, end);
}

std::string_view Elf64::name(const ElfSection& section) const {
  return string_at(section_names_, section.name, "ELF section");
}

Bytes Elf64::content(const ElfSection& section) const {
  if (section.type == kSectionNobits) return {};
  return piece(bytes_, section.offset, section.size, where_, "ELF section content");
}

const ElfSection* Elf64::find(std::string_view section_name) const {
  for (const ElfSection& section : sections_) {
    if (name(section) == section_name) return &section;
  }
  return nullptr;
}

std::optional<Bytes> Elf64::at_address(uint64_t address) const {
  for (const ElfSegment& segment : segments_) {
    if (address < segment.address || address - segment.address >= segment.file_size) continue;
    const Bytes loaded = piece(bytes_, segment.offset, segment.file_size, where_, "ELF loadable segment");
    return loaded.subspan(address - segment.address);
  }
  return std::nullopt;
}

bool Elf64::any_symbol(const std::function<bool(const ElfSymbol&)>& visit) const {
  for (const ElfSection& section : sections_) {
    if (section.type != kSectionSymtab) continue;
    const Bytes table = content(section);
    if (section.link >= sections_.size()) damaged(where_, "ELF symbol table names no string table");
    const Bytes strings = content(sections_[section.link]);
    for (size_t at = 0; at + kSymbolBytes <= table.size(); at += kSymbolBytes) {
      const auto info = load<uint8_t>(table, at + 4);
      const ElfSymbol symbol{.name = string_at(strings, load<uint32_t>(table, at), "ELF symbol"),
                             .is_function = (info & 0xF) == kSymbolFunction,
                             .is_local = (info >> 4) == 0,
                             .is_defined = load<uint16_t>(table, at + 6) != 0};
      if (visit(symbol)) return true;
    }
  }
  return false;
}

}  // namespace klap::container
