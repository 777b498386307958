// One walk through the function's scopes, in the order in which the flow numbers the instructions.
#include "emulator/decode/decode_scopes.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/decode/decode_constant.h"

namespace klap::emulator {

using ptx::Statement;
using ptx::StatementKind;

LocalScopes::LocalScopes(Linker& linker, const analysis::ControlFlow& flow, Function& out)
    : linker_(linker), flow_(flow), m_(flow.module()), out_(out) {
  declare_parameters();
  declare(flow.function().body);
  constexpr uint32_t kFrameAlign = 16;
  out_.local_bytes = (out_.local_bytes + kFrameAlign - 1) / kFrameAlign * kFrameAlign;
}

// A kernel's parameters lie in its parameter block. A called function's lie in its frame, where its caller
// puts them. The decoder handles parameters in registers.
void LocalScopes::declare_parameters() {
  const ptx::Function& f = flow_.function();
  const Statement* const outside = nullptr;
  for (const auto* list : {&f.results, &f.parameters}) {
    for (const ptx::Parameter& p : *list) {
      const std::string_view name = p.name;
      if (out_.is_kernel) {
        names_.emplace(ScopedName(outside, name),
                       LocalName{LocalName::Kind::KernelParameter, p.offset, p.bytes, {}});
      } else if (!m_.is(p.tokens.first, ".reg")) {
        const uint32_t offset = allocate(name, p.bytes, p.align);
        names_.emplace(ScopedName(outside, name), LocalName{LocalName::Kind::Frame, offset, p.bytes, {}});
      }
    }
  }
}

uint32_t LocalScopes::allocate(std::string_view name, uint64_t bytes, uint32_t align) {
  end_ = (end_ + align - 1) / align * align;
  const auto offset = static_cast<uint32_t>(end_);
  end_ += bytes;
  if (end_ > kWindowBytes / 2) {
    throw error_at(ErrorCode::Unsupported, m_, flow_.function().name_token, "frame of 2 GiB or more");
  }
  out_.local_bytes = std::max(out_.local_bytes, static_cast<uint32_t>(end_));
  out_.frame.push_back({std::string(name), offset, static_cast<uint32_t>(bytes)});
  return offset;
}

void LocalScopes::declare(const Statement& scope) {
  const uint64_t begin = end_;
  std::string_view last_label;
  for (const Statement& s : scope.body) {
    switch (s.kind) {
      case StatementKind::Block:
        declare(s);
        break;
      case StatementKind::Label:
        last_label = m_.text(s.head);
        labels_.emplace(ScopedName(&scope, last_label), instructions_);
        break;
      case StatementKind::Directive:
        if (m_.is(s.head, ".branchtargets") || m_.is(s.head, ".callprototype") ||
            m_.is(s.head, ".calltargets")) {
          tables_.emplace(ScopedName(&scope, last_label), &s);
        } else {
          declare(scope, s);
        }
        break;
      case StatementKind::Instruction:
        ++instructions_;
        break;
    }
  }
  end_ = begin;
}

void LocalScopes::declare(const Statement& scope, const Statement& directive) {
  static constexpr std::string_view kSpaces[] = {".local", ".param", ".shared", ".global", ".const"};
  const std::string_view head = m_.text(directive.head);
  const bool is_linkage = head == ".extern" || head == ".visible" || head == ".weak" || head == ".common";
  if (!is_linkage && std::find(std::begin(kSpaces), std::end(kSpaces), head) == std::end(kSpaces)) return;
  const Declaration declaration = read_declaration(m_, directive.tokens);
  const bool in_frame = declaration.space == ".local" || declaration.space == ".param";
  for (const DeclaredVariable& v : declaration.variables) {
    if (v.range != 0) throw error_at(ErrorCode::Unsupported, m_, v.token, "range of variables in a function");
    if (in_frame && v.is_unsized) {
      throw error_at(ErrorCode::Unsupported, m_, v.token, fmt::format("'{}' has no fixed size", v.name));
    }
    LocalName made{.bytes = static_cast<uint32_t>(std::min<uint64_t>(v.bytes, ~0u))};
    if (in_frame) {
      made.offset = allocate(v.name, v.bytes, v.align);
    } else {
      made.kind = LocalName::Kind::Symbol;
      made.symbol = linker_.declare_in_function(m_, declaration, v);
    }
    names_.emplace(ScopedName(&scope, v.name), made);
  }
}

const LocalName* LocalScopes::find(const Statement* scope, std::string_view name) const {
  for (;; scope = flow_.enclosing(scope)) {
    const auto found = names_.find(ScopedName(scope, name));
    if (found != names_.end()) return &found->second;
    if (scope == nullptr) return nullptr;
  }
}

uint32_t LocalScopes::label(const Statement* scope, uint32_t token) const {
  for (; scope != nullptr; scope = flow_.enclosing(scope)) {
    const auto found = labels_.find(ScopedName(scope, m_.text(token)));
    if (found != labels_.end()) return found->second;
  }
  throw error_at(ErrorCode::Parse, m_, token, fmt::format("branch to unknown label '{}'", m_.text(token)));
}

std::pair<const Statement*, const Statement*> LocalScopes::table(const Statement* scope,
                                                                 std::string_view name) const {
  for (; scope != nullptr; scope = flow_.enclosing(scope)) {
    const auto found = tables_.find(ScopedName(scope, name));
    if (found != tables_.end()) return {found->second, scope};
  }
  return {nullptr, nullptr};
}

}  // namespace klap::emulator
