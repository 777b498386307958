// Line tables of generated code: source files and function names as the receiving unit numbers them.
//
// A `.loc` names its source file by a number that the unit's `.file` directives give out. It names the
// function that was inlined there by a label in the unit's `.debug_str` section. ptxas silently accepts a
// number that no directive gave out, and refuses a number that is given out twice. It resolves labels of a
// second `.debug_str` section to the wrong names. So code from another unit takes its files and names along,
// under numbers and labels that are free in the unit. A unit of its own gets exactly the files and names that
// its code uses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/edit.h"
#include "ptx/tree.h"

namespace klap::transform {

class LineTables {
 public:
  // `unit` is the unit that generated code will be appended to, or stand beside. It must outlive the tables.
  explicit LineTables(const ptx::Module& unit);
  ~LineTables();
  LineTables(LineTables&&) noexcept;
  LineTables& operator=(LineTables&&) = delete;

  // The `.loc` directive of a function of `source`, as it must stand in code for the unit. Empty when its
  // file is not declared in `source`; without the inlined function when that cannot be told.
  std::string directive(const ptx::Module& source, const ptx::Statement& loc);
  // The directive of the first `.loc` of a function, which is that of its head. Empty when it has none.
  std::string head(const ptx::Module& source, const ptx::Function& function);
  // Keeps every `.loc` of a body that is copied with edits.
  void keep(const ptx::Module& source, const ptx::Statement& body, ptx::Edits& edits);

  // For a unit that keeps its own tables: adds the entries that it lacks.
  void add_new(ptx::Edits& edits) const;
  // For a unit that has none: everything that the generated code uses.
  [[nodiscard]] std::string used() const;

  // The entries that could not be kept, one sentence each.
  [[nodiscard]] const std::vector<std::string>& losses() const { return losses_; }

 private:
  struct Source;
  struct File {
    std::string path;  // as quoted in the directive
    std::string text;  // the directive behind its number
    bool own = false, used = false;
  };
  struct Name {
    std::string bytes;  // "95,90,0"
    bool own = false, used = false;
  };

  const Source& source(const ptx::Module& module);
  std::optional<uint32_t> file(const ptx::Module& module, std::string_view number);
  std::optional<std::string> name(const ptx::Module& module, std::string_view label, uint64_t offset);
  void lose(std::string what);

  const ptx::Module& unit_;
  std::map<const ptx::Module*, std::unique_ptr<Source>> sources_;
  std::map<uint32_t, File> files_;
  std::map<std::string, Name, std::less<>> names_;  // by label
  std::vector<std::string> losses_;
};

}  // namespace klap::transform
