#include "runtime/links/compiled_code.h"

#include <algorithm>
#include <utility>

#include "support/hash.h"

namespace klap::runtime {

CompiledCode& CompiledCode::instance() {
  static auto* const code = new CompiledCode;  // leaked: code may be linked while the process exits
  return *code;
}

void CompiledCode::keep(std::string_view machine_code, std::string ptx) {
  const auto hash = content_hash(machine_code);
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(all_, hash, &Compiled::hash) != all_.end()) return;
  bytes_ += ptx.size();
  all_.push_back({hash, std::move(ptx)});
  for (; bytes_ > most_bytes_; all_.pop_front()) bytes_ -= all_.front().ptx.size();
}

std::string CompiledCode::ptx_of(std::string_view machine_code) {
  const auto hash = content_hash(machine_code);
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(all_, hash, &Compiled::hash);
  return found == all_.end() ? "" : found->ptx;
}

}  // namespace klap::runtime
