#include "transform/aggregate/argument_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace klap::transform {

using analysis::Argument;
using ptx::Statement;

ArgumentStores::ArgumentStores(const ptx::Module& module, const analysis::Site& site,
                               const RecordLayout& layout, std::string once, std::string is_first, Once by)
    : m_(module),
      site_(site),
      layout_(layout),
      once_(std::move(once)),
      is_first_(std::move(is_first)),
      by_(by) {}

std::vector<const Statement*> ArgumentStores::in_order() const {
  std::map<uint32_t, const Statement*> stores;
  for (const Argument& argument : site_.arguments) stores[argument.store->tokens.first] = argument.store;
  std::vector<const Statement*> out;
  for (const auto& [token, store] : stores) out.push_back(store);
  return out;
}

// The parts of a store that the child reads, by offset.
std::vector<ArgumentStores::Part> ArgumentStores::parts(const Statement& store) const {
  std::vector<Part> out;
  for (const Argument& argument : site_.arguments) {
    if (argument.store != &store) continue;
    const ArgumentPlace* place = layout_.find(argument.offset, argument.bytes);
    if (place != nullptr) out.push_back({&argument, place, place->at + argument.offset - place->from});
  }
  std::ranges::sort(out, {}, [](const Part& part) { return part.argument->offset; });
  return out;
}

// True if the parts of a vector still make one vector, aligned as it must be.
bool ArgumentStores::stays_whole(const Statement& store, const std::vector<Part>& parts) const {
  const auto all = std::ranges::count(site_.arguments, &store, &Argument::store);
  const uint32_t bytes = parts.front().argument->bytes;
  const auto whole = static_cast<uint32_t>(all) * bytes;
  if (std::ssize(parts) != all || parts.front().at % whole != 0 || layout_.record_bytes % whole != 0)
    return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].place->once || parts[i].at != parts.front().at + i * bytes) return false;
  }
  return true;
}

std::string ArgumentStores::store_to(const Statement& store, std::string_view dropped, uint32_t at,
                                     std::string_view source) const {
  std::string modifiers;
  for (uint32_t t = store.modifiers.first; t < store.modifiers.last; ++t) {
    if (dropped.empty() || !m_.text(t).starts_with(dropped)) modifiers += m_.text(t);
  }
  return fmt::format("st{} [{}+{}], {};", modifiers, site_.buffer, at, source);
}

std::string ArgumentStores::store_once(const Statement& store, const Part& part) const {
  if (by_ == Once::ByOne)
    return fmt::format("@{} {}", is_first_, store_to(store, ".v", part.at, part.argument->source));
  // The store is strong, since the first thread from the queue's other end may store the same.
  return fmt::format("@{} st.relaxed.gpu.global{} [{}+{}], {};", is_first_, part.argument->type, once_,
                     part.at, part.argument->source);
}

std::string ArgumentStores::text(const Statement& store) const {
  if (!layout_.packed) return std::string(m_.text(store.tokens));
  const std::vector<Part> parts = this->parts(store);
  if (parts.empty()) return {};
  if (stays_whole(store, parts)) return store_to(store, "", parts.front().at, m_.text(store.operands[1]));
  std::string text;
  for (const Part& part : parts) {
    text += text.empty() ? "" : "\n\t";
    text +=
        part.place->once ? store_once(store, part) : store_to(store, ".v", part.at, part.argument->source);
  }
  return text;
}

}  // namespace klap::transform
