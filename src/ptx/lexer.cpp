// The lexer: one pass over the bytes, one function per token kind.
//
// Parsing is mostly this pass, so the classes of a byte are looked up instead of compared.
#include <algorithm>
#include <array>
#include <iterator>

#include "ptx/token.h"
#include "support/error.h"

namespace klap::ptx {
namespace {

// The classes of a byte; a byte may have several.
enum : uint8_t { kBlank = 1, kDigit = 2, kLetter = 4, kWord = kDigit | kLetter, kPunctuation = 8 };

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  const auto mark = [&](std::string_view characters, uint8_t what) {
    for (char c : characters) classes[static_cast<unsigned char>(c)] |= what;
  };
  mark(" \t\n\r\f\v", kBlank);
  mark("0123456789", kDigit);
  mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$", kLetter);
  mark(",;:()[]{}<>@!|+-*/=&^~%?.", kPunctuation);
  return classes;
}();

constexpr bool is_a(char c, uint8_t what) { return (kClasses[static_cast<unsigned char>(c)] & what) != 0; }

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(source), name_(name) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    // More than any real text has: memory costs nothing until it is touched, and growing would copy all of
    // it.
    tokens.reserve(source_.size() / 2);
    for (;;) {
      skip_trivia();
      const uint32_t begin = at_;
      const TokenKind kind = next();
      // Copied, not made in place: bit fields are read before they are written, and reading memory that was
      // never touched and then writing it costs two page faults.
      const Token token(kind, begin, at_);
      tokens.push_back(token);
      if (kind == TokenKind::End) return tokens;
    }
  }

 private:
  [[nodiscard]] char peek(uint32_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  // Moves past a run of bytes of a class, in a register.
  void skip(uint8_t what) {
    const char* const begin = source_.data();
    const char* const end = begin + source_.size();
    const char* at = begin + at_;
    while (at < end && is_a(*at, what)) ++at;
    at_ = static_cast<uint32_t>(at - begin);
  }

  [[noreturn]] void fail(const std::string& reason, uint32_t offset) const {
    const Position where = position_of(source_, offset);
    throw Error(ErrorCode::Parse, reason)
        .at(name_, where.line, where.column)
        .source_line(line_at(source_, offset));
  }

  void skip_trivia() {
    for (;;) {
      skip(kBlank);
      const char c = peek();
      if (c == '/' && peek(1) == '/') {
        skip_line();
      } else if (c == '/' && peek(1) == '*') {
        skip_block_comment();
      } else if (c == '#' && at_line_start()) {
        skip_line();  // preprocessor lines carry nothing that is rewritten
      } else {
        return;
      }
    }
  }

  [[nodiscard]] bool at_line_start() const {
    uint32_t i = at_;
    while (i > 0 && (source_[i - 1] == ' ' || source_[i - 1] == '\t')) --i;
    return i == 0 || source_[i - 1] == '\n';
  }

  void skip_line() {
    const size_t end = source_.find('\n', at_);
    at_ = static_cast<uint32_t>(end == std::string_view::npos ? source_.size() : end);
  }

  void skip_block_comment() {
    const size_t end = source_.find("*/", at_ + 2);
    if (end == std::string_view::npos) fail("comment is not closed", at_);
    at_ = static_cast<uint32_t>(end + 2);
  }

  TokenKind next() {
    if (at_ >= source_.size()) return TokenKind::End;
    const char c = source_[at_];
    if (is_a(c, kLetter)) return identifier();
    if (c == '%' && is_a(peek(1), kWord)) {
      ++at_;
      return identifier();
    }
    if (c == '.' && is_a(peek(1), kWord)) return dotted();
    if (is_a(c, kDigit)) return number();
    if (c == '"') return string();
    if (!is_a(c, kPunctuation)) {
      const auto value = static_cast<unsigned char>(c);
      const bool printable = value >= 32 && value < 127;
      fail(printable ? std::string("unexpected character '") + c + "'"
                     : "unexpected byte " + std::to_string(value),
           at_);
    }
    ++at_;
    return TokenKind::Punctuation;
  }

  TokenKind string() {
    const uint32_t begin = at_++;
    while (at_ < source_.size() && source_[at_] != '"' && source_[at_] != '\n') {
      at_ += source_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= source_.size() || source_[at_] != '"') fail("string is not closed", begin);
    ++at_;
    return TokenKind::String;
  }

  TokenKind identifier() {
    skip(kWord);
    return TokenKind::Identifier;
  }

  TokenKind dotted() {
    ++at_;
    skip(kWord);
    while (peek() == ':' && peek(1) == ':' && is_a(peek(2), kWord)) {
      at_ += 2;
      skip(kWord);
    }
    return TokenKind::Dotted;
  }

  // 12, 0x1F, 077, 0b11, 7U, 0f3f800000, 1.5, 1e-5, 1.5e+3: a run of word characters in which a point must be
  // followed by a digit and a sign may follow a decimal exponent.
  TokenKind number() {
    const bool decimal = !(source_[at_] == '0' && is_a(peek(1), kLetter));
    for (;;) {
      skip(kWord);
      const char last = source_[at_ - 1];
      const bool point = peek() == '.';
      const bool sign = decimal && (last == 'e' || last == 'E') && (peek() == '+' || peek() == '-');
      if (!(point || sign) || !is_a(peek(1), kDigit)) return TokenKind::Number;
      ++at_;
    }
  }

  std::string_view source_;
  const std::string& name_;
  uint32_t at_ = 0;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& name) {
  if (source.size() > kMaxSourceBytes)
    throw Error(ErrorCode::Parse, "PTX text of 512 MiB or more").at(name, 1, 1);
  return Lexer(source, name).run();
}

std::string place(const Position& position) {
  return "line " + std::to_string(position.line) + ":" + std::to_string(position.column);
}

Position position_of(std::string_view source, uint32_t offset) {
  return position_of(begins_of_lines(source), std::min(offset, static_cast<uint32_t>(source.size())));
}

std::vector<uint32_t> begins_of_lines(std::string_view source) {
  std::vector<uint32_t> begins = {0};
  for (size_t end = source.find('\n'); end != std::string_view::npos; end = source.find('\n', end + 1))
    begins.push_back(static_cast<uint32_t>(end + 1));
  return begins;
}

Position position_of(std::span<const uint32_t> begins, uint32_t offset) {
  const auto behind = std::ranges::upper_bound(begins, offset);
  return {static_cast<int>(behind - begins.begin()), static_cast<int>(offset - *std::prev(behind)) + 1};
}

std::string line_at(std::string_view source, uint32_t offset) {
  constexpr size_t kLongest = 160;
  const size_t at = std::min<size_t>(offset, source.size());
  const size_t last = at == 0 ? std::string_view::npos : source.rfind('\n', at - 1);
  const size_t begin = last == std::string_view::npos ? 0 : last + 1;
  const size_t end = source.find('\n', at);
  std::string text(source.substr(begin, end == std::string_view::npos ? end : end - begin));
  if (text.ends_with('\r')) text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';  // a tab would move the caret
  }
  if (text.size() > kLongest) text.resize(kLongest);
  return text;
}

}  // namespace klap::ptx
