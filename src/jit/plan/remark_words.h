// Remarks in the words of the program's source: its lines and its C++ names in place of those of the PTX.
#pragma once

#include <string>
#include <string_view>

#include "jit/data/remark.h"
#include "ptx/source_lines.h"

namespace klap::jit {

class SourceWords {
 public:
  // `lines` are those of the parent's unit. Texts name places of the child's PTX as well. If that is another
  // unit, its numbers cannot be told from those of the parent's unit. Then `is_one_unit` is false, and such a
  // place is called one of the PTX.
  SourceWords(const ptx::SourceLines& lines, bool is_one_unit) : lines_(lines), is_one_unit_(is_one_unit) {}

  // Finds the line of the source that the launch stands in. Then puts all texts of the remark into words.
  void put_into(SiteRemark& remark) const;
  // The text of a remark whose line is known, with lines of the source and signatures in place of "line 41:2"
  // and of mangled names.
  [[nodiscard]] std::string of(std::string_view text, const SiteRemark& remark) const;

 private:
  [[nodiscard]] std::string with_places(std::string_view text) const;

  const ptx::SourceLines& lines_;
  bool is_one_unit_;
};

}  // namespace klap::jit
