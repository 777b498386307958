#include "line_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <span>

#include "container/elf64.h"

namespace klap::test {
namespace {

constexpr uint8_t kEndSequence = 1, kSetAddress = 2, kInlinedCall = 0x90, kFunctionName = 0x91;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] bool done() const { return at_ >= bytes_.size(); }
  void move_to(size_t at) { at_ = at; }

  template <typename Number>
  Number number() {
    Number value{};
    if (at_ + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  uint64_t unsigned_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = number<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80 || shift > 56) return value;
    }
  }
  int64_t signed_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = number<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte >= 0x80 && shift < 63) continue;
      if ((byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  std::string text() {
    const std::string value(bytes_.data() + std::min(at_, bytes_.size()));
    at_ += value.size() + 1;
    return value;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

std::string_view content(const container::Elf64& elf, std::string_view section) {
  const container::ElfSection* found = elf.find(section);
  if (found == nullptr) return {};
  const auto bytes = elf.content(*found);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Which function's address a place of .debug_line is to hold: from its relocations.
std::map<uint64_t, std::string> functions_by_place(const container::Elf64& elf) {
  std::map<uint64_t, std::string> out;
  const std::string_view relocations = content(elf, ".rela.debug_line");
  const container::ElfSection* symbols = elf.find(".symtab");
  if (symbols == nullptr) return out;
  const auto table = elf.content(*symbols);
  for (size_t at = 0; at + 24 <= relocations.size(); at += 24) {
    Reader entry(relocations.substr(at, 24));
    const auto place = entry.number<uint64_t>();
    const size_t symbol = entry.number<uint64_t>() >> 32;
    Reader record({reinterpret_cast<const char*>(table.data()), table.size()});
    record.move_to(symbol * 24 + 6);
    const auto section = record.number<uint16_t>();
    if (section < elf.sections().size()) out[place] = elf.name(elf.sections()[section]);
  }
  return out;
}

// One line program with its header.
class LineProgram {
 public:
  LineProgram(Reader& in, std::map<uint64_t, std::string>& functions, std::string_view names,
              std::vector<LineRow>& rows)
      : in_(in), functions_(functions), names_(names), rows_(rows) {}

  void run() {
    const auto length = in_.number<uint32_t>();
    const size_t end = in_.at() + length;
    header();
    reset();
    while (in_.at() < end && known_) opcode();
    in_.move_to(end);
  }

 private:
  void header() {
    EXPECT_EQ(2, in_.number<uint16_t>()) << "version of the line table";
    const auto header_length = in_.number<uint32_t>();
    const size_t program = in_.at() + header_length;
    in_.number<uint16_t>();  // instruction length, default of is_stmt
    line_base_ = in_.number<int8_t>();
    line_range_ = in_.number<uint8_t>();
    opcode_base_ = in_.number<uint8_t>();
    for (int i = 1; i < opcode_base_; ++i) in_.number<uint8_t>();
    while (!in_.text().empty()) {
    }
    files_.emplace_back();
    for (std::string file = in_.text(); !file.empty(); file = in_.text()) {
      files_.push_back(file);
      for (int i = 0; i < 3; ++i) in_.unsigned_leb();  // folder, time, size
    }
    in_.move_to(program);
  }

  void reset() {
    row_ = {};
    row_.line = 1;
    file_ = 1;
    contexts_.clear();
    context_ = 0;
  }

  void emit() {
    row_.file = file_ < files_.size() ? files_[file_] : "file " + std::to_string(file_);
    row_.inlined_at = context_ >= 1 && context_ <= contexts_.size() ? contexts_[context_ - 1] : 0;
    rows_.push_back(row_);
    contexts_.push_back(row_.line);
  }

  void opcode() {
    const auto code = in_.number<uint8_t>();
    if (code >= opcode_base_) {
      row_.address += static_cast<uint64_t>((code - opcode_base_) / line_range_);
      row_.line += line_base_ + (code - opcode_base_) % line_range_;
      emit();
      return;
    }
    switch (code) {
      case 0:
        return extended();
      case 1:
        return emit();
      case 2:
        row_.address += in_.unsigned_leb();
        return;
      case 3:
        row_.line += in_.signed_leb();
        return;
      case 4:
        file_ = in_.unsigned_leb();
        return;
      case 5:
        in_.unsigned_leb();  // column
        return;
      case 8:
        row_.address += static_cast<uint64_t>((255 - opcode_base_) / line_range_);
        return;
      case 9:
        row_.address += in_.number<uint16_t>();
        return;
      default:
        return;  // 6 and 7 have no operands and say nothing of interest
    }
  }

  void extended() {
    const uint64_t length = in_.unsigned_leb();
    if (length == 0) return;  // padding
    const size_t next = in_.at() + length;
    const auto code = in_.number<uint8_t>();
    if (code == kEndSequence) {
      reset();
    } else if (code == kSetAddress) {
      row_.function = functions_[in_.at()];
      row_.address = in_.number<uint64_t>();
    } else if (code == kInlinedCall) {
      context_ = in_.unsigned_leb();
      const uint64_t name = in_.unsigned_leb();
      row_.inlined = context_ == 0 || name >= names_.size() ? "" : std::string(names_.data() + name);
    } else if (code == kFunctionName) {
      in_.unsigned_leb();
      return;
    } else {
      ADD_FAILURE() << "line table with extended opcode " << int{code};
      known_ = false;
    }
    in_.move_to(next);
  }

  Reader& in_;
  std::map<uint64_t, std::string>& functions_;
  std::string_view names_;
  std::vector<LineRow>& rows_;
  std::vector<std::string> files_;
  std::vector<int64_t> contexts_;  // line of every row of the sequence so far
  LineRow row_;
  uint64_t file_ = 1, context_ = 0;
  int line_base_ = 0, line_range_ = 1, opcode_base_ = 10;
  bool known_ = true;
};

}  // namespace

std::vector<LineRow> read_line_table(const std::string& cubin) {
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), "cubin");
  auto functions = functions_by_place(elf);
  std::vector<LineRow> rows;
  Reader in(content(elf, ".debug_line"));
  while (!in.done()) LineProgram(in, functions, content(elf, ".debug_str"), rows).run();
  for (LineRow& row : rows) {
    if (row.function.starts_with(".text.")) row.function.erase(0, 6);
  }
  return rows;
}

}  // namespace klap::test
