// Variable declarations, at module level and in functions, taken apart.
#pragma once

#include <string_view>
#include <vector>

#include "ptx/tree.h"

namespace klap::emulator {

struct DeclaredVariable {
  std::string_view name;
  uint32_t token = 0;                  // its name
  uint32_t range = 0;                  // `name<3>` declares name0, name1 and name2
  std::string_view type;               // of an element: ".u32"
  uint32_t element_bytes = 0;          // of one lane of an element
  std::vector<uint64_t> dimensions{};  // outermost first; a vector type's lanes are the innermost
  bool is_unsized = false;             // `x[]` without an initialiser
  uint64_t bytes = 0;
  uint32_t align = 1;
  ptx::TokenRange initialiser{};  // the text behind '='; empty if there is none
};

struct Declaration {
  ptx::Linkage linkage = ptx::Linkage::Internal;
  std::string_view space;  // ".global", ".shared", ".local", ".param", ...
  bool is_managed = false;
  bool is_reference = false;  // .texref, .samplerref, .surfref, or of space .tex
  std::vector<DeclaredVariable> variables;
};

// `tokens` is the whole statement with its ';'. Throws Error(Parse) or Error(Unsupported) with the place.
Declaration read_declaration(const ptx::Module& module, ptx::TokenRange tokens);

}  // namespace klap::emulator
