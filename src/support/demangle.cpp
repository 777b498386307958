#include "support/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace klap {

std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

std::string both_names(const std::string& name) {
  const std::string demangled = demangle(name);
  return demangled == name ? name : demangled + " [" + name + "]";
}

}  // namespace klap
