#include "transform/text/moved_requests.h"

#include <fmt/format.h>

#include <string>

#include "ptx/edit.h"
#include "transform/text/made_text.h"

namespace klap::transform {

using analysis::EarlyRequest;
using ptx::Module;
using ptx::Statement;

namespace {

// Moves statements of one module, with marks that say where each piece of the text comes from.
class Mover {
 public:
  explicit Mover(const Module& module) : m_(module), edits_(module) {}

  void move(const EarlyRequest& request, const std::string& label) {
    std::string text = copied(*request.scope) + "\n\t" + copied(*request.test) + "\n\t";
    replace(*request.scope, "");
    replace(*request.test, "");
    if (request.without_buffer == nullptr) {
      text += copied(*request.branch);
      replace(*request.branch, "");
    } else {
      text += made_.mark(begin(*request.branch), false, "") + branch_to(label, *request.branch);
      const std::string_view with_buffer = m_.text(request.branch->operands.back());
      replace(*request.branch, fmt::format("bra {};", with_buffer));
      insert_before(*request.without_buffer, label + ":");
    }
    for (const Statement* store : request.stores) {
      text += "\n\t" + copied(*store);
      replace(*store, "");
    }
    insert_before(*request.to, text);
  }
  [[nodiscard]] Module edited() const { return made_.edited(m_, edits_); }

 private:
  [[nodiscard]] uint32_t begin(const Statement& s) const { return m_.tokens[s.tokens.first].begin; }

  std::string copied(const Statement& s) {
    return made_.mark(begin(s), true, "") + std::string(m_.text(s.tokens));
  }
  // A branch that is taken where the other one is not.
  [[nodiscard]] std::string branch_to(const std::string& label, const Statement& branch) const {
    return fmt::format("@{}{} bra {};", branch.predicate_negated ? "" : "!", m_.text(branch.predicate),
                       label);
  }
  void replace(const Statement& s, const std::string& text) {
    const uint32_t end = m_.tokens[s.tokens.last - 1].end;
    edits_.replace(s.tokens, made_.mark(begin(s), false, "") + text + made_.mark(end, true, ""));
  }
  void insert_before(const Statement& s, const std::string& text) {
    edits_.insert_before(s.tokens.first,
                         made_.mark(begin(s), false, "") + text + "\n\t" + made_.mark(begin(s), true, ""));
  }

  const Module& m_;
  ptx::Edits edits_;
  MadeText made_;
};

}  // namespace

Module with_moved_requests(const Module& module, const std::vector<EarlyRequest>& requests) {
  Mover mover(module);
  for (size_t i = 0; i < requests.size(); ++i) mover.move(requests[i], fmt::format("$klap_unfilled_{}", i));
  return mover.edited();
}

}  // namespace klap::transform
