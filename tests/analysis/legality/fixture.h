// Helpers for the tests of this folder: fixtures by name, and remarks as text.
#pragma once

#include <string>

#include "golden.h"
#include "jit/module.h"
#include "support/file.h"

namespace klap::test {

// The text of a fixture: of the launch idioms or, with that ending, of the golden files.
inline std::string fixture(const std::string& name) {
  if (name.ends_with(".golden")) return read_golden(std::string(KLAP_GOLDEN_DIR) + "/" + name).section("ptx");
  return read_file(std::string(KLAP_IDIOM_DIR) + "/" + name + ".ptx");
}

inline std::string remark_text(const jit::SiteRemark& r) {
  std::string text = r.unit + ":" + std::to_string(r.line) + ":" + std::to_string(r.column) + ": " +
                     r.parent + " launches " + r.child + ": ";
  text += r.rewritten ? "rewritten" : "left (" + r.reason + ")";
  text += ": " + r.detail + "\n";
  if (r.rewritten) text += "  in short: " + r.brief + "\n";
  for (const std::string& note : r.notes) text += "  note: " + note + "\n";
  return text;
}

}  // namespace klap::test
