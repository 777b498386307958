// Tokens of PTX text.
//
// The lexer keeps no copies: a token is a pair of offsets into the source. The text between two tokens
// (blanks, comments, preprocessor lines) is trivia that stays where it is. Printing an untouched module is
// therefore printing its source, and every edit is a splice of text between two token offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace klap::ptx {

enum class TokenKind : uint8_t {
  Identifier,   // ld, %r1, $L__BB0_1, _Z5childPi, WARP_SZ
  Dotted,       // .u32, .shared::cta, .1d: a directive, a modifier, a type or a component
  Number,       // 12, -less; 0x1f, 0f3f800000, 1.5e-3, 7U
  String,       // with its quotes
  Punctuation,  // one character
  End,
};

// A token has eight bytes, because there is one for every four or five bytes of text: half of a module's
// memory.
struct Token {
  Token(TokenKind what, uint32_t from, uint32_t to) : begin(from), end(to), kind(what) {}
  uint32_t begin;     // byte offsets into the source
  uint32_t end : 29;  // hence kMaxSourceBytes
  TokenKind kind : 3;
};
static_assert(sizeof(Token) == 8);

// The longest text that is read; PTX comes in megabytes at most.
inline constexpr size_t kMaxSourceBytes = (size_t{1} << 29) - 1;

// Splits `source` into tokens, the last one of kind End. Throws Error(Parse) with line, column and the line
// itself; `name` is the file name for messages.
std::vector<Token> tokenize(std::string_view source, const std::string& name);

// Line and column, both from 1, of a byte offset.
struct Position {
  int line = 1, column = 1;
};
Position position_of(std::string_view source, uint32_t offset);

// The byte offsets of all lines, and the position of an offset by them: for texts in which many are looked
// up.
std::vector<uint32_t> begins_of_lines(std::string_view source);
Position position_of(std::span<const uint32_t> begins, uint32_t offset);

// "line 41:2", the one form in which messages name a place of the PTX.
std::string place(const Position& position);

// The text of the line that holds `offset`, without its line end and cut to a readable length.
std::string line_at(std::string_view source, uint32_t offset);

}  // namespace klap::ptx
