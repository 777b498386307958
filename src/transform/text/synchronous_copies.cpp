#include "transform/text/synchronous_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "ptx/edit.h"
#include "transform/text/made_text.h"

namespace klap::transform {

namespace {

using analysis::AsynchronousCopy;
using ptx::Module;

constexpr uint32_t kWord = 4;

// The text that stands for one copy. Its registers are declared in it and begin with `prefix`.
class Written {
 public:
  Written(const Module& module, const AsynchronousCopy& copy, std::string prefix)
      : copy_(copy), prefix_(std::move(prefix)), words_(copy.bytes / kWord) {
    if (!copy.statement->predicated) return;
    const std::string_view name = module.text(copy.statement->predicate);
    guard_ = fmt::format("{}{}", copy.statement->predicate_negated ? "!" : "", name);
    guarded_ = fmt::format("@{} ", guard_);
  }

  std::string text() {
    out_ = fmt::format(".reg .b32 {}<{}>;\n", prefix_, words_ + 1);
    const std::optional<uint64_t> copied = ptx::integer_value(copy_.copied);
    if (copied && *copied == copy_.bytes) {
      load_all(guarded_);
    } else if (copied) {
      clear();
      for (uint32_t w = 0; w < words_; ++w) load_word(w, guarded_, *copied);
    } else {
      clear();
      load_as_asked();
    }
    line("{}st.shared{}.b32 {}, {};", guarded_, vector(), address(copy_.to, 0), all());
    return out_;
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    out_ += "\t" + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  [[nodiscard]] static std::string address(const analysis::Address& where, uint32_t byte) {
    return fmt::format("[{}+{}]", where.base, where.offset + byte);
  }
  [[nodiscard]] std::string word(uint32_t w) const { return fmt::format("{}{}", prefix_, w); }
  [[nodiscard]] std::string vector() const { return words_ == 1 ? "" : fmt::format(".v{}", words_); }
  [[nodiscard]] std::string all() const {
    std::string list = word(0);
    for (uint32_t w = 1; w < words_; ++w) list += ", " + word(w);
    return words_ == 1 ? list : "{" + list + "}";
  }

  void clear() {
    for (uint32_t w = 0; w < words_; ++w) line("mov.b32 {}, 0;", word(w));
  }

  void load_all(const std::string& guard) {
    line("{}ld.global{}.b32 {}, {};", guard, vector(), all(), address(copy_.from, 0));
  }

  void load_byte(uint32_t w, uint32_t byte, const std::string& guard) {
    const std::string one = word(words_);
    line("mov.b32 {}, 0;", one);
    line("{}ld.global.u8 {}, {};", guard, one, address(copy_.from, w * kWord + byte));
    line("shl.b32 {0}, {0}, {1};", one, 8 * byte);
    line("or.b32 {0}, {0}, {1};", word(w), one);
  }

  // As much of the word as lies in the first `copied` bytes.
  void load_word(uint32_t w, const std::string& guard, uint64_t copied) {
    const uint64_t left = copied - std::min<uint64_t>(copied, w * kWord);
    if (left >= kWord) return line("{}ld.global.b32 {}, {};", guard, word(w), address(copy_.from, w * kWord));
    for (uint32_t byte = 0; byte < left; ++byte) load_byte(w, byte, guard);
  }

  // How much is copied stands in a register. Nothing and all of it are what programs ask for.
  void load_as_asked() {
    const std::string whole = prefix_ + "whole", part = prefix_ + "part";
    line(".reg .pred {}, {};", whole, part);
    compare(whole, "ge", copy_.bytes, guard_);
    load_all(fmt::format("@{} ", whole));
    compare(part, "lt", copy_.bytes, guard_);
    compare(part, "gt", 0, part);
    line("@!{} bra {};", part, label());
    for (uint32_t byte = 0; byte < copy_.bytes - 1; ++byte) {
      compare(part, "gt", byte, "");
      load_byte(byte / kWord, byte % kWord, fmt::format("@{} ", part));
    }
    out_ += label() + ":\n";
  }

  // Whether the number of bytes compares so with `number`, and `also` holds.
  void compare(const std::string& result, const char* how, uint32_t number, const std::string& also) {
    line("setp.{}{}.u32 {}, {}, {}{};", how, also.empty() ? "" : ".and", result, copy_.copied, number,
         also.empty() ? "" : ", " + also);
  }

  [[nodiscard]] std::string label() const { return "$L_" + prefix_.substr(1) + "end"; }

  const AsynchronousCopy& copy_;
  std::string prefix_, guard_, guarded_, out_;
  const uint32_t words_;
};

}  // namespace

Module with_synchronous_copies(const Module& module, const std::vector<AsynchronousCopy>& copies) {
  ptx::Edits edits(module);
  MadeText made;
  for (size_t i = 0; i < copies.size(); ++i) {
    const ptx::TokenRange tokens = copies[i].statement->tokens;
    const std::string text =
        copies[i].bytes == 0 ? "" : Written(module, copies[i], fmt::format("%klap_a{}_", i)).text();
    edits.replace(tokens, made.mark(module.tokens[tokens.first].begin, false, "") + text +
                              made.mark(module.tokens[tokens.last - 1].end, true, ""));
  }
  return made.edited(module, edits);
}

}  // namespace klap::transform
