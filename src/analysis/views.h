// The analyses that can be printed: each is a printer for one function, and an option of `klap-ptx inspect`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptx/tree.h"

namespace klap::analysis {

struct View {
  const char* name;   // of the option, without its dashes
  const char* shows;  // "its control flow, as Graphviz"
  // May throw Error(Parse) for a function that cannot be analysed.
  std::string (*text)(const ptx::Module& module, const ptx::Function& function);
};

std::span<const View> views();

// Null when there is none of that name.
const View* find_view(std::string_view name);

}  // namespace klap::analysis
