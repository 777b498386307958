#include "support/checked_file.h"

#include <fmt/format.h>

#include <array>

#include "support/error.h"
#include "support/hash.h"

namespace klap {
namespace {

constexpr size_t kChecksumBytes = 16;

[[noreturn]] void damaged(const std::string& how) { throw Error(ErrorCode::Io, how); }

// Everything between the magic and the checksum, both verified.
std::string_view verified_body(std::string_view bytes, std::string_view magic, std::string_view what) {
  if (!bytes.starts_with(magic)) damaged(fmt::format("is no {}", what));
  if (bytes.size() < magic.size() + kChecksumBytes) damaged("is too short");
  const std::string_view checked = bytes.substr(0, bytes.size() - kChecksumBytes);
  std::array<uint64_t, 2> checksum{};
  std::memcpy(checksum.data(), bytes.data() + checked.size(), kChecksumBytes);
  if (checksum != content_hash(checked)) damaged("has a wrong checksum");
  return checked.substr(magic.size());
}

}  // namespace

CheckedWriter::CheckedWriter(std::string_view magic, uint32_t format) : bytes_(magic) { put(format); }

void CheckedWriter::put_text(std::string_view text) {
  put(uint64_t{text.size()});
  bytes_ += text;
}

std::string CheckedWriter::finish() const {
  CheckedWriter whole = *this;
  whole.put(content_hash(bytes_));
  return std::move(whole.bytes_);
}

CheckedReader::CheckedReader(std::string_view bytes, std::string_view magic, uint32_t format,
                             std::string_view what)
    : rest_(verified_body(bytes, magic, what)) {
  if (get<uint32_t>() != format) damaged("has another format");
}

void CheckedReader::finish() const {
  if (!rest_.empty()) damaged("has more in it than it should");
}

std::string_view CheckedReader::take(uint64_t bytes) {
  if (bytes > rest_.size()) damaged("ends too early");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

}  // namespace klap
