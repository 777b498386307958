// Helpers for the tests of this folder: fixtures by name, small edits of them, and a kernel's facts.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "support/file.h"

namespace klap::analysis {

inline std::string fixture(const std::string& name) {
  return read_file(std::string(KLAP_IDIOM_DIR) + "/" + name + ".ptx");
}

// `text` with the first `from` replaced; the fixture must hold it.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("fixture does not hold: " + from);
  return text.replace(at, from.size(), to);
}

// A parsed module with the facts of one of its functions, by default the one named like "...parent...".
struct Parsed {
  explicit Parsed(const std::string& text, const std::string& name = "parent")
      : module(ptx::parse(text, "fixture")) {
    for (const ptx::Function& f : module.functions) {
      if (f.is_definition && !facts && f.name.find(name) != std::string::npos) facts.emplace(module, f);
    }
    if (!facts) throw std::runtime_error("fixture does not define: " + name);
  }
  [[nodiscard]] OriginQuery query() const { return {module, facts->function, facts->flow, facts->data}; }
  [[nodiscard]] const Site& site() const { return facts->sites.at(0); }
  ptx::Module module;
  std::optional<FunctionFacts> facts;
};

// A kernel `parent` of two parameters p (64 bits) and n (32 bits) around a body.
inline std::string kernel(const std::string& body, const std::string& before = "") {
  return ".version 9.0\n.target sm_80\n.address_size 64\n.global .align 8 .b8 table[64];\n" + before +
         ".visible .entry parent(.param .u64 p, .param .u32 n)\n{\n.reg .pred %p<9>;\n.reg .b32 %r<20>;\n"
         ".reg .b64 %rd<20>;\n.local .align 16 .b8 frame[64];\n" +
         body + "ret;\n}\n";
}

// A call as nvcc writes it. `actuals` are the types and operands of the parameters.
inline std::string call(const std::string& function,
                        const std::vector<std::pair<std::string, std::string>>& actuals,
                        const std::string& result = "ld.param.b32 %r9, [retval0];\n",
                        const std::string& guard = "") {
  std::string text = "{\n", names;
  for (size_t i = 0; i < actuals.size(); ++i) {
    const auto& [type, operand] = actuals[i];
    const std::string name = "param" + std::to_string(i);
    text += ".param ." + type + " " + name + ";\nst.param." + type + " [" + name + "+0], " + operand + ";\n";
    names += (i == 0 ? "" : ", ") + name;
  }
  return text + ".param .b32 retval0;\n" + guard + "call.uni (retval0), " + function + ", (" + names +
         ");\n" + result + "}\n";
}

}  // namespace klap::analysis
