// The names in builtins.def, as tables.
#include "emulator/decode/builtins.h"

#include <iterator>
#include <unordered_map>

namespace klap::emulator {
namespace {

constexpr std::string_view kNames[] = {
#define X(name, symbol) symbol,
#include "emulator/decode/builtins.def"
#undef X
};

std::unordered_map<std::string_view, Builtin> all_names() {
  return {
#define X(name, symbol) {symbol, Builtin::name},
#define ALIAS(name, symbol) {symbol, Builtin::name},
#include "emulator/decode/builtins.def"
#undef X
  };
}

}  // namespace

int find_builtin(std::string_view name) {
  static const auto names = all_names();
  const auto found = names.find(name);
  return found == names.end() ? -1 : static_cast<int>(found->second);
}

std::string_view builtin_name(int builtin) {
  return builtin < 0 || builtin >= static_cast<int>(std::size(kNames)) ? "?" : kNames[builtin];
}

}  // namespace klap::emulator
