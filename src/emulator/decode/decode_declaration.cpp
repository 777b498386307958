// Reading declarations.
#include "emulator/decode/decode_declaration.h"

#include <algorithm>

#include "emulator/decode/decode_constant.h"

namespace klap::emulator {

using ptx::TokenKind;
using ptx::TokenRange;

namespace {

class Reader {
 public:
  Reader(const ptx::Module& module, TokenRange tokens) : m_(module), at_(tokens.first), last_(tokens.last) {}

  Declaration run() {
    head();
    do {
      declarator();
    } while (accept(","));
    if (!is(";")) fail("expected ';' after a declaration");
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is(std::string_view text) const { return at_ < last_ && m_.is(at_, text); }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw error_at(ErrorCode::Parse, m_, std::min(at_, last_ - 1), reason);
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("expected '" + std::string(text) + "' in a declaration");
  }

  uint64_t number() {
    ConstantReader reader(m_, {at_, last_});
    const ConstantValue value = reader.read();
    if (value.kind != ConstantValue::Kind::Integer) fail("expected a number");
    at_ = reader.at();
    return value.bits;
  }

  // Everything before the first name.
  void head() {
    while (at_ < last_ && m_.tokens[at_].kind == TokenKind::Dotted) {
      const std::string_view text = m_.text(at_++);
      if (text == ".visible")
        out_.linkage = ptx::Linkage::Visible;
      else if (text == ".weak")
        out_.linkage = ptx::Linkage::Weak;
      else if (text == ".extern")
        out_.linkage = ptx::Linkage::Extern;
      else if (text == ".common")
        out_.linkage = ptx::Linkage::Common;
      else if (text == ".align")
        align_ = static_cast<uint32_t>(number());
      else if (text == ".attribute")
        attribute();
      else if (text == ".ptr")
        pointer();
      else if (text == ".v2" || text == ".v4" || text == ".v8")
        lanes_ = static_cast<uint32_t>(text[2] - '0');
      else if (text == ".texref" || text == ".samplerref" || text == ".surfref")
        out_.is_reference = true;
      else if (ptx::type_bytes(text) != 0)
        type_ = text;
      else if (out_.space.empty())
        space(text);
      else
        fail("unknown '" + std::string(text) + "' in a declaration");
    }
    if ((align_ & (align_ - 1)) != 0) fail("alignment is not a power of two");
  }

  void space(std::string_view text) {
    out_.space = text;
    out_.is_reference = out_.is_reference || text == ".tex" || text == ".surf" || text == ".sampler";
    // `.const[3]`: constant banks went out of use with 64-bit addresses.
    if (is("[")) throw error_at(ErrorCode::Unsupported, m_, at_, "constant bank");
  }

  void attribute() {
    expect("(");
    while (!is(")")) {
      if (at_ >= last_) fail("expected ')' after .attribute");
      if (is(".managed")) out_.is_managed = true;
      ++at_;
    }
    ++at_;
  }

  void pointer() {  // .ptr .global .align 4: about what a parameter points to
    if (is(".global") || is(".const") || is(".shared") || is(".local")) ++at_;
    if (accept(".align")) number();
  }

  void declarator() {
    DeclaredVariable v;
    if (at_ >= last_ || m_.tokens[at_].kind != TokenKind::Identifier) fail("expected a name");
    v.token = at_;
    v.name = m_.text(at_++);
    v.type = type_;
    v.element_bytes = out_.is_reference ? 8 : ptx::type_bytes(type_);
    if (v.element_bytes == 0) fail("variable of a type without a size");
    v.align = align_ != 0 ? align_ : v.element_bytes * lanes_;
    bool unsized = false;
    while (is("[") || is("<")) dimension(v, unsized);
    if (lanes_ > 1) v.dimensions.push_back(lanes_);
    if (accept("="))
      initialiser(v, unsized);
    else
      v.is_unsized = unsized;
    v.bytes = v.element_bytes;
    for (const uint64_t count : v.dimensions) {
      if (count != 0 && v.bytes > (uint64_t{1} << 40) / count) fail("variable of more than 1 TiB");
      v.bytes *= count;
    }
    out_.variables.push_back(std::move(v));
  }

  void dimension(DeclaredVariable& v, bool& unsized) {
    if (accept("<")) {
      v.range = static_cast<uint32_t>(number());
      expect(">");
      return;
    }
    expect("[");
    unsized = unsized || is("]");
    v.dimensions.push_back(is("]") ? 0 : number());
    expect("]");
  }

  void initialiser(DeclaredVariable& v, bool unsized) {
    v.initialiser.first = at_;
    int depth = 0;
    uint64_t values = is("{") ? 1 : 0;
    for (; at_ < last_ && !(depth == 0 && (is(",") || is(";"))); ++at_) {
      if (is("{") || is("(")) ++depth;
      if (is("}") || is(")")) --depth;
      if (depth == 1 && is(",")) ++values;
    }
    v.initialiser.last = at_;
    if (unsized) v.dimensions.front() = values;
  }

  const ptx::Module& m_;
  uint32_t at_, last_;
  Declaration out_;
  std::string_view type_;
  uint32_t align_ = 0, lanes_ = 1;
};

}  // namespace

Declaration read_declaration(const ptx::Module& module, TokenRange tokens) {
  return Reader(module, tokens).run();
}

}  // namespace klap::emulator
