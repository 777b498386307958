// The pipeline's passes by name, and what each of them leaves to look at.
//
// KLAP_DUMP_DIR writes every stage to a file, `klap-ptx inspect --dump-after=PASS` prints those of one pass.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klap::jit {

// X(enumerator, "name", "what its stages show"), in the order in which the passes run
#define KLAP_PASSES(X)                                                                                 \
  X(Load, "load", "what the image holds: each unit's PTX, machine code and build options")             \
  X(Parse, "parse", "each unit that launches, as it was understood: directives, variables, functions") \
  X(Sites, "sites", "the launch sites and where their arguments come from")                            \
  X(Legality, "legality", "the verdict on every site, with its reason")                                \
  X(Plan, "plan", "the sites that will be rewritten, and how")                                         \
  X(Splice, "splice", "the children's bodies as inlined into consumers")                               \
  X(Aggregate, "aggregate", "the generated kernels: recording parents and consumers")                  \
  X(Unit, "unit", "the PTX units that hold the generated kernels")                                     \
  X(Link, "link", "what was linked, with which options, and the linked image")

enum class Pass {
#define KLAP_PASS(name, text, shows) name,
  KLAP_PASSES(KLAP_PASS)
#undef KLAP_PASS
};

const char* to_string(Pass pass);
std::optional<Pass> pass_by_name(std::string_view name);
std::vector<std::string_view> pass_names();
// One line for each pass: its name and what it shows.
std::string pass_list();

struct Stage {
  Pass pass{};
  std::string file;    // name of the file it is dumped to, "unit0.klap.ptx"
  std::string kernel;  // the kernel that it is about, mangled; empty where it is about more than one
  std::string_view bytes;
  [[nodiscard]] bool is_text() const { return !file.ends_with(".cubin"); }
};

// Receives every stage; may be empty.
using Dump = std::function<void(const Stage& stage)>;

}  // namespace klap::jit
