#include "analysis/launches/streams.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "analysis/launches/calls.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

StreamValue literal(uint64_t value, const Idiom& idiom) {
  const bool version_1 = idiom.is_version_1();
  switch (value) {
    case 0:
      if (idiom.stream_zero_is_per_thread) return {StreamClass::PerThread, "the per-thread stream (0)"};
      return {StreamClass::Null, "the NULL stream"};
    case 1:
      return {StreamClass::Illegal, "1, the host's legacy stream, which device code does not have"};
    case 2:
      return {StreamClass::PerThread, "the per-thread stream"};
    case 3:
      if (!version_1) return {StreamClass::TailLaunch, "the tail-launch stream"};
      break;
    case 4:
      if (!version_1) return {StreamClass::FireAndForget, "the fire-and-forget stream"};
      break;
    case 0x0100000000000000:
    case 0x0200000000000000:
    case 0x0300000000000000:
      return {StreamClass::Illegal, fmt::format("0x{:x}, which is for launching graphs", value)};
    default:
      break;
  }
  return {StreamClass::Illegal, fmt::format("{}, which is no stream{}", static_cast<int64_t>(value),
                                            version_1 ? " of dynamic parallelism version 1" : "")};
}

// A place in a variable; without an offset, an element that is chosen at run time.
struct Place {
  std::string_view variable;
  std::optional<int64_t> offset;
};

class Classifier {
 public:
  Classifier(const OriginQuery& query, const Idiom& idiom) : q_(query), idiom_(idiom) {}

  [[nodiscard]] StreamValue classify(const Origin& origin) const {
    switch (origin.kind) {
      case OriginKind::Constant:
        return literal(origin.value, idiom_);
      case OriginKind::Parameter:
        return {StreamClass::Passed,
                print(origin, q_.function) + (q_.function.kind == ptx::FunctionKind::Entry
                                                  ? ", a stream that the kernel did not create"
                                                  : ", a stream that its caller passes")};
      case OriginKind::Load:
        return loaded(origin);
      default:
        return {StreamClass::Unknown, print(origin, q_.function)};
    }
  }

 private:
  [[nodiscard]] StreamValue loaded(const Origin& origin) const {
    const auto address = parse_address(q_.module, origin.statement->operands[1]);
    const std::string chosen = address ? chosen_by(address->base) : "";
    const auto place = address ? place_of(address->base, address->offset) : std::nullopt;
    const std::vector<std::string> creations = place ? creations_in(*place) : std::vector<std::string>();
    if (creations.empty()) {
      if (chosen.empty()) return {StreamClass::Loaded, print(origin, q_.function)};
      return {StreamClass::Array, fmt::format("an element of an array in {} memory, chosen by {} ({})",
                                              origin.name, chosen, origin.place)};
    }
    const std::string places = fmt::format("{}", fmt::join(creations, ", "));
    if (chosen.empty() && place->offset) {
      return {StreamClass::Created, fmt::format("created by the same function ({})", places)};
    }
    return {StreamClass::Array,
            fmt::format("one of an array of streams created by the same function ({}){}{}", places,
                        chosen.empty() ? "" : ", chosen by ", chosen)};
  }

  // "thread index", "block index" or nothing, by the special registers that the address depends on.
  [[nodiscard]] std::string chosen_by(std::string_view base) const {
    std::string text;
    for (const auto& [prefix, name] : {std::pair("%tid", "thread index"), std::pair("%laneid", "lane"),
                                       std::pair("%ctaid", "block index")}) {
      const auto reads = [&, p = std::string_view(prefix)](const Statement& s) {
        for (const ptx::TokenRange& operand : s.operands) {
          for (uint32_t t = operand.first; t < operand.last; ++t) {
            if (q_.module.text(t).starts_with(p)) return true;
          }
        }
        return false;
      };
      const RegisterSet set = dependents(q_.module, q_.flow, q_.data.names(), reads);
      if (set.contains(base)) text += (text.empty() ? "" : " and ") + std::string(name);
    }
    return text;
  }

  // Follows an address back to the variable that it lies in.
  [[nodiscard]] std::optional<Place> place_of(std::string_view base, int64_t offset, int depth = 0) const {
    if (!q_.data.names().is_register(base)) {
      const bool variable = q_.data.names().variables().contains(base) || q_.module.find_variable(base);
      if (!variable) return std::nullopt;
      return Place{base, offset};
    }
    const auto& writers = q_.data.definitions(base);
    if (writers.size() != 1 || depth > 16) return std::nullopt;
    const Statement& s = *q_.flow.instructions()[writers[0]].statement;
    const std::string_view opcode = q_.module.text(s.head);
    if (s.operands.size() == 2 && (opcode == "mov" || opcode == "cvta" || opcode == "cvt")) {
      return place_of(q_.module.text(s.operands[1]), offset, depth + 1);
    }
    // `or` adds an offset to an address that is aligned well enough.
    if (s.operands.size() != 3 || (opcode != "add" && opcode != "or")) return std::nullopt;
    for (const auto& [address, other] : {std::pair(1, 2), std::pair(2, 1)}) {
      const auto constant = q_.data.constant(q_.module.text(s.operands[static_cast<size_t>(other)]));
      auto place = place_of(q_.module.text(s.operands[static_cast<size_t>(address)]),
                            offset + static_cast<int64_t>(constant.value_or(0)), depth + 1);
      if (!place) continue;
      if (!constant) place->offset.reset();
      return place;
    }
    return std::nullopt;
  }

  // Places of the calls that create a stream in that place.
  [[nodiscard]] std::vector<std::string> creations_in(const Place& place) const {
    std::vector<std::string> places;
    for (const FlatInstruction& f : q_.flow.instructions()) {
      const auto call = parse_call(q_.module, *f.statement, q_.data.names());
      if (!call || !call->direct || call->parameters.empty() || f.scope == &q_.function.body) continue;
      if (!idioms().is_kind(runtime_function(q_.module, call->callee), "stream-create")) continue;
      const CallScope scope = read_call_scope(q_.module, *f.scope, *f.statement);
      const std::string* operand = scope.actual(call->parameters[0], 0);
      const auto target = operand == nullptr ? std::nullopt : place_of(*operand, 0);
      if (!target || target->variable != place.variable) continue;
      if (target->offset && place.offset && *target->offset != *place.offset) continue;
      places.push_back(q_.module.place(f.statement->head));
    }
    return places;
  }

  const OriginQuery& q_;
  const Idiom& idiom_;
};

}  // namespace

std::vector<StreamValue> stream_values(const OriginQuery& query, std::string_view operand,
                                       const Idiom& idiom) {
  const Classifier classifier(query, idiom);
  std::vector<StreamValue> out;
  for (const Origin& origin : origins_of(query, operand)) {
    StreamValue value = classifier.classify(origin);
    const bool known = std::any_of(out.begin(), out.end(), [&](const StreamValue& v) {
      return v.kind == value.kind && v.text == value.text;
    });
    if (!known) out.push_back(std::move(value));
  }
  return out;
}

std::string print(const std::vector<StreamValue>& streams) {
  std::string text;
  for (const StreamValue& s : streams) text += (text.empty() ? "" : " or ") + s.text;
  return text;
}

}  // namespace klap::analysis
