// Lines of the program's source, which compilers note in PTX on request (`nvcc -lineinfo`): `.file` gives a
// file a number, and `.loc` names the line that the instructions behind it come from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/source_place.h"
#include "ptx/tree.h"

namespace klap::ptx {

// The parts of `.loc FILE LINE COLUMN [, function_name LABEL [+ OFFSET]] [, inlined_at FILE LINE COLUMN]`.
struct LineDirective {
  struct Place {
    std::string_view file, line, column;
    bool operator==(const Place&) const = default;
  };
  Place at;
  std::string_view function;  // label; empty where nothing is inlined
  uint64_t offset = 0;
  std::optional<Place> inlined_at;
};

// Nothing for a directive of another form, such as one that was cut.
std::optional<LineDirective> parse_line_directive(const Module& module, TokenRange tokens);

// "kernels.cu:41:2", without the file's folder.
std::string short_text(const SourcePlace& place);

// Finds lines of the source. The module must outlive it.
class SourceLines {
 public:
  explicit SourceLines(const Module& module);

  // The line that a place in the PTX comes from, or nothing where the PTX does not say.
  //
  // The launch of a kernel is compiled to calls that are inlined from a header of CUDA. Nobody looks for
  // their launch there. So of the places that are inlined into each other, the innermost one counts that is
  // in no header of the toolkit. Where all are, as in a kernel of CUB, it is the innermost of all.
  [[nodiscard]] std::optional<SourcePlace> of(const Position& position) const;

 private:
  struct Entry {
    Position begin;
    std::optional<LineDirective> directive;  // none where a function begins
  };

  void add_function(const Function& function);
  [[nodiscard]] const LineDirective* inlined_from(size_t entry, const LineDirective::Place& place) const;
  [[nodiscard]] std::optional<SourcePlace> place(const LineDirective::Place& place) const;
  [[nodiscard]] bool is_of_toolkit(const std::string& file) const;

  const Module& module_;
  std::map<uint64_t, std::string> files_;
  std::string toolkit_;  // the folder of CUDA's headers, with '/'; empty where it is not known
  std::vector<Entry> entries_;
};

}  // namespace klap::ptx
