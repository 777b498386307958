#include "support/demangle.h"

#include <cxxabi.h>

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace klap {
namespace {

// nvcc puts "__nv_static_28_", 28 characters that name the source file, and "_" before the name of a kernel
// that other units cannot see.
std::string_view without_unit(std::string_view name) {
  constexpr std::string_view kPrefix = "__nv_static_";
  if (!name.starts_with(kPrefix)) return name;
  size_t length = 0;
  const char* const digits = name.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), length);
  const std::string_view rest = name.substr(static_cast<size_t>(end - name.data()));
  const bool fits = error == std::errc() && rest.size() > 2 && length < rest.size() - 2;
  return fits && rest[0] == '_' && rest[length + 1] == '_' ? rest.substr(length + 2) : name;
}

}  // namespace

std::string demangle(const std::string& name) {
  int status = 0;
  const std::string in_unit(without_unit(name));
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(in_unit.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : in_unit;
}

std::string both_names(const std::string& name) {
  const std::string demangled = demangle(name);
  return demangled == name ? name : demangled + " [" + name + "]";
}

}  // namespace klap
