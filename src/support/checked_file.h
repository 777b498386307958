// The bytes of a small file that is only believed whole: a magic number, what was put in, and a checksum over
// all of it. Numbers are little-endian, as on every machine that CUDA runs on.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace klap {

class CheckedWriter {
 public:
  // `magic` has eight letters.
  CheckedWriter(std::string_view magic, uint32_t format);
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text);
  // The whole file.
  [[nodiscard]] std::string finish() const;

 private:
  std::string bytes_;
};

// Everything throws Error(Io) that says what is wrong with the bytes.
class CheckedReader {
 public:
  // `what` names the kind of file in the message: "profile".
  CheckedReader(std::string_view bytes, std::string_view magic, uint32_t format, std::string_view what);
  template <class Value>
  Value get() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string get_text() { return std::string(take(get<uint64_t>())); }
  // Nothing may be left.
  void finish() const;

 private:
  std::string_view take(uint64_t bytes);
  std::string_view rest_;
};

}  // namespace klap
