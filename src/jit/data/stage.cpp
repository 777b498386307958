#include "jit/data/stage.h"

#include <fmt/format.h>

namespace klap::jit {

const char* to_string(Pass pass) {
  switch (pass) {
#define KLAP_PASS(name, text, shows) \
  case Pass::name:                   \
    return text;
    KLAP_PASSES(KLAP_PASS)
#undef KLAP_PASS
  }
  return "unknown";
}

std::optional<Pass> pass_by_name(std::string_view name) {
#define KLAP_PASS(enumerator, text, shows) \
  if (name == text) return Pass::enumerator;
  KLAP_PASSES(KLAP_PASS)
#undef KLAP_PASS
  return std::nullopt;
}

std::vector<std::string_view> pass_names() {
  return {
#define KLAP_PASS(enumerator, text, shows) text,
      KLAP_PASSES(KLAP_PASS)
#undef KLAP_PASS
  };
}

std::string pass_list() {
  std::string list;
#define KLAP_PASS(enumerator, text, shows) list += fmt::format("  {:10} {}\n", text, shows);
  KLAP_PASSES(KLAP_PASS)
#undef KLAP_PASS
  return list;
}

}  // namespace klap::jit
