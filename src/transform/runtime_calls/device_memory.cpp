#include "transform/runtime_calls/device_memory.h"

#include "ptx/token.h"

namespace klap::transform {

std::string with_functions(const std::string& ptx, const FunctionNames& names, const std::string& name) {
  std::string out;
  uint32_t at = 0;
  for (const ptx::Token& token : ptx::tokenize(ptx, name)) {
    if (token.kind != ptx::TokenKind::Identifier) continue;
    const auto changed = names.find(std::string_view(ptx).substr(token.begin, token.end - token.begin));
    if (changed == names.end()) continue;
    out.append(ptx, at, token.begin - at);
    out += changed->second;
    at = token.end;
  }
  return out.append(ptx, at);
}

}  // namespace klap::transform
