#include "jit/plan/remark_words.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "support/signature.h"

namespace klap::jit {
namespace {

// "line 41:2" as ptx::place() writes it, or "line 41", at the beginning of a text.
struct PtxPlace {
  ptx::Position position;
  bool has_column = false;
  size_t length = 0;
};
std::optional<PtxPlace> ptx_place(std::string_view text) {
  constexpr std::string_view kLine = "line ";
  if (!text.starts_with(kLine)) return std::nullopt;
  PtxPlace place;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data() + kLine.size(), end, place.position.line);
  if (parsed.ec != std::errc()) return std::nullopt;
  if (end - parsed.ptr > 1 && *parsed.ptr == ':') {
    const auto column = std::from_chars(parsed.ptr + 1, end, place.position.column);
    place.has_column = column.ec == std::errc();
    if (place.has_column) parsed = column;
  }
  place.length = static_cast<size_t>(parsed.ptr - text.data());
  return place;
}

}  // namespace

std::string SourceWords::with_places(std::string_view text) const {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool begins_word = i == 0 || text[i - 1] == ' ' || text[i - 1] == '(';
    const auto place = begins_word ? ptx_place(text.substr(i)) : std::nullopt;
    if (!place) {
      out += text[i++];
      continue;
    }
    const bool is_told = is_one_unit_ && place->has_column;
    const auto found = is_told ? lines_.of(place->position) : std::nullopt;
    out += found ? ptx::short_text(*found) : fmt::format("PTX {}", text.substr(i, place->length));
    i += place->length;
  }
  return out;
}

std::string SourceWords::of(std::string_view text, const SiteRemark& remark) const {
  // All lines are those of the PTX if the remark itself stands there.
  return with_signatures(remark.source.is_known() ? with_places(text) : std::string(text));
}

void SourceWords::put_into(SiteRemark& remark) const {
  remark.source = lines_.of({remark.line, remark.column}).value_or(ptx::SourcePlace{});
  remark.detail = of(remark.detail, remark);
  remark.brief = of(remark.brief, remark);
  for (Fact& fact : remark.facts) fact.value = of(fact.value, remark);
  for (std::string& note : remark.notes) note = of(note, remark);
}

}  // namespace klap::jit
