#include "ptx/argument_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "support/demangle.h"
#include "support/signature.h"

namespace klap::ptx {
namespace {

constexpr uint32_t kWordBytes = 4;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kIndices = {
    {{"tid.", "threadIdx."}, {"ntid.", "blockDim."}, {"ctaid.", "blockIdx."}, {"nctaid.", "gridDim."}}};

std::string type_words(const Function& kernel, size_t index) {
  const std::vector<std::string> types = parameter_types(demangle(kernel.name));
  if (types.size() == kernel.parameters.size()) return shortened(types[index]);
  const uint32_t bytes = kernel.parameters[index].bytes;
  return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
}

// "p[12]" or "p[24:8]" at the beginning of a text.
struct ParameterToken {
  uint32_t offset = 0, bytes = kWordBytes;
  size_t length = 0;
};
std::optional<ParameterToken> parameter_token(std::string_view text) {
  if (!text.starts_with("p[")) return std::nullopt;
  ParameterToken token;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data() + 2, end, token.offset);
  if (parsed.ec != std::errc()) return std::nullopt;
  if (parsed.ptr != end && *parsed.ptr == ':') parsed = std::from_chars(parsed.ptr + 1, end, token.bytes);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ']') return std::nullopt;
  token.length = static_cast<size_t>(parsed.ptr + 1 - text.data());
  return token;
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%'; }

// Whether an operator of arithmetic, and not a comparison or a word, stands on that side.
bool ends_in_operator(std::string_view before) {
  if (before.ends_with(' ')) before.remove_suffix(1);
  return before.ends_with("<<") || before.ends_with(">>") || before.ends_with(">>u") ||
         before.ends_with("/u") || before.ends_with("%u") ||
         (!before.empty() && std::string_view("*/%+-&|^").find(before.back()) != std::string_view::npos);
}
bool begins_with_operator(std::string_view behind) {
  if (behind.starts_with(' ')) behind.remove_prefix(1);
  return behind.starts_with("<<") || behind.starts_with(">>") ||
         (!behind.empty() && std::string_view("*/%+-&|^").find(behind.front()) != std::string_view::npos);
}

}  // namespace

std::string argument_words(const Function& kernel, uint32_t offset, uint32_t bytes) {
  const auto has = [&](const Parameter& p) { return p.offset <= offset && offset < p.offset + p.bytes; };
  const auto found = std::ranges::find_if(kernel.parameters, has);
  if (found == kernel.parameters.end()) return "";
  const auto index = static_cast<size_t>(found - kernel.parameters.begin());
  const std::string part = offset == found->offset && bytes == found->bytes
                               ? ""
                               : fmt::format(", byte {}", offset - found->offset);
  return fmt::format("argument {} of {} ({}){}", index + 1, base_name(demangle(kernel.name)),
                     type_words(kernel, index), part);
}

std::string in_cuda_words(std::string_view text, const Function& kernel) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const bool begins_word = i == 0 || (!is_of_word(text[i - 1]) && text[i - 1] != '.');
    if (const auto token = begins_word ? parameter_token(rest) : std::nullopt) {
      std::string words = argument_words(kernel, token->offset, token->bytes);
      if (words.empty()) words = rest.substr(0, token->length);
      const bool is_operand =
          ends_in_operator(text.substr(0, i)) || begins_with_operator(rest.substr(token->length));
      out += is_operand ? "[" + words + "]" : words;
      i += token->length;
      continue;
    }
    const auto index = std::ranges::find_if(
        kIndices, [&](const auto& each) { return begins_word && rest.starts_with(each.first); });
    if (index != kIndices.end() && rest.size() > index->first.size() &&
        std::string_view("xyz").find(rest[index->first.size()]) != std::string_view::npos) {
      out += index->second;
      i += index->first.size();
      continue;
    }
    out += text[i++];
  }
  return out;
}

}  // namespace klap::ptx
