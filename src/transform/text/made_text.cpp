#include "transform/text/made_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace klap::transform {

namespace {

// A mark is two characters that no PTX holds around the number of a part.
constexpr char kOpen = '\x01', kClose = '\x02';

}  // namespace

std::string MadeText::mark(uint32_t source, bool copied, const std::string& through) {
  parts_.push_back({0, source, copied, through});
  return fmt::format("{}{}{}", kOpen, parts_.size() - 1, kClose);
}

// The text without the marks, and the parts in its order.
std::string MadeText::finish(const std::string& text, std::vector<ptx::MadeFrom::Part>& out) const {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find(kOpen, at), text.size());
    plain.append(text, at, open - at);
    if (open == text.size()) break;
    const size_t close = text.find(kClose, open);
    ptx::MadeFrom::Part part = parts_.at(std::stoul(text.substr(open + 1, close - open - 1)));
    part.begin = static_cast<uint32_t>(plain.size());
    out.push_back(std::move(part));
    at = close + 1;
  }
  return plain;
}

ptx::Module MadeText::edited(const ptx::Module& module, const ptx::Edits& edits) const {
  MadeText whole = *this;
  const std::string text = whole.mark(0, true, "") + edits.apply();
  ptx::MadeFrom made_from{&module, {}};
  ptx::Module made = ptx::parse(whole.finish(text, made_from.parts), module.name);
  made.made_from = std::move(made_from);
  return made;
}

}  // namespace klap::transform
