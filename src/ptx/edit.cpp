#include "ptx/edit.h"

#include <algorithm>

namespace klap::ptx {

void Edits::replace(TokenRange range, std::string text) {
  splices_.push_back(
      {module_.tokens[range.first].begin, module_.tokens[range.last - 1].end, std::move(text)});
}

void Edits::insert_before(uint32_t token, std::string text) {
  const uint32_t at = module_.tokens[token].begin;
  splices_.push_back({at, at, std::move(text)});
}

void Edits::insert_after(uint32_t token, std::string text) {
  const uint32_t at = module_.tokens[token].end;
  splices_.push_back({at, at, std::move(text)});
}

std::string Edits::apply(TokenRange range) const {
  const uint32_t begin = module_.tokens[range.first].begin;
  const uint32_t end = module_.tokens[range.last - 1].end;
  std::vector<Splice> sorted;
  for (const Splice& splice : splices_) {
    if (splice.begin >= begin && splice.end <= end) sorted.push_back(splice);
  }
  // At one place insertions come first, then the widest replacement.
  std::stable_sort(sorted.begin(), sorted.end(), [](const Splice& a, const Splice& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    const bool a_inserts = a.begin == a.end, b_inserts = b.begin == b.end;
    return a_inserts != b_inserts ? a_inserts : a.end > b.end;
  });
  std::string out;
  uint32_t at = begin;
  for (const Splice& splice : sorted) {
    if (splice.end <= at && splice.begin < at) continue;  // inside text that was replaced
    if (splice.begin < at)
      throw Error(ErrorCode::Internal, "two edits of the same text overlap").at(module_.name);
    out.append(module_.source, at, splice.begin - at);
    out += splice.text;
    at = splice.end;
  }
  out.append(module_.source, at, end - at);
  return out;
}

std::string Edits::apply() const {
  const auto last = static_cast<uint32_t>(module_.tokens.size()) - 1;
  return module_.source.substr(0, module_.tokens[0].begin) + apply({0, last}) + "\n";
}

}  // namespace klap::ptx
