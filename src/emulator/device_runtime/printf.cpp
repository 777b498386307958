// Conversions are taken apart here and done by the host's snprintf, one at a time, as CUDA does it.
//
// Arguments lie one after another, each aligned to its size. A type that C promotes to int takes 4 bytes;
// double, pointers and the long integer types take 8.
#include "emulator/device_runtime/printf.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include "support/error.h"

namespace klap::emulator {
namespace {

class Arguments {
 public:
  explicit Arguments(const PrintfSource& source) : source_(source) {}
  template <typename T>
  T next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::byte bytes[sizeof(T)];
    source_.argument(offset_, bytes);
    std::memcpy(&value, bytes, sizeof(T));
    offset_ += sizeof(T);
    ++count_;
    return value;
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  const PrintfSource& source_;
  uint64_t offset_ = 0;
  int count_ = 0;
};

struct Conversion {
  std::string flags;
  std::string width, precision;  // digits, or "*"; precision with its point
  std::string length;            // "hh", "h", "l", "ll", "j", "z", "t"
  char kind = 0;
};

std::string_view take_while(std::string_view& rest, std::string_view set) {
  size_t n = 0;
  while (n < rest.size() && set.find(rest[n]) != std::string_view::npos) ++n;
  const std::string_view taken = rest.substr(0, n);
  rest.remove_prefix(n);
  return taken;
}

std::string_view take_number(std::string_view& rest) {
  if (!rest.empty() && rest.front() == '*') {
    rest.remove_prefix(1);
    return "*";
  }
  return take_while(rest, "0123456789");
}

// `rest` begins behind the percent sign. Nothing is known of a conversion whose `kind` stays 0.
Conversion take_conversion(std::string_view& rest) {
  Conversion c;
  c.flags = take_while(rest, "-+ #0");
  c.width = take_number(rest);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    c.precision = "." + std::string(take_number(rest));
  }
  c.length = take_while(rest, "hljzt");
  if (!rest.empty()) {
    c.kind = rest.front();
    rest.remove_prefix(1);
  }
  return c;
}

// One conversion by snprintf. `spec` has no `*` left.
template <typename T>
std::string convert(const std::string& spec, T value) {
  std::vector<char> out(64);
  for (;;) {
    const int length = std::snprintf(out.data(), out.size(), spec.c_str(), value);
    if (length < 0) throw Error(ErrorCode::Unsupported, "printf cannot do " + spec);
    if (static_cast<size_t>(length) < out.size()) return {out.data(), static_cast<size_t>(length)};
    out.resize(static_cast<size_t>(length) + 1);
  }
}

bool is_long(const std::string& length) {
  return length == "l" || length == "ll" || length == "j" || length == "z" || length == "t";
}

bool is_length(const std::string& length) {
  return length.empty() || length == "h" || length == "hh" || is_long(length);
}

std::string do_conversion(const Conversion& c, Arguments& arguments, const PrintfSource& source) {
  const auto number = [&arguments](const std::string& given) {
    return given.ends_with('*') ? given.substr(0, given.size() - 1) + std::to_string(arguments.next<int>())
                                : given;
  };
  std::string spec = "%" + c.flags + number(c.width);
  // A negative precision counts as none.
  if (const std::string precision = number(c.precision); precision.find('-') == std::string::npos)
    spec += precision;
  const auto whole = [&](auto narrow, auto wide) {
    using Narrow = decltype(narrow);
    using Wide = decltype(wide);
    return is_long(c.length) ? convert(spec + "ll" + c.kind, arguments.next<Wide>())
                             : convert(spec + c.length + c.kind, arguments.next<Narrow>());
  };
  switch (is_length(c.length) ? c.kind : 0) {
    case 'd':
    case 'i':
      return whole(int{}, static_cast<long long>(0));
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      return whole(0u, 0ull);
    case 'c':
      if (c.length.empty()) return convert(spec + "c", arguments.next<int>());
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return convert(spec + c.kind, arguments.next<double>());
    case 'p':
      return convert(spec + "p", arguments.next<const void*>());
    case 's': {
      if (!c.length.empty()) break;
      const uint64_t address = arguments.next<uint64_t>();
      return convert(spec + "s", (address == 0 ? "(null)" : source.text(address)).c_str());
    }
    default:
      break;
  }
  throw Error(ErrorCode::Unsupported, "device printf has no conversion \"%" + c.flags + c.width +
                                          c.precision + c.length + std::string(c.kind == 0 ? 0 : 1, c.kind) +
                                          "\"");
}

}  // namespace

PrintfResult format_printf(std::string_view format, const PrintfSource& source) {
  PrintfResult result;
  Arguments arguments(source);
  while (!format.empty()) {
    const size_t percent = std::min(format.find('%'), format.size());
    result.text += format.substr(0, percent);
    format.remove_prefix(percent);
    if (format.empty()) break;
    format.remove_prefix(1);
    const Conversion c = take_conversion(format);
    if (c.kind == '%')
      result.text += '%';
    else
      result.text += do_conversion(c, arguments, source);
  }
  result.arguments = arguments.count();
  return result;
}

}  // namespace klap::emulator
