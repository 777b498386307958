// Edits of a module's source: replacements and insertions by offset, applied in one go.
//
// Passes describe their changes as splices against the unchanged source and apply them together. So no pass
// sees half-edited text, and all other text stays byte for byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptx/tree.h"

namespace klap::ptx {

class Edits {
 public:
  explicit Edits(const Module& module) : module_(module) {}

  void replace(TokenRange range, std::string text);
  // Directly before a token or directly after one; several insertions at one place keep their order.
  void insert_before(uint32_t token, std::string text);
  void insert_after(uint32_t token, std::string text);

  // The text of `range` with all edits that lie inside it. An edit inside replaced text is void; replacements
  // that overlap in part are an Error(Internal).
  [[nodiscard]] std::string apply(TokenRange range) const;
  // All of the module's text with its edits. Lines keep their numbers up to the first edit.
  [[nodiscard]] std::string apply() const;
  [[nodiscard]] bool empty() const { return splices_.empty(); }

 private:
  struct Splice {
    uint32_t begin, end;  // source offsets
    std::string text;
  };
  const Module& module_;
  std::vector<Splice> splices_;
};

}  // namespace klap::ptx
