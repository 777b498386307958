#include "container/first_names.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "container/bytes.h"
#include "container/elf64.h"

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

// Symbols, which follow the names, and code have far more bytes that are no characters. Names have gaps of some
// ten bytes. A part of the bytes is enough to tell.
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

}  // namespace

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
