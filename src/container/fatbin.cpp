// Fatbins: a header of 16 bytes, then entries one after the other.
//
//   fatbin:  u32 magic BA55ED50 | u16 version 1 | u16 header bytes | u64 bytes of all entries
//   entry:    0 u16 kind              2 u16 version 0x101     4 u32 header bytes       8 u64 padded payload
//            16 u32 compressed bytes 20 u32 options record   24 u16 minor, u16 major  28 u32 arch
//            32 u32 name offset      36 u32 name bytes       40 u64 flags             48 u64 (LTO-IR: a key)
//            56 u64 uncompressed bytes
//
// The bytes of all entries may be 0: the linked code of a program that was built for PTX only is empty.
// Behind an entry's fields come the name and the options record, and after the header the padded payload.
//
// The ptxas options are not in the PTX but here. In a PTX entry the field at 20 is the offset (from the
// entry's start) of a record {u32 text offset, u32 text bytes}; the text follows it, padded to 8 bytes and
// not NUL-terminated when it fills them. It is nvcc's command line for ptxas after -arch and -m64. The
// options of -Xptxas come first, then "--compile-only  " for relocatable code, then "-maxrregcount=64 ",
// "--generate-line-info " and so on. Each has a trailing space, and some have their value as a word of its
// own ("--fmad false "). nvcc -O1 without -Xptxas leaves no trace: it is for the host. LTO-IR entries hold
// the front end's options there, and cubins of sm_100 and later (flag 0x1000000) a binary table. So the
// record is read for PTX only.
//
// nvcc stores PTX with a run of newlines in front, where the comments were. Relocatable PTX is of kind 1 like
// any other.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "container/bytes.h"
#include "container/compression.h"
#include "container/fatbin_headers.h"
#include "container/image.h"

namespace klap::container {
namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;
constexpr uint16_t kFatbinVersion = 1, kEntryVersion = 0x101;
constexpr size_t kFatbinHeaderBytes = 16, kEntryHeaderBytes = 64;

std::string kind_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::Ptx:
      return "PTX";
    case EntryKind::Cubin:
      return "cubin";
    case EntryKind::LtoIr:
      return "LTO-IR";
    case EntryKind::RelocatablePtx:
      return "relocatable PTX";
  }
  return fmt::format("kind {}", static_cast<unsigned>(kind));
}

// The text without "--compile-only" and superfluous spaces, so that units can be compared by their options.
std::string tidy_options(std::string_view text) {
  std::istringstream words{std::string(text.substr(0, text.find('\0')))};
  std::string tidy;
  for (std::string word; words >> word;) {
    if (word == "--compile-only" || word == "-c") continue;
    if (!tidy.empty()) tidy += ' ';
    tidy += word;
  }
  return tidy;
}

std::string read_options(Bytes header, const std::string& where) {
  const auto record_offset = load<uint32_t>(header, 20);
  if (record_offset == 0) return {};
  const Bytes record = piece(header, record_offset, 8, where, "options record");
  const Bytes text =
      piece(header, load<uint32_t>(record, 0), load<uint32_t>(record, 4), where, "options text");
  return tidy_options(as_text(text));
}

std::string read_name(Bytes header, const std::string& where) {
  const Bytes name = piece(header, load<uint32_t>(header, 32), load<uint32_t>(header, 36), where, "name");
  return std::string(as_text(name.first(std::min(name.size(), as_text(name).find('\0')))));
}

// How the payload is packed, and how many of its padded bytes are meant.
void read_compression(FatbinEntry& entry, Bytes header, uint64_t payload_size) {
  const auto compressed_size = load<uint32_t>(header, 16);
  if ((entry.flags & kFlagZstd) != 0) {
    entry.compression = Compression::Zstd;
  } else if ((entry.flags & kFlagLz4) != 0) {
    entry.compression = Compression::Lz4;
  }
  const bool compressed = entry.compression != Compression::None;
  if (compressed != (compressed_size != 0)) {
    damaged(entry.describe(),
            fmt::format("compressed size {} does not go with flags {:#x}", compressed_size, entry.flags));
  }
  entry.uncompressed_size = compressed ? load<uint64_t>(header, 56) : payload_size;
}

// Parses the entry at the beginning of `rest` and cuts it off.
FatbinEntry take_entry(Bytes& rest, uint32_t index) {
  EntryOutline outline = read_entry_header(rest, index);
  FatbinEntry entry = std::move(outline.entry);
  const std::string where = entry.describe();
  entry.stored = piece(rest, outline.header_bytes, outline.stored_bytes, where, "payload");
  const Bytes padded = piece(rest, outline.header_bytes, outline.padded_bytes, where, "padded payload");
  rest = rest.subspan(outline.header_bytes + padded.size());
  return entry;
}

}  // namespace

EntryOutline read_entry_header(Bytes from, uint32_t index) {
  EntryOutline outline;
  FatbinEntry& entry = outline.entry;
  entry.index = index;
  const Bytes fixed = piece(from, 0, kEntryHeaderBytes, fmt::format("fatbin entry {}", index), "header");
  entry.kind = static_cast<EntryKind>(load<uint16_t>(fixed, 0));
  entry.arch = load<uint32_t>(fixed, 28);
  entry.flags = load<uint64_t>(fixed, 40);
  const std::string where = entry.describe();
  if (const auto version = load<uint16_t>(fixed, 2); version != kEntryVersion) {
    damaged(where, fmt::format("header version {:#x}, known is {:#x}", version, kEntryVersion));
  }
  outline.header_bytes = load<uint32_t>(fixed, 4);
  if (outline.header_bytes < kEntryHeaderBytes)
    damaged(where, fmt::format("header size {} is too small", outline.header_bytes));

  const Bytes header = piece(from, 0, outline.header_bytes, where, "header");
  const auto payload_size = load<uint64_t>(header, 8);
  read_compression(entry, header, payload_size);
  outline.stored_bytes = entry.compression == Compression::None ? payload_size : load<uint32_t>(header, 16);
  outline.padded_bytes = std::max(payload_size, outline.stored_bytes);
  entry.name = read_name(header, where);
  if (entry.is_ptx()) entry.options = read_options(header, where);
  return outline;
}

FatbinOutline read_fatbin_header(Bytes from) {
  const Bytes header = piece(from, 0, kFatbinHeaderBytes, "fatbin", "header");
  if (const auto magic = load<uint32_t>(header, 0); magic != kFatbinMagic) {
    damaged("fatbin", fmt::format("magic {:08X}, expected {:08X}", magic, kFatbinMagic));
  }
  if (const auto version = load<uint16_t>(header, 4); version != kFatbinVersion) {
    damaged("fatbin", fmt::format("version {}, known is {}", version, kFatbinVersion));
  }
  const FatbinOutline outline{load<uint16_t>(header, 6), load<uint64_t>(header, 8)};
  if (outline.header_bytes < kFatbinHeaderBytes)
    damaged("fatbin", fmt::format("header size {} is too small", outline.header_bytes));
  return outline;
}

char FatbinEntry::arch_suffix() const {
  if ((flags & kFlagArchSpecific) != 0) return 'a';
  return (flags & kFlagFamilySpecific) != 0 ? 'f' : '\0';
}

std::string FatbinEntry::describe() const {
  const char suffix = arch_suffix();
  return fmt::format("fatbin entry {} ({} for sm_{}{})", index, kind_name(kind), arch,
                     std::string_view(&suffix, suffix == '\0' ? 0 : 1));
}

std::string FatbinEntry::payload() const {
  std::string bytes = decompress(compression, stored, uncompressed_size, describe());
  // Only PTX that is not compressed carries the padding, but a text ends at its first NUL in any case.
  if (is_ptx()) bytes.resize(std::min(bytes.size(), bytes.find('\0')));
  return bytes;
}

std::string FatbinEntry::beginning(uint64_t bytes) const {
  if (bytes >= uncompressed_size) return payload();
  return decompress_beginning(compression, stored, uncompressed_size, bytes, describe());
}

Fatbin parse_fatbin(const void* image, uint64_t limit) {
  const Bytes readable(static_cast<const std::byte*>(image), std::min(limit, kMaxImageBytes));
  const FatbinOutline outline = read_fatbin_header(readable);
  Bytes rest = piece(readable, outline.header_bytes, outline.entry_bytes, "fatbin", "entries");
  Fatbin fatbin{.bytes = readable.first(outline.header_bytes + rest.size()), .entries = {}};
  for (uint32_t index = 0; !rest.empty(); ++index) fatbin.entries.push_back(take_entry(rest, index));
  return fatbin;
}

uint64_t fatbin_bytes(Bytes fatbin) {
  if (fatbin.size() < kFatbinHeaderBytes) return kFatbinHeaderBytes;
  return load<uint16_t>(fatbin, 6) + load<uint64_t>(fatbin, 8);
}

}  // namespace klap::container
