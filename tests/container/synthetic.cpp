// The layout that is written here is described at the top of src/container/fatbin.cpp.
#include "synthetic.h"

#include <elf.h>
#include <lz4.h>
#include <sys/resource.h>
#include <zstd.h>

#include <array>
#include <cstring>

namespace klap::container {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void pad(std::string& bytes) { bytes.resize((bytes.size() + 7) / 8 * 8, '\0'); }

}  // namespace

SyntheticEntry raw_entry(std::string payload) {
  SyntheticEntry entry;
  entry.payload = std::move(payload);
  return entry;
}

SyntheticEntry lz4_entry(const std::string& payload) {
  std::string packed(static_cast<size_t>(LZ4_compressBound(static_cast<int>(payload.size()))), '\0');
  packed.resize(static_cast<size_t>(LZ4_compress_default(
      payload.data(), packed.data(), static_cast<int>(payload.size()), static_cast<int>(packed.size()))));
  SyntheticEntry entry = raw_entry(packed);
  entry.flags = 0x2011;
  entry.compressed_size = static_cast<uint32_t>(packed.size());
  entry.uncompressed_size = payload.size();
  return entry;
}

SyntheticEntry zstd_entry(const std::string& payload, bool state_size) {
  std::string packed(ZSTD_compressBound(payload.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, state_size ? 1 : 0);
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), payload.data(), payload.size()));
  ZSTD_freeCCtx(context);
  SyntheticEntry entry = raw_entry(packed);
  entry.flags = 0x8011;
  entry.compressed_size = static_cast<uint32_t>(packed.size());
  entry.uncompressed_size = payload.size();
  return entry;
}

std::string to_bytes(const SyntheticEntry& entry) {
  std::string extra = entry.name;
  if (!extra.empty()) extra += '\0';
  pad(extra);
  const auto record = static_cast<uint32_t>(64 + extra.size());
  if (!entry.options.empty()) {
    append<uint32_t>(extra, record + 8);
    append(extra, static_cast<uint32_t>(entry.options.size()));
    extra += entry.options;
    pad(extra);
  }
  std::string payload = entry.payload;
  pad(payload);

  std::string bytes;
  append(bytes, entry.kind);
  append(bytes, entry.version);
  append(bytes, static_cast<uint32_t>(64 + extra.size()));
  append<uint64_t>(bytes, payload.size());
  append(bytes, entry.compressed_size);
  append<uint32_t>(bytes, entry.options.empty() ? 0 : record);
  append<uint32_t>(bytes, 0x00090000);  // PTX ISA 9.0
  append(bytes, entry.arch);
  append<uint32_t>(bytes, entry.name.empty() ? 0 : 64);
  append(bytes, static_cast<uint32_t>(entry.name.size()));
  append(bytes, entry.flags);
  append<uint64_t>(bytes, 0);
  append(bytes, entry.uncompressed_size);
  return bytes + extra + payload;
}

std::string fatbin_of(const std::vector<SyntheticEntry>& entries) {
  std::string body;
  for (const SyntheticEntry& entry : entries) body += to_bytes(entry);
  std::string bytes;
  append<uint32_t>(bytes, 0xBA55ED50);
  append<uint16_t>(bytes, 1);
  append<uint16_t>(bytes, 16);
  append<uint64_t>(bytes, body.size());
  return bytes + body;
}

Fatbin parse(std::string_view bytes) { return parse_fatbin(bytes.data(), bytes.size()); }

std::string fixture(const std::string& name) { return std::string(KLAP_FIXTURES) + "/" + name; }

long peak_memory_kb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::string minimal_machine_code(const std::string& content) {
  const auto text = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string names(1, '\0'), strings = names + "cudaLaunchDeviceV2" + names;
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = SHN_ABS;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header + sizeof symbol + strings.size() + content.size();
  // No section, the symbols, their names, which are those of the sections as well.
  std::array<Elf64_Shdr, 3> sections{};
  sections[1].sh_type = SHT_SYMTAB;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = sizeof symbol;
  sections[1].sh_link = 2;
  sections[2].sh_type = SHT_STRTAB;
  sections[2].sh_offset = sizeof header + sizeof symbol;
  sections[2].sh_size = strings.size();
  header.e_shnum = sections.size();
  header.e_shstrndx = 2;
  return text(header) + text(symbol) + strings + content + text(sections);
}

}  // namespace klap::container
