#include "container/first_names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "container/bytes.h"
#include "container/elf64.h"
#include "container/fatbin_headers.h"

namespace klap::container {
namespace {

constexpr size_t kElfHeaderBytes = 64;
constexpr size_t kPieceBytes = 4096;
constexpr uint64_t kFirstBytes = 16 * kPieceBytes;

// The tables of names come first, and the names of these tables are the first of them.
bool begins_with_names(std::string_view cubin) {
  using namespace std::string_view_literals;
  return is_elf(as_bytes(cubin)) && cubin.substr(std::min(cubin.size(), kElfHeaderBytes))
                                        .starts_with("\0.shstrtab\0.strtab\0.symtab\0"sv);
}

// Symbols, which follow the names, and code have far more bytes that are no characters. Names have gaps of
// some ten bytes. A part of the bytes is enough to tell.
bool is_text(std::string_view piece) {
  constexpr size_t kStride = 13;
  size_t characters = 0, looked_at = 0;
  for (size_t at = 0; at < piece.size(); at += kStride, ++looked_at)
    characters += static_cast<size_t>(piece[at] > ' ' && piece[at] <= '~');
  return characters * 2 >= looked_at;
}

bool reaches_behind_names(std::string_view beginning) {
  for (size_t at = kElfHeaderBytes; at + kPieceBytes <= beginning.size(); at += kPieceBytes)
    if (!is_text(beginning.substr(at, kPieceBytes))) return true;
  return false;
}

// The C library's search takes a tenth of the time that the one of std::string takes.
bool contains(std::string_view text, std::string_view word) {
  return memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

// The most that is read of one payload. Longer names are rare.
constexpr uint64_t kMostRead = 1 << 18;

bool cubin_file_may_name(const PartlyRead& file, std::span<const std::string_view> words) {
  const std::string beginning = file.read(0, kMostRead);
  FatbinEntry cubin;
  cubin.kind = EntryKind::Cubin;
  cubin.uncompressed_size = file.bytes;
  cubin.stored = as_bytes(beginning);
  return may_name(cubin, words);
}

bool fatbin_file_may_name(const PartlyRead& file, uint32_t sm, std::span<const std::string_view> words) {
  constexpr uint64_t kMostOfHeader = 4096;
  constexpr uint32_t kMostEntries = 1024;
  const FatbinOutline outline = read_fatbin_header(as_bytes(file.read(0, kMostOfHeader)));
  Fatbin fatbin;
  std::vector<std::pair<uint64_t, uint64_t>> payloads;  // where, and how many bytes
  if (outline.entry_bytes > file.bytes) return true;
  const uint64_t end = outline.header_bytes + outline.entry_bytes;
  for (uint64_t at = outline.header_bytes; at < end;) {
    const auto index = static_cast<uint32_t>(payloads.size());
    if (index == kMostEntries) return true;
    EntryOutline entry = read_entry_header(as_bytes(file.read(at, kMostOfHeader)), index);
    payloads.emplace_back(at + entry.header_bytes, entry.stored_bytes);
    if (entry.padded_bytes > file.bytes) return true;
    at += entry.header_bytes + entry.padded_bytes;
    fatbin.entries.push_back(std::move(entry.entry));
  }
  const FatbinEntry* const best = best_cubin(fatbin, sm);
  if (best == nullptr) return true;
  const auto& [at, bytes] = payloads[best->index];
  const std::string stored = file.read(at, std::min(bytes, kMostRead));
  FatbinEntry cubin = *best;
  cubin.stored = as_bytes(stored);
  return may_name(cubin, words);
}

}  // namespace

std::span<const std::string_view> launch_words() {
  // Each function of any toolkit has one of them in its name.
  static constexpr std::array<std::string_view, 2> kWords = {"LaunchDevice", "GetParameterBuffer"};
  return kWords;
}

bool file_may_name(const PartlyRead& file, uint32_t sm, std::span<const std::string_view> words) {
  constexpr uint64_t kMostOfKind = 64;
  switch (classify(file.read(0, kMostOfKind).c_str())) {
    case ImageKind::Cubin:
      return cubin_file_may_name(file, words);
    case ImageKind::Fatbin:
      return fatbin_file_may_name(file, sm, words);
    default:
      return true;
  }
}

bool may_name(const FatbinEntry& cubin, std::span<const std::string_view> words) {
  constexpr uint64_t kGrowth = 4;
  for (uint64_t bytes = kFirstBytes;; bytes *= kGrowth) {
    const std::string beginning = cubin.beginning(bytes);
    const bool is_named =
        std::ranges::any_of(words, [&](std::string_view word) { return contains(beginning, word); });
    if (is_named || !begins_with_names(beginning)) return true;
    if (beginning.size() == cubin.uncompressed_size || reaches_behind_names(beginning)) return false;
    if (beginning.size() < bytes) return true;
  }
}

}  // namespace klap::container
