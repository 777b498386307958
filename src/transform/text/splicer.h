// A function's body copied with other names: the common base of all splicing.
//
// A splicer walks the statements of a body and writes them with every declared name prefixed. Derived classes
// decide about parameters, special registers, calls and the function's end.
#pragma once

#include <string>
#include <string_view>

#include "analysis/graph/dataflow.h"
#include "ptx/tree.h"
#include "transform/text/splice.h"

namespace klap::transform {

class Splicer {
 public:
  Splicer(const ptx::Module& module, const ptx::Function& function, std::string prefix)
      : m_(module), function_(function), prefix_(std::move(prefix)), names_(module, function.body) {}
  virtual ~Splicer() = default;
  Splicer(const Splicer&) = delete;
  Splicer& operator=(const Splicer&) = delete;

  std::string body();

 protected:
  // Writes the instruction in its own way and returns true, or leaves it to the general way.
  virtual bool special(const ptx::Statement& s) = 0;
  // Writes the scope in its own way and returns true, or leaves it to the general way.
  virtual bool special_scope(const ptx::Statement&) { return false; }
  // Writes the label in its own way and returns true, or leaves it to the general way.
  virtual bool special_label(const ptx::Statement&) { return false; }
  // A `.loc` directive as it must stand in the text.
  virtual std::string location(const ptx::Statement& loc) = 0;
  // True if `ret` and `exit` stay what they are.
  [[nodiscard]] virtual bool keeps_exits() const { return false; }
  // The text around a statement; null for none.
  [[nodiscard]] virtual const Around* around(const ptx::Statement&) const { return nullptr; }
  // The replacement of an identifier that the function does not declare.
  virtual std::string outside(uint32_t token) = 0;
  // Called before each statement is written.
  virtual void begin(const ptx::Statement&) {}

  void statement(const ptx::Statement& s);
  // Writes a statement without the text around it.
  void write(const ptx::Statement& s);
  // A name that the body declares.
  [[nodiscard]] virtual std::string prefixed(std::string_view name) const;
  [[nodiscard]] virtual std::string end_label() const { return "$" + prefix_ + "end"; }
  // A statement before which a label at the end of a scope can stand.
  [[nodiscard]] std::string landing(const std::string& label) const;
  [[nodiscard]] std::string rename(uint32_t token);
  [[nodiscard]] std::string renamed(ptx::TokenRange range);
  [[nodiscard]] std::string guard(const ptx::Statement& s);
  void line(const std::string& text) { out_ += "\t" + text + ";\n"; }
  [[nodiscard]] std::string modifiers_without(const ptx::Statement& s, std::string_view dropped) const;

  const ptx::Module& m_;
  const ptx::Function& function_;
  std::string prefix_;
  analysis::LocalNames names_;
  std::string out_;
  const ptx::Statement* current_ = nullptr;  // the instruction being written
  bool swallow_next_ = false;  // set by outside() when its replacement covers the next token too
};

}  // namespace klap::transform
