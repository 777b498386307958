// The meaning of a function's own names other than its registers: labels, variables, parameters, and the
// tables of labels and prototypes. This file also lays out the function's local frame.
//
// A name is looked for in the innermost scope first. Scopes that exclude each other share their part of the
// frame.
#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "analysis/graph/flow.h"
#include "emulator/decode/link.h"

namespace klap::emulator {

struct LocalName {
  enum class Kind : uint8_t { Frame, KernelParameter, Symbol } kind = Kind::Frame;
  uint32_t offset = 0, bytes = 0;  // in the local frame, or in the kernel's parameter block
  Symbol symbol{};                 // of .shared, .global and .const variables
};

class LocalScopes {
 public:
  LocalScopes(Linker& linker, const analysis::ControlFlow& flow, Function& out);

  // Null if the function has no such name there.
  [[nodiscard]] const LocalName* find(const ptx::Statement* scope, std::string_view name) const;
  // The instruction (of the flow) that follows the label. Throws Error(Parse) if there is none.
  [[nodiscard]] uint32_t label(const ptx::Statement* scope, uint32_t token) const;
  // The .branchtargets or .callprototype directive of this name, and the scope it stands in; null if there is
  // none.
  [[nodiscard]] std::pair<const ptx::Statement*, const ptx::Statement*> table(const ptx::Statement* scope,
                                                                              std::string_view name) const;

 private:
  using ScopedName = std::pair<const ptx::Statement*, std::string_view>;

  void declare_parameters();
  uint32_t allocate(std::string_view name, uint64_t bytes, uint32_t align);
  void declare(const ptx::Statement& scope);
  void declare(const ptx::Statement& scope, const ptx::Statement& directive);

  Linker& linker_;
  const analysis::ControlFlow& flow_;
  const ptx::Module& m_;
  Function& out_;
  std::map<ScopedName, LocalName> names_;
  std::map<ScopedName, uint32_t> labels_;
  std::map<ScopedName, const ptx::Statement*> tables_;
  uint64_t end_ = 0;           // of the scopes that are open
  uint32_t instructions_ = 0;  // before the place that is being read
};

}  // namespace klap::emulator
